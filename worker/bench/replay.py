"""Turns a tape and a cubin into a CUDA graph that can be launched again and again."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

from cuda.bindings import driver as cu

from worker.bench.descriptors import RefusedDescriptorError, encode
from worker.bench.driver import check
from worker.recording.cubin import MalformedCubinError, read_cubin
from worker.recording.tape import Copy, Fill, Launch, Tape, Upload


class UnplayableError(ValueError):
    """A tape that does not fit its cubin: an unknown kernel, a wrong parameter block, a launch the driver refuses."""


class Module:
    """A loaded cubin: its kernels and its variables by name."""

    def __init__(self, image: bytes) -> None:
        self.image = image
        self.library = check(cu.cuLibraryLoadData(image, [], [], 0, [], [], 0), "load")
        count = check(cu.cuLibraryGetKernelCount(self.library))
        found = check(cu.cuLibraryEnumerateKernels(count, self.library))
        self.kernels = {check(cu.cuKernelGetName(kernel)).decode(): kernel for kernel in found}
        self.functions = {name: check(cu.cuKernelGetFunction(kernel)) for name, kernel in self.kernels.items()}

    def parameters(self, name: str) -> list[tuple[int, int]]:
        """(offset, size) of every parameter of a kernel, as the driver knows them."""
        sizes: list[tuple[int, int]] = []
        while True:
            answer = cu.cuKernelGetParamInfo(self.kernels[name], len(sizes))
            if answer[0] != cu.CUresult.CUDA_SUCCESS:
                return sizes
            sizes.append((int(answer[1]), int(answer[2])))

    def layout(self, name: str, recorded: int) -> list[tuple[int, int]]:
        """Where each parameter lies in a block of `recorded` bytes, as (offset, size). Raises UnplayableError.

        The recorder lays arguments out as the cubin states it. The driver may count otherwise where a parameter asks for more
        than eight bytes' alignment, as a TMA descriptor does.
        """
        known = self.parameters(name)
        if _end(known) == recorded:
            return known
        stated = self._stated.get(name, [])
        if _end(stated) == recorded and [size for _, size in stated] == [size for _, size in known]:
            return stated
        raise UnplayableError(f"kernel {name[:200]} was recorded with {recorded} bytes of arguments")

    @cached_property
    def _stated(self) -> dict[str, list[tuple[int, int]]]:
        try:
            return {name: kernel.parameters for name, kernel in read_cubin(self.image).kernels.items()}
        except MalformedCubinError:
            return {}

    def variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a `__device__` or `__constant__` variable."""
        address, size = check(cu.cuLibraryGetGlobal(self.library, name.encode()), f"variable {name[:80]}")
        return int(address), int(size)


def _end(parameters: list[tuple[int, int]]) -> int:
    return max((offset + size for offset, size in parameters), default=0)


def _aligned(data: bytes) -> Any:
    """A copy of `data` as ctypes characters that start at a multiple of 64 bytes, as descriptors have to."""
    room = ctypes.create_string_buffer(len(data) + 64)
    held = (ctypes.c_char * max(1, len(data))).from_buffer(room, -ctypes.addressof(room) % 64)
    ctypes.memmove(held, data, len(data))
    return held


class Joined(Module):
    """Several cubins under one roof, each kernel's name behind its cubin's prefix: Triton compiles one a variant."""

    def __init__(self) -> None:
        self.kernels: dict[str, Any] = {}
        self.functions: dict[str, Any] = {}
        self.parts: dict[str, tuple[Module, str]] = {}

    def add(self, prefix: str, module: Module) -> None:
        self.kernels |= {prefix + name: kernel for name, kernel in module.kernels.items()}
        self.functions |= {prefix + name: function for name, function in module.functions.items()}
        self.parts |= {prefix + name: (module, name) for name in module.kernels}

    def layout(self, name: str, recorded: int) -> list[tuple[int, int]]:
        module, own = self.parts[name]
        return module.layout(own, recorded)

    def variable(self, name: str) -> tuple[int, int]:
        raise UnplayableError(f"no variable {name[:80]}")


class Replay:
    """A tape as an executable graph. Keeps alive what its nodes point to."""

    def __init__(self, module: Module, tape: Tape, context: Any) -> None:
        self.module = module
        self.context = context
        most = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
        self.most_threads = int(check(cu.cuDeviceGetAttribute(most, 0)))
        self.kept: list[Any] = []
        self.occupancy: dict[str, float] = {}
        self.moved = {}
        for name, (stand_in, size) in tape.variables.items():
            address, real = module.variable(name)
            if real < size:
                raise UnplayableError(f"variable {name[:80]} has {real} bytes, not {size}")
            self.moved[range(stand_in, stand_in + size + 1)] = address
        self._prepare(tape)
        self.descriptors = self._encoded(tape)
        self.graph = check(cu.cuGraphCreate(0))
        nodes: list[Any] = []
        for node in tape.nodes:
            nodes.append(self._add(node.work, [nodes[index] for index in node.after]))
        self.executable = check(cu.cuGraphInstantiate(self.graph, 0), "instantiate")

    def launch(self, stream: Any) -> None:
        check(cu.cuGraphLaunch(self.executable, stream), "launch")

    def close(self) -> None:
        check(cu.cuGraphExecDestroy(self.executable))
        check(cu.cuGraphDestroy(self.graph))

    def _prepare(self, tape: Tape) -> None:
        attribute = cu.CUfunction_attribute
        for name, size in tape.shared_limits.items():
            check(
                cu.cuFuncSetAttribute(
                    self._function(name), attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size
                )
            )
        for name, share in tape.carveouts.items():
            wanted = attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            check(cu.cuFuncSetAttribute(self._function(name), wanted, share))

    def _encoded(self, tape: Tape) -> dict[bytes, bytes]:
        try:
            return {token: encode(wanted, self._real(wanted.address)) for token, wanted in tape.descriptors.items()}
        except RefusedDescriptorError as error:
            raise UnplayableError(str(error)) from error

    def _with_descriptors(self, data: bytes) -> bytes:
        """Puts encoded descriptors where their tokens stand; both have 128 bytes."""
        for token, encoded in self.descriptors.items():
            data = data.replace(token, encoded)
        return data

    def _function(self, name: str) -> Any:
        if name not in self.module.functions:
            raise UnplayableError(f"no kernel {name[:200]}")
        return self.module.functions[name]

    def _real(self, address: int) -> int:
        for span, base in self.moved.items():
            if address in span:
                return base + address - span.start
        return address

    def _add(self, work: Any, after: list[Any]) -> Any:
        match work:
            case Launch():
                return self._launch(work, after)
            case Fill():
                return self._fill(work, after)
            case Copy():
                return self._copy(after, work.to, work.size, device=self._real(work.source))
            case Upload():
                data = ctypes.create_string_buffer(self._with_descriptors(work.data), len(work.data))
                self.kept.append(data)
                return self._copy(after, work.to, len(work.data), host=ctypes.addressof(data))

    def _launch(self, work: Launch, after: list[Any]) -> Any:
        function = self._function(work.kernel)
        sizes = self.module.layout(work.kernel, len(work.arguments))
        block = bytearray(work.arguments)
        if self.moved:
            self._move_pointers(block)
        held = _aligned(self._with_descriptors(bytes(block)))
        pointers = (ctypes.c_void_p * max(1, len(sizes)))(*(ctypes.addressof(held) + offset for offset, _ in sizes))
        self.kept += [held, pointers]
        node = cu.CUDA_KERNEL_NODE_PARAMS()
        node.func = function
        node.gridDimX, node.gridDimY, node.gridDimZ = work.grid
        node.blockDimX, node.blockDimY, node.blockDimZ = work.block
        node.sharedMemBytes = work.shared
        node.kernelParams = ctypes.addressof(pointers)
        made = check(cu.cuGraphAddKernelNode(self.graph, after, len(after), node), f"launch of {work.kernel[:200]}")
        self._note_occupancy(work, function)
        if work.cluster:
            self._set(made, "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", cluster=work.cluster)
        if work.cooperative:
            self._set(made, "CU_LAUNCH_ATTRIBUTE_COOPERATIVE", cooperative=True)
        return made

    def _note_occupancy(self, work: Launch, function: Any) -> None:
        """Resident warps as a share of what a multiprocessor holds, as the driver counts; the least of a kernel's launches."""
        threads = work.block[0] * work.block[1] * work.block[2]
        status, blocks = cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, work.shared)
        if status != cu.CUresult.CUDA_SUCCESS:
            return  # the launch itself will be refused, and say why
        share = int(blocks) * -(-threads // 32) * 32 / self.most_threads
        self.occupancy[work.kernel] = min(share, self.occupancy.get(work.kernel, share))

    def _set(
        self, node: Any, name: str, *, cluster: tuple[int, int, int] | None = None, cooperative: bool = False
    ) -> None:
        value = cu.CUkernelNodeAttrValue()
        if cluster:
            value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        if cooperative:
            value.cooperative = 1
        check(cu.cuGraphKernelNodeSetAttribute(node, getattr(cu.CUkernelNodeAttrID, name), value), name)

    def _move_pointers(self, block: bytearray) -> None:
        """Puts real addresses where stand-ins of variables lie in the arguments, at any multiple of eight bytes."""
        for at in range(0, len(block) - 7, 8):
            value = int.from_bytes(block[at : at + 8], "little")
            real = self._real(value)
            if real != value:
                block[at : at + 8] = real.to_bytes(8, "little")

    def _fill(self, work: Fill, after: list[Any]) -> Any:
        node = cu.CUDA_MEMSET_NODE_PARAMS()
        node.dst = self._real(work.to)
        node.value = work.value
        node.elementSize = 1
        node.width = work.size
        node.height = 1
        return check(cu.cuGraphAddMemsetNode(self.graph, after, len(after), node, self.context), "fill")

    def _copy(self, after: list[Any], to: int, size: int, *, device: int = 0, host: int = 0) -> Any:
        node = cu.CUDA_MEMCPY3D()
        kinds = cu.CUmemorytype
        if host:
            node.srcMemoryType, node.srcHost = kinds.CU_MEMORYTYPE_HOST, host
        else:
            node.srcMemoryType, node.srcDevice = kinds.CU_MEMORYTYPE_DEVICE, device
        node.dstMemoryType, node.dstDevice = kinds.CU_MEMORYTYPE_DEVICE, self._real(to)
        node.WidthInBytes, node.Height, node.Depth = size, 1, 1
        return check(cu.cuGraphAddMemcpyNode(self.graph, after, len(after), node, self.context), "copy")
