/** triton.language and triton: what a kernel uses most, as `signature: what it does`. */
export const TRITON = `
tl.program_id(axis): index of this program along an axis of the grid
tl.num_programs(axis): programs along an axis of the grid
tl.load(pointer, mask=None, other=None, cache_modifier='', eviction_policy=''): elements where the mask is true, else other
tl.store(pointer, value, mask=None): writes where the mask is true
tl.arange(start, end): start to end - 1; both ends are constants, their distance a power of two
tl.zeros(shape, dtype): a block of zeros
tl.zeros_like(input): zeros of the same shape and dtype
tl.full(shape, value, dtype): a block of one value
tl.dot(a, b, acc=None, input_precision=None, out_dtype=tl.float32): matrix product; sides of at least 16
tl.trans(input): the transpose
tl.where(condition, x, y): elements of x where true, else of y
tl.maximum(x, y): the larger, element by element
tl.minimum(x, y): the smaller, element by element
tl.max(input, axis=None, return_indices=False, keep_dims=False): the maximum along an axis
tl.min(input, axis=None, return_indices=False, keep_dims=False): the minimum along an axis
tl.sum(input, axis=None, keep_dims=False): the sum along an axis
tl.argmax(input, axis): where the maximum is
tl.reduce(input, axis, combine_fn): a reduction of your own
tl.associative_scan(input, axis, combine_fn): a prefix scan of your own
tl.cumsum(input, axis=0): running sums
tl.exp(x): e to the x
tl.exp2(x): 2 to the x, which the hardware has
tl.log(x): natural logarithm
tl.log2(x): logarithm to the base 2
tl.sqrt(x): square root
tl.rsqrt(x): 1 over the square root
tl.abs(x): absolute value
tl.sigmoid(x): 1 / (1 + exp(-x))
tl.softmax(x): softmax along the last axis
tl.fma(x, y, z): x * y + z, rounded once
tl.cdiv(x, div): x / div, rounded up
tl.expand_dims(input, axis): an axis of size 1
tl.broadcast_to(input, shape): repeated to a shape
tl.reshape(input, shape): the same elements in another shape
tl.permute(input, dims): axes in another order
tl.cat(a, b, can_reorder=False): one after the other
tl.join(a, b): a new last axis of two
tl.split(a): the two halves of a last axis of two
tl.gather(src, index, axis): elements by index along an axis
tl.flip(x, dim=None): the other way round
tl.sort(x, dim=None, descending=False): sorted along an axis
tl.atomic_add(pointer, val, mask=None): adds and gives what was there
tl.atomic_max(pointer, val, mask=None): keeps the larger and gives what was there
tl.atomic_cas(pointer, cmp, val): writes val where cmp was found
tl.multiple_of(input, values): a promise: multiples of values
tl.max_contiguous(input, values): a promise: contiguous in runs of values
tl.assume(condition): a promise that it is true
tl.static_range(start, end, step=1): a loop that is unrolled
tl.range(start, end, step=1, num_stages=None): a loop with options
tl.static_assert(condition, msg=''): checked while it compiles
tl.static_print(values): printed while it compiles
tl.device_print(prefix, args): printed by the kernel
tl.make_block_ptr(base, shape, strides, offsets, block_shape, order): a pointer to a block
tl.advance(base, offsets): a block pointer moved on
tl.make_tensor_descriptor(base, shape, strides, block_shape): a descriptor of a tensor
tl.constexpr: an argument that is known when it compiles
tl.float16
tl.bfloat16
tl.float32
tl.float64
tl.int32
tl.int64
tl.int1
triton.jit: makes a function a kernel
triton.cdiv(x, y): x / y, rounded up
triton.next_power_of_2(n): the smallest power of two that is not less
triton.Config(kwargs, num_warps=4, num_stages=3): a choice for autotune
triton.autotune(configs, key): tries the configs and keeps the fastest
`;
