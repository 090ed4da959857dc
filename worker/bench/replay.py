"""Turns a tape and a cubin into a CUDA graph that can be launched again and again."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from worker.bench.descriptors import RefusedDescriptorError, encode
from worker.bench.driver import Handle, check
from worker.recording.cubin import MalformedCubinError, read_cubin
from worker.recording.entries import Copy, Fill, Upload
from worker.recording.tape import Launch, Tape

Variables = Mapping[int, NDArray[np.uint8]]
"""By address: the bytes of a module's variables as they are when it has been loaded."""


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

    @cached_property
    def variables(self) -> Variables:
        """All variables with the bytes that they begin with. To be asked for before anything is launched."""
        known = {}
        for name in self._names_of_variables:
            status, address, size = cu.cuLibraryGetGlobal(self.library, name.encode())
            if status == cu.CUresult.CUDA_SUCCESS and size:
                first = np.empty(int(size), np.uint8)
                check(cu.cuMemcpyDtoH(first.ctypes.data, address, first.nbytes), "download")
                known[int(address)] = first
        return known

    @property
    def _names_of_variables(self) -> Iterable[str]:
        try:
            return read_cubin(self.image).variables
        except MalformedCubinError:
            return ()

    def restore(self) -> None:
        """Gives every variable its first bytes again: nothing that a call left there is there in the next."""
        for address, first in self.variables.items():
            check(cu.cuMemcpyHtoD(address, first.ctypes.data, first.nbytes), "restore")


def _end(parameters: list[tuple[int, int]]) -> int:
    return max((offset + size for offset, size in parameters), default=0)


def _aligned(data: bytes) -> Handle:
    """A copy of `data` as ctypes characters that start at a multiple of 64 bytes, as descriptors have to."""
    room = ctypes.create_string_buffer(len(data) + 64)
    held = (ctypes.c_char * max(1, len(data))).from_buffer(room, -ctypes.addressof(room) % 64)
    ctypes.memmove(held, data, len(data))
    return held


class Joined(Module):
    """All cubins of one side, each kernel's name behind its cubin's prefix: Triton compiles one a variant.

    Variables are known by name where a tape names them: in the cubin without a prefix, which CUDA C++ has one of.
    """

    def __init__(self) -> None:
        self.kernels: dict[str, Handle] = {}
        self.functions: dict[str, Handle] = {}
        self.parts: dict[str, tuple[Module, str]] = {}
        self.plain: Module | None = None

    def add(self, prefix: str, module: Module) -> None:
        if not prefix:
            self.plain = module
        self.kernels |= {prefix + name: kernel for name, kernel in module.kernels.items()}
        self.functions |= {prefix + name: function for name, function in module.functions.items()}
        self.parts |= {prefix + name: (module, name) for name in module.kernels}

    def layout(self, name: str, recorded: int) -> list[tuple[int, int]]:
        module, own = self.parts[name]
        return module.layout(own, recorded)

    def variable(self, name: str) -> tuple[int, int]:
        if self.plain is None:
            raise UnplayableError(f"no variable {name[:80]}")
        return self.plain.variable(name)

    @property
    def variables(self) -> Variables:
        modules = {id(module): module for module, _ in self.parts.values()}
        return {address: first for module in modules.values() for address, first in module.variables.items()}


class Moved:
    """Where the stand-in addresses of a tape's variables really lie."""

    def __init__(self, module: Module, tape: Tape) -> None:
        spans = []
        for name, (stand_in, size) in tape.variables.items():
            address, real = module.variable(name)
            if real < size:
                raise UnplayableError(f"variable {name[:80]} has {real} bytes, not {size}")
            spans.append((stand_in, size, address))
        table = np.array(sorted(spans), np.uint64).reshape(-1, 3)
        self.starts, self.sizes, self.bases = table.T

    def _moved(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if not self.starts.size:
            return words
        at = np.maximum(np.searchsorted(self.starts, words, side="right"), 1) - 1
        offset = words - self.starts[at]
        inside = (words >= self.starts[at]) & (offset <= self.sizes[at])
        return np.where(inside, self.bases[at] + offset, words)

    def real(self, address: int) -> int:
        """A variable's stand-in address, or one past its end, as what it stands for; any other address as it is."""
        return int(self._moved(np.array([address], np.uint64))[0])

    def pointers(self, block: bytes) -> bytes:
        """An argument block with real addresses where stand-ins lie, at any multiple of eight bytes."""
        whole = len(block) // 8 * 8
        return self._moved(np.frombuffer(block[:whole], "<u8")).tobytes() + block[whole:]


class Replay:
    """A tape as an executable graph. Keeps alive what its nodes point to."""

    def __init__(self, module: Module, tape: Tape, context: Handle) -> None:
        self.module = module
        self.context = context
        most = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
        self.most_threads = int(check(cu.cuDeviceGetAttribute(most, 0)))
        self.kept: list[Handle] = []
        self.occupancy: dict[str, float] = {}
        self.moved = Moved(module, tape)
        self._prepare(tape)
        self.descriptors = self._encoded(tape)
        self.graph = check(cu.cuGraphCreate(0))
        nodes: list[Handle] = []
        for node in tape.nodes:
            nodes.append(self._add(node.work, [nodes[index] for index in node.after]))
        self.nodes = len(nodes)
        self.executable = check(cu.cuGraphInstantiate(self.graph, 0), "instantiate")

    def launch(self, stream: Handle) -> None:
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
        """Puts encoded descriptors where their tokens stand, at multiples of eight bytes; both have 128 bytes.

        Every token has eight first bytes of its own, so one look at the data is enough for any number of them.
        """
        if not self.descriptors or len(data) < 8:
            return data
        firsts = {token[:8]: token for token in self.descriptors}
        words = np.frombuffer(data[: len(data) // 8 * 8], "<u8")
        known = np.array([int.from_bytes(first, "little") for first in firsts], np.uint64)
        block = bytearray(data)
        for at in np.flatnonzero(np.isin(words, known)) * 8:
            token = firsts[data[at : at + 8]]
            if data[at : at + len(token)] == token:
                block[at : at + len(token)] = self.descriptors[token]
        return bytes(block)

    def _function(self, name: str) -> Handle:
        if name not in self.module.functions:
            raise UnplayableError(f"no kernel {name[:200]}")
        return self.module.functions[name]

    def _real(self, address: int) -> int:
        return self.moved.real(address)

    def _add(self, work: Handle, after: list[Handle]) -> Handle:
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

    def _launch(self, work: Launch, after: list[Handle]) -> Handle:
        function = self._function(work.kernel)
        sizes = self.module.layout(work.kernel, len(work.arguments))
        held = _aligned(self._with_descriptors(self.moved.pointers(work.arguments)))
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

    def _note_occupancy(self, work: Launch, function: Handle) -> None:
        """Resident warps as a share of what a multiprocessor holds, as the driver counts; the least of a kernel's
        launches.
        """
        threads = work.block[0] * work.block[1] * work.block[2]
        status, blocks = cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, work.shared)
        if status != cu.CUresult.CUDA_SUCCESS:
            return  # the launch itself will be refused, and say why
        share = int(blocks) * -(-threads // 32) * 32 / self.most_threads
        self.occupancy[work.kernel] = min(share, self.occupancy.get(work.kernel, share))

    def _set(
        self, node: Handle, name: str, *, cluster: tuple[int, int, int] | None = None, cooperative: bool = False
    ) -> None:
        value = cu.CUkernelNodeAttrValue()
        if cluster:
            value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        if cooperative:
            value.cooperative = 1
        check(cu.cuGraphKernelNodeSetAttribute(node, getattr(cu.CUkernelNodeAttrID, name), value), name)

    def _fill(self, work: Fill, after: list[Handle]) -> Handle:
        node = cu.CUDA_MEMSET_NODE_PARAMS()
        node.dst = self._real(work.to)
        node.value = work.value
        node.elementSize = 1
        node.width = work.size
        node.height = 1
        return check(cu.cuGraphAddMemsetNode(self.graph, after, len(after), node, self.context), "fill")

    def _copy(self, after: list[Handle], to: int, size: int, *, device: int = 0, host: int = 0) -> Handle:
        node = cu.CUDA_MEMCPY3D()
        kinds = cu.CUmemorytype
        if host:
            node.srcMemoryType, node.srcHost = kinds.CU_MEMORYTYPE_HOST, host
        else:
            node.srcMemoryType, node.srcDevice = kinds.CU_MEMORYTYPE_DEVICE, device
        node.dstMemoryType, node.dstDevice = kinds.CU_MEMORYTYPE_DEVICE, self._real(to)
        node.WidthInBytes, node.Height, node.Depth = size, 1, 1
        return check(cu.cuGraphAddMemcpyNode(self.graph, after, len(after), node, self.context), "copy")
