"""Tensors of a GPU that is not there: shapes, strides, dtypes and addresses, and no data.

Theory of operation. The seam runs where no GPU is, on tensors of torch's `meta` device that say they are on `cuda:0`. A
function mode sees every torch function that is called and hands it the bare meta tensors; below it a dispatch mode sees the
operators that this comes down to. Views cost nothing and are let through; allocations, fills and copies go on the tape; any
other operator on device memory is a `Violation`, because what it would compute exists nowhere. So host code has nothing to
compute an answer from, whatever it calls and whatever it patches: values come to be where kernels run, in another process.
"""

import math

import torch
from contract import Violation
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

PAGE = 2 << 20
ALIGNMENT = 16
MAX_UPLOAD = 1 << 20
READS = {"item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__len__array", "__array__"}
ALLOCATE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILL = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
FILL_WITH = {"full": 1, "full_like": 1, "new_full": 2}  # where the value stands among the arguments
KEEP = {"alias", "detach", "lift_fresh", "_unsafe_view", "is_same_size", "_reshape_alias"}


class DeviceTensor(torch.Tensor):
    """A tensor in the memory of the GPU that will replay: everything about it is known but its values."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if Recording.active is None:
            raise Violation("reads_values", f"{name_of(func)} was called on a device tensor outside of the seam")
        return Recording.active.__torch_function__(func, types, args, kwargs)

    @property
    def device(self):
        return torch.device("cuda", 0)

    is_cuda = property(lambda _: True)
    is_cpu = property(lambda _: False)
    is_meta = property(lambda _: False)

    def get_device(self):
        return 0

    def data_ptr(self):
        return Recording.active.memory.address(bare(self))

    def __repr__(self, **_):
        return f"<{list(self.shape)} {self.dtype} on cuda:0, no values while it is recorded>"

    __str__ = __repr__

    def __format__(self, _spec):
        return repr(self)

    def __reduce_ex__(self, _protocol):
        raise Violation("reads_values", "a device tensor was pickled or copied as an object; it has no values here")


def name_of(func):
    return (resolve_name(func) or getattr(func, "__name__", str(func)))[:100]


def bare(thing):
    """The meta tensor under a device tensor; other things as they are, devices and their names moved to `meta`."""
    if isinstance(thing, DeviceTensor):
        with torch._C.DisableTorchFunctionSubclass():
            return thing.as_subclass(torch.Tensor)
    if isinstance(thing, torch.device) and thing.type == "cuda":
        return torch.device("meta")
    if isinstance(thing, str) and (thing == "cuda" or thing.startswith("cuda:")):
        return "meta"
    return thing


def worn(thing):
    """The device tensor over a meta tensor; other things as they are, the device `meta` called by its name on the GPU."""
    if isinstance(thing, torch.Tensor) and thing.device.type == "meta" and not isinstance(thing, DeviceTensor):
        with torch._C.DisableTorchFunctionSubclass():
            return thing.as_subclass(DeviceTensor)
    if isinstance(thing, torch.device) and thing.type == "meta":
        return torch.device("cuda", 0)
    return thing


def extent(tensor):
    """Bytes from a tensor's first element to past its last. Raises Violation where there are gaps between them."""
    if tensor.numel() and not tensor.is_contiguous():
        raise Violation(
            "torch_operator", "a fill or a copy of a tensor with gaps cannot be recorded; do it in a kernel"
        )
    return tensor.numel() * tensor.element_size()


def row_major(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(1, size)
    return strides


def layout(name, args, kwargs):
    """(shape, strides, dtype) of what an allocating operator makes."""
    like = args[0] if isinstance(args[0], torch.Tensor) else None
    shape = list(like.shape if name.endswith("_like") or name == "clone" else args[1 if like is not None else 0])
    if name.endswith("empty_strided"):
        strides = list(args[2 if like is not None else 1])
    elif name.endswith("_like") or name == "clone":
        order = sorted(range(len(shape)), key=lambda axis: -like.stride(axis))  # as torch keeps the order of axes
        packed = row_major([shape[axis] for axis in order])
        strides = [packed[order.index(axis)] for axis in range(len(shape))]
    else:
        strides = row_major(shape)
    dtype = kwargs.get("dtype") or (like.dtype if like is not None else None)
    if dtype is None and name == "full" and not isinstance(args[1], float):
        dtype = torch.bool if isinstance(args[1], bool) else torch.int64
    return shape, strides, dtype or torch.get_default_dtype()


class Memory:
    """Device memory of one recorded call: addresses of what was given, and of what is allocated, in order."""

    def __init__(self, slots, at_end):
        self.slots = slots
        self.at_end = at_end
        self.known = {}
        self.sizes = []
        self.kept = []

    def adopt(self, tensor, address):
        self.known[tensor.untyped_storage()._cdata] = address
        self.kept.append(tensor)  # a storage that is freed would lend its identity to another one

    def allocate(self, tensor):
        if len(self.sizes) == len(self.slots):
            raise Violation("workspace", f"more than {len(self.slots)} tensors were allocated in one call")
        size = max(ALIGNMENT, math.ceil(tensor.untyped_storage().nbytes() / ALIGNMENT) * ALIGNMENT)
        mapping = self.slots[len(self.sizes)]
        self.sizes.append(size)
        self.adopt(tensor, mapping + (-size % PAGE if self.at_end else 0))

    def address(self, tensor):
        base = self.known.get(tensor.untyped_storage()._cdata)
        if base is None:
            raise Violation("unknown_memory", "a tensor of another call was used; allocate inside the function")
        return base + tensor.storage_offset() * tensor.element_size()


class Rules(TorchDispatchMode):
    """What each operator on device memory comes to."""

    def __init__(self, memory, tape):
        super().__init__()
        self.memory = memory
        self.tape = tape
        self.called = None

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # or torch imports its compiler, for seconds, to keep it away from this class

    def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        on_device = [arg for arg in (*args, *kwargs.values()) if _is_meta(arg)]
        if not on_device and kwargs.get("device") != torch.device("meta"):
            return func(*args, **kwargs)
        if func.is_view or name in KEEP:
            return func(*args, **kwargs)
        if name in ALLOCATE or name in FILL or name in FILL_WITH:
            return self._made(func, name, args, kwargs)
        if name in ("zero_", "fill_"):
            self._fill(args[0], 0 if name == "zero_" else args[1])
            return args[0]
        if name == "clone" or (name == "copy_" and _is_meta(args[1]) and args[0].dtype == args[1].dtype):
            return self._copied(name, args, kwargs)
        if name == "_to_copy":
            return self._moved(args, kwargs)
        raise self._refused(name)

    def _refused(self, name):
        if name in ("_local_scalar_dense", "is_nonzero", "equal", "item"):
            return self._reads()
        return Violation(
            "torch_operator",
            f"{name_of(self.called)} (aten::{name}) was called on device memory. The stage asks for Triton kernels: torch may "
            "allocate, make views, fill with a constant and copy, and nothing else can be recorded",
        )

    def _reads(self):
        return Violation(
            "reads_values",
            f"{name_of(self.called)} reads values of a device tensor. Host code is recorded without data: decide on shapes, "
            "strides and dtypes, and leave values to kernels",
        )

    def _made(self, func, name, args, kwargs):
        target = kwargs.get("device")
        if (target or (args[0].device if isinstance(args[0], torch.Tensor) else None)) != torch.device("meta"):
            return func(*args, **kwargs)
        shape, strides, dtype = layout(name, args, kwargs)
        made = self._allocated(shape, strides, dtype)
        if name in FILL or name in FILL_WITH:
            at = FILL_WITH.get(name)
            self._fill(made, FILL[name] if at is None else (*args, kwargs.get("fill_value"))[at])
        return made

    def _allocated(self, shape, strides, dtype):
        """Not by the operator that was called: for some, torch has only a Python implementation on meta tensors, and to run
        that it imports its compiler, for seconds."""
        made = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        self.memory.allocate(made)
        return made

    def _fill(self, tensor, value):
        size = extent(tensor)
        if isinstance(value, torch.Tensor):
            raise self._reads() if _is_meta(value) else self._refused("fill_")
        pattern = bytes(torch.full((1,), value, dtype=tensor.dtype).view(torch.uint8).numpy())
        if not size:
            return
        if len(set(pattern)) == 1:
            self.tape.add("fill", to=self.memory.address(tensor), value=pattern[0], bytes=size)
        else:
            self._upload(tensor, pattern * tensor.numel())

    def _upload(self, tensor, data):
        if len(data) > MAX_UPLOAD:
            raise Violation(
                "upload_too_large", f"{len(data)} bytes were sent to the device; {MAX_UPLOAD} can be recorded"
            )
        self.tape.add("upload", to=self.memory.address(tensor), data=data.hex())

    def _copied(self, name, args, kwargs):
        if name == "clone":
            made = to = self._allocated(*layout(name, args, kwargs))
            source = args[0]
        else:
            made = to = args[0]
            source = args[1]
        size = extent(to)
        if size != extent(source):
            raise self._refused(name)
        if size:
            self.tape.add("copy", to=self.memory.address(to), bytes=size, **{"from": self.memory.address(source)})
        return made

    def _moved(self, args, kwargs):
        """A cast (refused), values to the host (refused), or host values to the device, as they are now."""
        if _is_meta(args[0]):
            to = kwargs.get("device")
            raise self._refused("_to_copy") if to in (None, torch.device("meta")) else self._reads()
        host = args[0].to(kwargs.get("dtype") or args[0].dtype).contiguous()
        made = self._allocated(host.shape, host.stride(), host.dtype)
        if host.numel():
            self._upload(made, bytes(host.reshape(-1).view(torch.uint8).numpy()))
        return made


def _is_meta(thing):
    return isinstance(thing, torch.Tensor) and thing.device.type == "meta"


class Recording(TorchFunctionMode):
    """Stands between host code and torch while a call is recorded."""

    active = None

    def __init__(self, memory, tape):
        super().__init__()
        self.memory = memory
        self.rules = Rules(memory, tape)

    def __enter__(self):
        Recording.active = self
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        Recording.active = None

    def __torch_function__(self, func, _types, args=(), kwargs=None):
        self.rules.called = func
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return (
                args[0]
                if isinstance(args[0], DeviceTensor)
                else worn(self._call(torch.Tensor.to, (args[0], "meta"), {}))
            )
        if name == "__setitem__" and isinstance(args[0], DeviceTensor) and isinstance(args[2], int | float):
            self.__torch_function__(torch.Tensor.fill_, _types, (args[0][args[1]], args[2]))
            return None
        if name in READS and args and isinstance(args[0], DeviceTensor):
            raise self.rules._reads()
        return tree_map(worn, self._call(func, tree_map(bare, args), tree_map(bare, kwargs or {})))

    def _call(self, func, args, kwargs):
        with self.rules:
            return func(*args, **kwargs)

    def given(self, shape, dtype, address):
        """A row-major tensor that the seam is called with, or that it has to refuse; it is no allocation of the seam's."""
        with torch._C.DisableTorchFunction():
            made = torch.empty(shape, dtype=dtype, device="meta")
        self.memory.adopt(made, address)
        return worn(made)
