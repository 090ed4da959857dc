"""The Triton driver that records: kernels are compiled for the GPU that will replay, and launches go on the tape.

Supported are Triton 3.6 (with torch 2.11) to 3.7 (with torch 2.13). The driver's interface is not documented as stable; what is
used of it is here and nowhere else.
"""

import contextlib
import re
import types

import torch
import triton
from contract import Violation
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.compiler import CUDABackend

WARP = 32
LARGEST_GRID = ((1 << 31) - 1, 65535, 65535)
SCALARS = {"i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64"}
FLOATS = {"fp16", "bf16", "fp32", "f32", "fp64"}


class Utils:
    """What Triton asks of the driver's library."""

    def __init__(self, properties):
        self.properties = properties
        self.images = {}

    def load_binary(self, name, image, shared, _device):
        """Keeps a compiled kernel. Registers and spills are read from it outside."""
        key = f"k{len(self.images)}"
        self.images[key] = (name, image if isinstance(image, bytes) else image.encode(), shared)
        return key, key, 0, 0, 1024  # a module that is None would be loaded again for every launch

    def get_device_properties(self, _device):
        return dict(self.properties)

    def set_printf_fifo_size(self, _size):
        return None


class Launcher:
    """Writes one compiled kernel's launches on the tape."""

    def __init__(self, source, metadata):
        self.source = source
        self.metadata = metadata

    def __call__(self, x, y, z, _stream, kernel, _packed, _metadata, _enter, _exit, *args):
        tape, md = RecordingDriver.tape, self.metadata
        if tape is None:
            raise Violation(
                "launched_outside", "a kernel was launched while the file was loaded; launch in the function"
            )
        grid = [int(x), int(y), int(z)]
        if min(grid) < 1:
            return
        if any(size > most for size, most in zip(grid, LARGEST_GRID, strict=True)):
            raise RuntimeError(f"invalid argument: a grid of {grid}; at most {list(LARGEST_GRID)} can be launched")
        values = list(flat(list(self.source.signature.values()), args))
        ctas = getattr(md, "num_ctas", 1)
        tape.add(
            "launch",
            kernel=kernel,
            grid=grid,
            cluster=ctas,
            args=values,
            scratch=self._scratch(getattr(md, "global_scratch_size", 0), grid, ctas),
            cooperative=bool(getattr(md, "launch_cooperative_grid", False)),
        )
        tape.note(kernel, warps=md.num_warps, stages=getattr(md, "num_stages", 0))

    def _scratch(self, size, grid, ctas):
        """The address of the memory that the compiler wants for descriptors; 0 where it wants none."""
        if not size:
            return 0
        total = size * grid[0] * grid[1] * grid[2] * ctas
        return torch.empty(total, dtype=torch.int8, device="cuda").data_ptr()


def flat(kinds, args):
    """(type, value) of every argument that the compiled kernel has, in order. Floats are written in hex: no digit is lost."""
    for kind, arg in zip(kinds, args, strict=False):
        if isinstance(kind, tuple | list):
            yield from flat(kind, arg)
        elif kind == "constexpr":
            continue
        elif kind.startswith("*"):
            yield [kind, int(arg.data_ptr() if hasattr(arg, "data_ptr") else arg or 0)]
        elif kind in SCALARS:
            yield [kind, int(arg)]
        elif kind in FLOATS:
            yield [kind, float(arg).hex()]
        else:
            raise Violation(
                "host_descriptor",
                f"an argument of type {kind[:80]} cannot be recorded; make the descriptor in the kernel, with "
                "tl.make_tensor_descriptor",
            )


class RecordingDriver(DriverBase):
    """Answers Triton for the GPU that replays."""

    tape = None

    def __init__(self, capability, properties):
        self.capability = capability
        self.utils = Utils(properties)
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, kind):
        return kind

    def get_current_target(self):
        return GPUTarget("cuda", self.capability, WARP)

    def get_active_torch_device(self):
        return torch.device("cuda", 0)

    def get_device_interface(self):
        return torch.cuda

    def get_current_device(self):
        return 0

    def set_current_device(self, _device):
        return None

    def get_current_stream(self, _device=None):
        return 1

    def get_benchmarker(self):
        return untimed

    def get_empty_cache_for_benchmark(self):
        return None

    def clear_cache(self, _cache):
        return None


def untimed(_call, *_args, quantiles=None, **_kwargs):
    """Stands in for a timer: nothing runs while it is recorded, so every configuration takes as long as the first."""
    return [1.0] * len(quantiles) if quantiles else 1.0


def scratch_allocator(size, _alignment, _stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


def install(capability, properties, *, values_only):
    """Makes Triton and torch.cuda answer for the GPU that replays. values_only: stop at Triton's own IR, for no GPU."""
    driver = RecordingDriver(capability, properties)
    triton.runtime.driver.set_active(driver)
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = untimed
    triton.set_allocator(scratch_allocator)
    _answer_for_cuda(capability, properties)
    triton.runtime.cache.triton_key = lambda: (
        triton.__version__
    )  # the cache is this run's own: no hash over all of Triton
    if values_only:
        _stop_at_ttir()
    return driver


def _stop_at_ttir():
    """Compiles to Triton's IR and no further: that is what is interpreted where no GPU is."""
    stages_of, made = CUDABackend.add_stages, CUDABackend.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.binary_ext = "ttir"

    def stages(self, found, *args, **kwargs):
        stages_of(self, found, *args, **kwargs)
        lower = found["ttir"]
        found.clear()
        found["ttir"] = lambda source, metadata: _described(lower(source, metadata), metadata)

    CUDABackend.__init__, CUDABackend.add_stages = init, stages
    CUDABackend.hash = lambda self: f"ttir-{self.target.arch}"  # no assembler is asked for its version


def _described(module, metadata):
    """The metadata that later stages would have filled in."""
    text = str(module)
    metadata["name"] = re.search(r"tt\.func public @\"?([\w.$]+)", text)[1]
    metadata |= {"shared": 0, "tmem_size": 0, "global_scratch_size": 0, "global_scratch_align": 1}
    metadata |= {"profile_scratch_size": 0, "profile_scratch_align": 1}
    return text


def _answer_for_cuda(capability, properties):
    """The calls that host code makes of torch.cuda without touching a tensor."""
    stream = types.SimpleNamespace(cuda_stream=1, device=torch.device("cuda", 0), synchronize=lambda: None)
    described = types.SimpleNamespace(
        name=properties["name"],
        major=capability // 10,
        minor=capability % 10,
        multi_processor_count=properties["multiprocessor_count"],
        shared_memory_per_block_optin=properties["max_shared_mem"],
        total_memory=properties["memory"],
        warp_size=WARP,
    )
    answers = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda _device: None,
        "synchronize": lambda _device=None: None,
        "current_stream": lambda _device=None: stream,
        "default_stream": lambda _device=None: stream,
        "get_device_capability": lambda _device=None: (capability // 10, capability % 10),
        "get_device_name": lambda _device=None: properties["name"],
        "get_device_properties": lambda _device=None: described,
        "empty_cache": lambda: None,
        "device": lambda _device=None: contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
