/** CUDA C++: what a kernel uses most, as `signature` or `signature: what it does`. */
export const CUDA = `
threadIdx.x: index of the thread in its block
blockIdx.x: index of the block in the grid
blockDim.x: threads in a block
gridDim.x: blocks in the grid
warpSize: 32
__global__: a kernel: runs on the device, launched from the host
__device__: a function or variable on the device
__host__: a function on the host
__shared__: memory of a block
__constant__: read-only memory of the device, set from the host
__restrict__: no other pointer reaches these elements
__launch_bounds__(threads, blocks): at most so many threads a block, at least so many blocks a multiprocessor
__syncthreads(): all threads of the block wait here
__syncwarp(mask = 0xffffffff): the threads of the warp wait here
__threadfence(): writes before it are seen by the device before those after it
__shfl_sync(mask, value, lane, width = 32): the value of another lane
__shfl_xor_sync(mask, value, laneMask, width = 32): the value of the lane whose number differs in these bits
__shfl_down_sync(mask, value, delta, width = 32): the value of a lane further on
__shfl_up_sync(mask, value, delta, width = 32): the value of a lane before
__ballot_sync(mask, predicate): a bit for each lane whose predicate is true
__any_sync(mask, predicate): whether it is true in any lane
__all_sync(mask, predicate): whether it is true in all lanes
__activemask(): the lanes that run now
__reduce_add_sync(mask, value): the sum over the lanes, of whole numbers
atomicAdd(address, value): adds and returns what was there
atomicMax(address, value): keeps the larger and returns what was there
atomicMin(address, value): keeps the smaller and returns what was there
atomicCAS(address, compare, value): writes value where compare was found, and returns what was there
atomicExch(address, value): writes and returns what was there
__ldg(pointer): a load through the read-only cache
fmaf(x, y, z): x * y + z, rounded once
fmaxf(x, y): the larger; a NaN is passed over
fminf(x, y): the smaller; a NaN is passed over
expf(x): e to the x
__expf(x): e to the x, fast and less exact
exp2f(x): 2 to the x
logf(x): natural logarithm
log2f(x): logarithm to the base 2
sqrtf(x): square root
rsqrtf(x): 1 over the square root
fabsf(x): absolute value
__fdividef(x, y): x / y, fast and less exact
__frcp_rn(x): 1 / x, rounded to nearest
__float2half(x): to half
__half2float(x): to float
__int_as_float(x): the same bits as a float
__float_as_int(x): the same bits as an int
INFINITY: the infinite float
dim3(x, y = 1, z = 1): sizes of a grid or a block
float2: two floats, x and y
float4: four floats, x y z w; loaded and stored at once where aligned to 16 bytes
make_float2(x, y)
make_float4(x, y, z, w)
cudaStream_t: a stream, as the seam gets one
cudaMemcpyAsync(to, from, bytes, kind, stream): a copy in order of the stream
cudaMemsetAsync(pointer, value, bytes, stream): fills bytes in order of the stream
cudaFuncSetAttribute(function, attribute, value): e.g. more dynamic shared memory
cudaFuncAttributeMaxDynamicSharedMemorySize: the attribute for more than 48 KiB of dynamic shared memory
cudaGetLastError(): the last launch's error
cudaDeviceGetAttribute(value, attribute, device)
__pipeline_memcpy_async(to, from, bytes): a copy from global to shared memory beside the computation
__pipeline_commit(): ends a stage of such copies
__pipeline_wait_prior(n): waits until at most n stages are under way
static_assert(condition, message)
reinterpret_cast<float4*>(pointer)
static_cast<int>(value)
#pragma unroll
`;
