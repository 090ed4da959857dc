"""The operations of Triton's IR over numpy, for all programs of a launch side by side, on memory with exact bounds.

A value that differs between programs has their axis in front. `A` says which programs are active where they have parted: None
when all are. What is inactive is computed too and thrown away, except that it neither loads nor stores.

Numerics. Products of fp16 and bf16 are exact in float32 and are summed there, as tensor cores do; float32 operands of a `tf32`
product lose their low 13 bits first. bfloat16 values are kept as the float32 that they equal and rounded to nearest even after
each operation.
"""

import math

import numpy as np

DTYPES = {
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
STORED = {"bf16": np.uint16, "i1": np.uint8}
COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal,
    "oeq": np.equal, "olt": np.less, "ole": np.less_equal, "ogt": np.greater, "oge": np.greater_equal, "une": np.not_equal,
}  # fmt: skip
MOST_WAITS = 10_000
WAITS = (
    f"a loop with an atomic operation went round {MOST_WAITS:,} times: programs run side by side here, and one that waits for "
    "another, as for a lock, may wait without end"
)
UNSIGNED = {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}


class FaultError(Exception):
    """A kernel did what a GPU would fault on. reason: a word; line: of the submitted file, 0 if unknown."""

    def __init__(self, reason, message, line):
        super().__init__(message)
        self.reason = reason
        self.line = line


class Buffer:
    """Memory that a kernel may touch: its name, first address and bytes."""

    def __init__(self, name, address, data):
        self.name = name
        self.address = address
        self.data = data

    @property
    def end(self):
        return self.address + len(self.data)


def dtype_of(element):
    return np.int64 if element.startswith("ptr:") else DTYPES[element]


class Unstated:
    """What stands in the lanes of which a masked load says nothing. lines: of the loads that left any; others: lines of those
    where another value stands than usual."""

    def __init__(self, others=()):
        self.lines = set()
        self.others = frozenset(others)

    def value(self, line, stored):
        """NaN, or a whole number that is no index; the other value is a number as good as any."""
        self.lines.add(line)
        if line in self.others:
            return stored.type(0x4040) if stored == np.uint16 else stored.type(3)
        if stored.kind == "f":
            return stored.type(np.nan)
        return stored.type(0x7FFF) if stored == np.uint16 else stored.type(np.iinfo(stored).max // 3 * 2)


def round_bf16(values):
    """float32 rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(np.nan), rounded.view(np.float32))


def round_tf32(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x0FFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


class Machine:
    """Runs the programs of one launch."""

    def __init__(self, grid, programs, buffers, unstated):
        x, y = grid[0], grid[1]
        numbers = np.asarray(programs, np.int64)
        self.programs = len(numbers)
        self.ids = [part.astype(np.int32) for part in (numbers % x, numbers // x % y, numbers // (x * y))]
        self.counts = [np.int32(size) for size in grid]
        self.buffers = buffers
        self.unstated = unstated

    # --- shapes

    def constant(self, said, shape, element):
        if isinstance(said, list):
            return np.array([self._number(each, element) for each in said], dtype_of(element)).reshape(shape)
        value = dtype_of(element)(self._number(said, element))
        return np.broadcast_to(value, shape) if shape else value

    def _number(self, said, element):
        if said in ("true", "false"):
            return said == "true"
        if not said.startswith("0x"):
            return float(said) if element[0] in "fb" else int(said)
        bits = int(said, 16)
        if element == "bf16":
            return np.uint32(bits << 16).view(np.float32)
        if element[0] == "f":
            return np.dtype(f"u{SIZES[element]}").type(bits).view(dtype_of(element))
        return bits

    def spread(self, value, rank):
        """A scalar, one a program or one for all, with axes for a tensor of `rank`."""
        value = np.asarray(value)
        return value.reshape(value.shape + (1,) * rank)

    def splat(self, value, shape):
        value = self.spread(value, len(shape))
        return np.broadcast_to(value, value.shape[: value.ndim - len(shape)] + shape)

    def unsplat(self, value, rank):
        return value.reshape(value.shape[: value.ndim - rank])

    def broadcast(self, value, shape):
        return np.broadcast_to(value, value.shape[: value.ndim - len(shape)] + shape)

    def permute(self, value, order):
        extra = value.ndim - len(order)
        return value.transpose([*range(extra), *(extra + axis for axis in order)])

    def reshape(self, value, rank, shape):
        return value.reshape(value.shape[: value.ndim - rank] + shape)

    def join(self, a, b):
        return np.stack(np.broadcast_arrays(a, b), axis=-1)

    def concatenate(self, a, b):
        a, b = self._alike(a, b, 1)
        return np.concatenate([a, b], axis=-1)

    def _alike(self, a, b, rank):
        if a.ndim == b.ndim:
            return a, b
        lead = max(a.shape[: a.ndim - rank], b.shape[: b.ndim - rank])
        return tuple(np.broadcast_to(each, lead + each.shape[each.ndim - rank :]) for each in (a, b))

    # --- arithmetic

    def rounded(self, value):
        return round_bf16(value)

    def compare(self, predicate, a, b):
        if predicate in COMPARE:
            return COMPARE[predicate](a, b)
        a, b = np.asarray(a), np.asarray(b)
        if predicate in UNSIGNED and a.dtype.kind == "i":
            unsigned = f"u{a.dtype.itemsize}"
            return UNSIGNED[predicate](a.view(unsigned), b.view(unsigned))
        either = np.isnan(a) | np.isnan(b)
        if predicate in ("uno", "ord"):
            return either if predicate == "uno" else ~either
        if predicate == "one":
            return ~either & (a != b)
        return either | COMPARE["o" + predicate[1:]](a, b)

    def divide_whole(self, a, b):
        self._nonzero(b)
        quotient = np.abs(a.astype(np.int64)) // np.abs(np.asarray(b).astype(np.int64))
        return (np.sign(a) * np.sign(b) * quotient).astype(np.asarray(a).dtype)

    def _nonzero(self, b):
        if not np.all(b):
            raise FaultError("division_by_zero", "a whole number was divided by zero", 0)

    def _unsigned(self, operation, a, b):
        a, b = np.asarray(a), np.asarray(b)
        kind = f"u{a.dtype.itemsize}"
        return operation(a.view(kind), b.view(kind)).view(a.dtype)

    def divide_unsigned(self, a, b):
        self._nonzero(b)
        return self._unsigned(np.floor_divide, a, b)

    def remainder_unsigned(self, a, b):
        self._nonzero(b)
        return self._unsigned(np.remainder, a, b)

    def shift_unsigned(self, a, b):
        return self._unsigned(np.right_shift, a, b)

    def maximum_unsigned(self, a, b):
        return self._unsigned(np.maximum, a, b)

    def minimum_unsigned(self, a, b):
        return self._unsigned(np.minimum, a, b)

    def high_product(self, a, b):
        a, b = (np.asarray(each).view(np.uint32).astype(np.uint64) for each in (a, b))
        return ((a * b) >> np.uint64(32)).astype(np.uint32).view(np.int32)

    def rsqrt(self, a):
        return (1 / np.sqrt(a)).astype(a.dtype)

    def fma(self, a, b, c):
        return a * b + c

    def erf(self, a):
        return np.vectorize(math.erf, otypes=[np.asarray(a).dtype])(a)

    def clamp(self, a, low, high):
        return np.fmin(np.fmax(a, low), high)

    def cast(self, value, _source, element):
        return np.asarray(value).astype(dtype_of(element))[()]

    def truncate(self, value, _source, element):
        return (np.asarray(value) & 1).astype(bool)[()] if element == "i1" else self.cast(value, _source, element)

    def cast_unsigned(self, value, source, element):
        value = np.asarray(value)
        unsigned = value if source == "i1" else value.view(f"u{value.dtype.itemsize}")
        return unsigned.astype(dtype_of(element))[()]

    def bitcast(self, value, source, element):
        if source.startswith("ptr:"):
            return value
        value = np.ascontiguousarray(value)
        bits = (value.view(np.uint32) >> 16).astype(np.uint16) if source == "bf16" else value
        if element == "bf16":
            return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return bits.view(dtype_of(element))[()]

    def gather(self, source, index, axis, line):
        if index.size and not 0 <= index.min() <= index.max() < source.shape[axis]:
            raise FaultError(
                "illegal_address", f"tl.gather takes an index outside of 0 to {source.shape[axis] - 1}", line
            )
        rank = max(source.ndim, index.ndim)
        source, index = (each.reshape((1,) * (rank - each.ndim) + each.shape) for each in (source, index))
        return np.take_along_axis(source, index.astype(np.int64), axis=axis)

    def dot(self, a, b, c, element, into, precision):
        if element in ("f16", "bf16", "f32"):
            a, b = a.astype(np.float32), b.astype(np.float32)
        elif element[0] == "i":
            a, b = a.astype(np.int32), b.astype(np.int32)
        if element == "f32" and precision == "tf32":
            a, b = round_tf32(a), round_tf32(b)
        if a.ndim == 3 and b.ndim == 2:  # one large product is faster than many small ones
            product = (a.reshape(-1, a.shape[-1]) @ b).reshape(a.shape[:-1] + b.shape[-1:])
        else:
            product = a @ b
        return (product + c).astype(dtype_of(into))

    # --- programs that part

    def _active(self, active, rank):
        return None if active is None else active.reshape((self.programs,) + (1,) * rank)

    def _selected(self, live, new, old, ranks):
        return tuple(
            np.where(self._active(live, rank), one, other) for one, other, rank in zip(new, old, ranks, strict=True)
        )

    def count(self, active, start, stop, step, carried, ranks, body):
        """A counted loop: in step where the bounds are everyone's, else until the last program is through."""
        if np.ndim(start) == np.ndim(stop) == np.ndim(step) == 0:
            for index in range(int(start), int(stop), int(step)):
                carried = body(active, type(start)(index), *carried)
            return carried
        start, stop, step = (np.broadcast_to(each, (self.programs,)) for each in (start, stop, step))
        while True:
            live = start < stop if active is None else (start < stop) & active
            if not live.any():
                return carried
            if live.all():
                carried = body(None, start, *carried)
            else:
                carried = self._selected(live, body(live, start, *carried), carried, ranks)
            start = start + step

    def repeat(self, active, values, ranks, before, after, atomic_line):
        """A while loop: `before` gives the condition and what is passed on, `after` the next values.

        atomic_line: of a loop with atomic operations, which may wait for a program that runs after it, or 0.
        """
        passed = None
        live = active
        rounds = 0
        while True:
            rounds += 1
            if atomic_line and rounds == MOST_WAITS:
                raise FaultError("cannot_interpret", WAITS, atomic_line)
            condition, *now = before(live, *values)
            if np.ndim(condition) == 0 and live is None:
                if not condition:
                    return tuple(now) if passed is None else self._kept(passed, now, None, ranks[1])
                values = after(None, *now)
                continue
            condition = np.broadcast_to(condition, (self.programs,))
            going = condition if live is None else condition & live
            passed = tuple(now) if passed is None else self._kept(passed, now, live, ranks[1])
            if not going.any():
                return passed
            values = self._selected(going, after(going, *now), values, ranks[0])
            live = going

    def _kept(self, passed, now, live, ranks):
        return tuple(now) if live is None else self._selected(live, now, passed, ranks)

    def choose(self, active, condition, then, otherwise, ranks):
        """A branch: one side where everyone agrees, else both, each for those who take it."""
        if np.ndim(condition) == 0:
            side = then if condition else otherwise
            return side(active) if side else ()
        yes = condition if active is None else condition & active
        no = ~condition if active is None else ~condition & active
        if not no.any() or not yes.any():
            side = then if yes.any() else otherwise
            return side(active) if side else ()
        first = then(yes)
        second = otherwise(no) if otherwise else ()
        return self._selected(condition, first, second, ranks) if ranks else ()

    # --- folding along an axis

    def reduce(self, values, axis, combine):
        """A tree over neighbours, so that the order of operands is kept."""
        while values[0].shape[axis] > 1:
            halves = [
                tuple(np.take(value, range(first, value.shape[axis], 2), axis=axis) for value in values)
                for first in (0, 1)
            ]
            values = combine(None, *halves[0], *halves[1])
        return tuple(np.take(value, 0, axis=axis) for value in values)

    def scan(self, values, axis, backwards, combine):
        length = values[0].shape[axis]
        order = range(length - 1, -1, -1) if backwards else range(length)
        found, held = {}, None
        for at in order:
            each = tuple(np.take(value, at, axis=axis) for value in values)
            held = each if held is None else combine(None, *held, *each)
            found[at] = held
        return tuple(np.stack([found[at][part] for at in range(length)], axis=axis) for part in range(len(values)))

    # --- memory

    def move(self, pointer, offset, element):
        size = SIZES.get(element.removeprefix("ptr:"), 8)
        return np.asarray(pointer, np.int64) + np.asarray(offset, np.int64) * size

    def _lanes(self, active, mask, shape, rank):
        """Which lanes take part: None for all of them."""
        lanes = None if mask is None else np.broadcast_to(mask, shape)
        programs = self._active(active, rank)
        if programs is not None:
            lanes = np.broadcast_to(programs, shape) if lanes is None else lanes & programs
        return lanes

    def _places(self, pointer, lanes, element, line, what):
        """(buffer, index into its elements, lanes) for each buffer that is touched. Raises FaultError for what is outside."""
        size = SIZES.get(element, 8)
        touched = pointer if lanes is None else pointer[lanes]
        if not touched.size:
            return
        low, high = int(touched.min()), int(touched.max())
        left = np.ones(pointer.shape, bool) if lanes is None else lanes
        for buffer in self.buffers:
            if buffer.address <= low and high + size <= buffer.end:
                yield buffer, self._index(pointer, buffer, size, left, line), lanes
                return
        left = left.copy()
        for buffer in self.buffers:
            inside = left & (pointer >= buffer.address) & (pointer + size <= buffer.end)
            if inside.any():
                yield buffer, self._index(pointer, buffer, size, inside, line), inside
                left &= ~inside
        if left.any():
            raise self._outside(int(pointer[left].flat[0]), int(left.sum()), what, line)

    def _index(self, pointer, buffer, size, lanes, line):
        offset = pointer - buffer.address
        if size > 1 and (offset[lanes] % size).any():
            raise FaultError("misaligned_address", f"an address is no multiple of {size} bytes", line)
        return offset // size

    def _outside(self, address, count, what, line):
        def distance(buffer):
            return max(buffer.address - address, address - buffer.end + 1)

        near = min(self.buffers, key=distance)
        past = address - near.end
        where = f"{past} bytes past the end" if past >= 0 else f"{near.address - address} bytes before the start"
        lanes = f"{count} lane{'s' if count != 1 else ''}"
        return FaultError(
            "illegal_address", f"{lanes} of a {what} lie outside of memory, the first {where} of {near.name!r}", line
        )

    def load(self, active, pointer, mask, other, element, rank, line):
        pointer = np.asarray(pointer)
        if mask is not None or active is not None:
            lead = (
                (np.shape(mask) if mask is not None else ()),
                ((self.programs,) + (1,) * rank if active is not None else ()),
            )
            pointer = np.broadcast_to(pointer, np.broadcast_shapes(pointer.shape, *lead))
        lanes = self._lanes(active, mask, pointer.shape, rank)
        stored = STORED.get(element, dtype_of(element))
        left_out = other is None and lanes is not None and not lanes.all()
        kind = np.dtype(stored)
        loaded = np.full(pointer.shape, self.unstated.value(line, kind) if left_out else kind.type(0))
        for buffer, index, part in self._places(pointer, lanes, element, line, "load"):
            held = buffer.data.view(stored)
            if part is None:
                loaded = held[index]
            else:
                loaded[part] = held[index[part]]
        values = self._read(loaded, element)
        if other is not None and lanes is not None:
            values = np.where(lanes, values, other)
        return values

    def _read(self, stored, element):
        if element == "bf16":
            return (stored.astype(np.uint32) << 16).view(np.float32)
        return stored.astype(bool) if element == "i1" else stored

    def _written(self, values, element):
        if element == "bf16":
            bits = np.ascontiguousarray(round_bf16(values)).view(np.uint32)
            return (bits >> 16).astype(np.uint16)
        return np.asarray(values).astype(STORED.get(element, dtype_of(element)))

    def store(self, active, pointer, value, mask, element, rank, line):
        shapes = [np.shape(each) for each in (pointer, value, mask) if each is not None]
        shapes += [(self.programs,) + (1,) * rank] if active is not None else []
        shape = np.broadcast_shapes(*shapes)
        pointer = np.broadcast_to(pointer, shape)
        lanes = self._lanes(active, mask, shape, rank)
        values = np.broadcast_to(self._written(value, element), shape)
        for buffer, index, part in self._places(pointer, lanes, element, line, "store"):
            held = buffer.data.view(values.dtype)
            if part is None:
                held[index] = values
            else:
                held[index[part]] = values[part]

    def atomic(self, active, what, pointer, value, mask, element, rank, line):
        """Every program for itself and one lane after another: what comes back is what stood there before."""
        shape = (self.programs, *np.shape(pointer)[np.ndim(pointer) - rank :])
        pointer, value = np.broadcast_to(pointer, shape), np.broadcast_to(self._written(value, element), shape)
        lanes = self._lanes(active, mask, shape, rank)
        before = np.zeros(shape, value.dtype)
        combine = ATOMIC.get(what)
        if combine is None or element == "bf16":
            raise FaultError("cannot_interpret", f"atomic {what} on {element} is not interpreted here", line)
        for buffer, index, part in self._places(pointer, lanes, element, line, "atomic operation"):
            held = buffer.data.view(value.dtype)
            for at in np.ndindex(shape) if part is None else map(tuple, np.argwhere(part)):
                before[at] = held[index[at]]
                held[index[at]] = combine(before[at], value[at])
        return self._read(before, element)

    def confirm(self, active, condition, said, rank, line):
        lanes = None if active is None else self._lanes(active, None, np.shape(condition), rank)
        held = np.asarray(condition) if lanes is None else np.asarray(condition) | ~lanes
        if not held.all():
            raise FaultError("assertion", f"an assert in a kernel did not hold: {said[:200]}", line)


ATOMIC = {
    "add": np.add,
    "fadd": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _old, new: new,
}
