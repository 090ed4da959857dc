"""Matrix products by mma.sync and wmma on fragments that are laid out as the PTX ISA states it ("Matrix Fragments for mma")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
        "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
LANES = np.arange(32)
DECLARED = {"g": "f64", "f": "f32", "r": "b32"}
"""The type of a register by the first letter of its name."""


def encoded(kind: str, values: Ints) -> Ints:
    """Small whole numbers as bits of a type; all of them are exact in every type that is asked for."""
    if kind in ("s32", "s8", "u8", "s4", "u4", "b1"):
        return values & (1 << BITS[kind]) - 1
    if kind == "f64":
        return values.astype(np.float64).view(np.int64)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.int64)
    if kind == "e5m2":
        return values.astype(np.float16).view(np.uint16).astype(np.int64) >> 8
    if kind == "e4m3":
        halves = (
            values.astype(np.float16).view(np.uint16).astype(np.int64)
        )  # 5 bits of exponent to 4, 10 of fraction to 3
        return np.where(values == 0, 0, (halves >> 8 & 0x80) | ((halves & 0x7FFF) >> 7) - (8 << 3))
    bits = values.astype(np.float32).view(np.uint32).astype(np.int64)
    return bits >> 16 if kind == "bf16" else bits


def drawn(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
    low, high = {"b1": (0, 2), "u4": (0, 16), "s4": (-8, 8), "u8": (0, 256), "s8": (-128, 128)}.get(kind, (-7, 8))
    return rng.integers(low, high, shape)


@dataclass(frozen=True)
class Product:
    """d = a × b + c by one instruction. opcode: in full. kinds: of d, a, b, c."""

    opcode: str
    m: int
    n: int
    k: int
    kinds: tuple[str, str, str, str]
    join: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Words of 32 bits that a lane holds of each matrix."""
        sizes = {"d": self.m * self.n, "a": self.m * self.k, "b": self.k * self.n, "c": self.m * self.n}
        return {
            name: size * BITS[kind] // 32 // 32 for (name, size), kind in zip(sizes.items(), self.kinds, strict=True)
        }

    def cells(self, which: str) -> tuple[Ints, Ints]:
        """Row and column of each element that a lane holds, by lane and element, in the order of its registers."""
        kind = self.kinds["dabc".index(which)]
        group, member = LANES[:, None] // 4, LANES[:, None] % 4
        count = max(1, 32 // BITS[kind])
        elements = np.arange(self.counts[which] * 32 // BITS[kind])[None, :]
        register, inside = elements // count, elements % count
        if which in "cd":
            return group + 8 * (elements // 2), member * 2 + elements % 2
        if which == "a":
            return group + 8 * (register % 2) + 0 * inside, member * count + inside + register // 2 * 4 * count
        return member * count + inside + register * 4 * count, group + 0 * elements

    def packed(self, which: str, matrix: Ints) -> NDArray[np.uint32]:
        """The registers of every lane, as words."""
        kind = self.kinds["dabc".index(which)]
        bits = encoded(kind, matrix[self.cells(which)])
        if kind == "f64":
            return np.ascontiguousarray(bits).view(np.uint32)
        per = 32 // BITS[kind]
        parts = bits.reshape(32, -1, per) << (np.arange(per) * BITS[kind])
        return parts.sum(axis=2).astype(np.uint32)

    def wanted(self, a: Ints, b: Ints, c: Ints) -> Ints:
        if self.join:
            joined = a[:, :, None] & b[None] if self.join == "and" else a[:, :, None] ^ b[None]
            return joined.sum(axis=1) + c
        limit = (1 << 31) - 1
        exact = a @ b + c
        return np.clip(exact, -limit - 1, limit) if "satfinite" in self.opcode else exact

    def text(self, name: str) -> str:
        """A kernel that reads every lane's registers of a, b and c one after another and writes those of d."""
        counts, lines, lists = self.counts, [], {}
        at = 0
        for which, kind in zip("abcd", (*self.kinds[1:], self.kinds[0]), strict=True):
            size = 2 if kind == "f64" else 1
            prefix = {"f64": "g", "f32": "f"}.get(kind, "r")
            registers = [f"%{prefix}{which}{i}" for i in range(counts[which] // size)]
            lists[which] = f"{{{', '.join(registers)}}}"
            lines += [f".reg .{DECLARED[prefix]} {it};" for it in registers]
            if which != "d":
                lines += [
                    f"ld.global.b{32 * size} {it}, [%in+{4 * (at + size * i)}];" for i, it in enumerate(registers)
                ]
                at += counts[which]
        lines.append(f"{self.opcode} {', '.join(lists[which] for which in 'dabc')};")
        size = 2 if self.kinds[0] == "f64" else 1
        lines += [
            f"st.global.b{32 * size} [%out+{4 * size * i}], {it};"
            for i, it in enumerate(lists["d"].strip("{}").split(", "))
        ]
        return kernel(name, 4 * at, 4 * counts["d"], lines)


def kernel(name: str, given: int, written: int, lines: list[str], before: str = "") -> str:
    """A kernel whose lanes read and write that many bytes each, one after another."""
    return (
        f"{before}.visible .entry {name}(.param .u64 {name}_in, .param .u64 {name}_out) {{\n"
        ".reg .b64 %in, %out, %w; .reg .b32 %t;\n"
        f"ld.param.u64 %in, [{name}_in]; ld.param.u64 %out, [{name}_out]; mov.u32 %t, %tid.x;\n"
        f"mul.wide.u32 %w, %t, {given}; add.s64 %in, %in, %w; mul.wide.u32 %w, %t, {written}; add.s64 %out, %out, %w;\n"
        + "\n".join(lines)
        + "\nret;\n}\n"
    )


def _mma(shape: str, kinds: str, options: str = "", behind: str = "", join: str = "") -> Product:
    m, n, k = (int(part) for part in shape.replace("m", "").replace("n", " ").replace("k", " ").split())
    d, a, b, c = kinds.split()
    opcode = f"mma.sync.aligned.{shape}.row.col{options}.{d}.{a}.{b}.{c}{behind}"
    return Product(opcode, m, n, k, (d, a, b, c), join)


PRODUCTS = [
    *(_mma(shape, kinds) for shape in ("m16n8k8", "m16n8k16") for kinds in ("f32 f16 f16 f32", "f16 f16 f16 f16")),
    *(_mma(shape, "f32 bf16 bf16 f32") for shape in ("m16n8k8", "m16n8k16")),
    *(_mma(shape, "f32 tf32 tf32 f32") for shape in ("m16n8k4", "m16n8k8")),
    *(_mma(shape, "f64 f64 f64 f64") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *(_mma(shape, f"s32 {kinds} s32") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
      for kinds in ("s8 s8", "s8 u8", "u8 s8", "u8 u8")),
    *(_mma(shape, f"s32 {kinds} s32") for shape in ("m8n8k32", "m16n8k32", "m16n8k64") for kinds in ("s4 s4", "u4 s4")),
    _mma("m16n8k32", "s32 s8 s8 s32", ".satfinite"),
    *(_mma(shape, f"f32 {kinds} f32") for shape in ("m16n8k16", "m16n8k32")
      for kinds in ("e4m3 e4m3", "e4m3 e5m2", "e5m2 e4m3", "e5m2 e5m2")),
    *(_mma(shape, "s32 b1 b1 s32", behind=f".{join}.popc", join=join) for shape in ("m8n8k128", "m16n8k128", "m16n8k256")
      for join in ("and", "xor")),
]  # fmt: skip

# ------------------------------------------------------------------------------------------------- whole matrices in memory


@dataclass(frozen=True)
class Whole:
    """d = a × b + c by wmma.load, mma and store: matrices in memory, each by rows or by columns; `shared`: a lies there."""

    shape: str
    factor: str
    sum: str
    a_by: str = "row"
    b_by: str = "col"
    c_by: str = "row"
    shared: bool = False

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, n, k = (int(part) for part in self.shape.replace("m", "").replace("n", " ").replace("k", " ").split())
        return m, n, k

    def given(self, a: Ints, b: Ints, c: Ints) -> bytes:
        """All three in memory, one behind the other, each padded to a multiple of 16 bytes."""
        parts = [
            stored(kind, matrix if by == "row" else matrix.T)
            for kind, matrix, by in ((self.factor, a, self.a_by), (self.factor, b, self.b_by), (self.sum, c, self.c_by))
        ]
        return b"".join(part + bytes(-len(part) % 16) for part in parts)

    def text(self, name: str) -> str:
        m, n, k = self.sizes
        sizes = [m * k * BITS[self.factor] // 8, k * n * BITS[self.factor] // 8]
        starts = [0, sizes[0] + -sizes[0] % 16]
        starts.append(starts[1] + sizes[1] + -sizes[1] % 16)
        factor = 8 if self.factor == "f16" else 0
        counts = {
            "a": factor or m * k * BITS[self.factor] // (32 * max(32, BITS[self.factor])),
            "b": factor or k * n * BITS[self.factor] // (32 * max(32, BITS[self.factor])),
            "c": m * n * BITS[self.sum] // (32 * max(32, BITS[self.sum])),
        }
        counts["d"] = counts["c"]
        lines, lists = [], {}
        for which, count in counts.items():
            kind = self.factor if which in "ab" else self.sum
            prefix = {"f64": "g", "f32": "f"}.get(kind, "r")
            registers = [f"%{prefix}{which}{i}" for i in range(count)]
            lists[which] = f"{{{', '.join(registers)}}}"
            lines += [f".reg .{DECLARED[prefix]} {it};" for it in registers]
        strides = {
            "a": k if self.a_by == "row" else m,
            "b": n if self.b_by == "row" else k,
            "c": n if self.c_by == "row" else m,
        }
        kinds, by = (
            {"a": self.factor, "b": self.factor, "c": self.sum},
            {"a": self.a_by, "b": self.b_by, "c": self.c_by},
        )
        for at, which in enumerate("abc"):
            place, space = f"[%in+{starts[at]}]", "global"
            if which == "a" and self.shared:
                lines += [f".shared .align 32 .b8 {name}_box[4096]; .reg .b32 %q, %p; .reg .b64 %s;"]
                lines += [
                    f"mov.u32 %p, {name}_box; shl.b32 %q, %t, 2; add.s32 %p, %p, %q; cvt.u64.u32 %s, %q; add.s64 %s, %in, %s;"
                ]
                lines += [
                    f"ld.global.b32 %q, [%s+{128 * i}]; st.shared.b32 [%p+{128 * i}], %q;"
                    for i in range(sizes[0] // 128)
                ]
                lines += [f"bar.warp.sync 0xffffffff; mov.u32 %p, {name}_box;"]
                place, space = "[%p]", "shared"
            opcode = f"wmma.load.{which}.sync.aligned.{by[which]}.{self.shape}.{space}.{kinds[which]}"
            lines.append(f"{opcode} {lists[which]}, {place}, {strides[which]};")
        types = (
            f"{self.sum}.{self.sum}" if self.factor == "f16" else f"{self.sum}.{self.factor}.{self.factor}.{self.sum}"
        )
        rounding = ".rn" if self.factor == "f64" else ""
        lines += [
            (
                f"wmma.mma.sync.aligned.{self.a_by}.{self.b_by}.{self.shape}{rounding}.{types} "
                f"{', '.join(lists[which] for which in 'dabc')};"
            ),
            f"wmma.store.d.sync.aligned.{self.c_by}.{self.shape}.global.{self.sum} [%out], {lists['d']}, {strides['c']};",
        ]
        return kernel(name, 0, 0, lines)


def stored(kind: str, matrix: Ints) -> bytes:
    bits = encoded(kind, np.ascontiguousarray(matrix))
    return bits.astype(
        {64: np.uint64, 32: np.uint32, 16: np.uint16, 8: np.uint8}[BITS[kind]], casting="unsafe"
    ).tobytes()


SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16")
WHOLE = [
    *(Whole(shape, "f16", "f32", a, b) for shape in SHAPES for a, b in (("row", "col"), ("col", "row"))),
    *(Whole(shape, "f16", "f16", c_by="col") for shape in SHAPES),
    Whole("m16n16k16", "f16", "f32", "row", "row", shared=True),
    *(Whole(shape, "bf16", "f32", "row", "row", "col") for shape in SHAPES),
    Whole("m16n16k8", "tf32", "f32"),
    Whole("m8n8k4", "f64", "f64", "row", "col"),
    *(Whole(shape, kind, "s32", "row", "col") for shape in SHAPES for kind in ("s8", "u8")),
]

# ------------------------------------------------------------------------------------------------------ moves of 8 × 8 matrices


def moves(name: str) -> str:
    """Every form of ldmatrix, then of stmatrix, on four matrices whose rows lie in shared memory; two words a row."""
    lines = [
        ".shared .align 16 .b8 box[1024]; .reg .b32 %a, %b, %x<4>; .reg .b64 %y<2>;",
        "ld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%in]; mov.u32 %a, box; shl.b32 %b, %t, 4; add.s32 %a, %a, %b;",
        "st.shared.v4.b32 [%a], {%x0, %x1, %x2, %x3}; bar.warp.sync 0xffffffff;",
    ]
    at = 0
    for turned in ("", ".trans"):
        for count in (1, 2, 4):
            listed = ", ".join(f"%x{i}" for i in range(count))
            lines.append(f"ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {{{listed}}}, [%a];")
            lines += [f"st.global.b32 [%out+{at + 4 * i}], %x{i};" for i in range(count)]
            at += 4 * count
    for turned in ("", ".trans"):
        for count in (1, 2, 4):
            listed = ", ".join(f"%x{i}" for i in range(count))
            lines += [
                "ld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%in]; mov.b32 %b, 0;",
                "st.shared.v4.b32 [%a+512], {%b, %b, %b, %b}; bar.warp.sync 0xffffffff;",
                f"stmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 [%a+512], {{{listed}}};",
                "bar.warp.sync 0xffffffff; ld.shared.v4.b32 {%x0, %x1, %x2, %x3}, [%a+512];",
            ]
            lines += [f"st.global.b32 [%out+{at + 4 * i}], %x{i};" for i in range(4)]
            at += 16
    return kernel(name, 16, at, lines)


def moved(given: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What `moves` writes, by lane: given are 32 rows of four words."""
    halves = given.view(np.uint16).reshape(4, 8, 8)  # matrix, row, column
    lane = LANES
    out = []

    def pair(matrix: NDArray[np.uint16]) -> NDArray[np.uint32]:
        return matrix[lane // 4, lane % 4 * 2] | matrix[lane // 4, lane % 4 * 2 + 1].astype(np.uint32) << 16

    for turn in (False, True):
        for count in (1, 2, 4):
            out += [pair(halves[i].T if turn else halves[i]) for i in range(count)]
    for turn in (False, True):
        for count in (1, 2, 4):
            rows = np.zeros((4, 8, 8), np.uint16)
            for i in range(count):
                matrix = np.zeros((8, 8), np.uint16)
                matrix[lane // 4, lane % 4 * 2] = given[lane, i] & 0xFFFF
                matrix[lane // 4, lane % 4 * 2 + 1] = given[lane, i] >> 16
                rows[i] = matrix.T if turn else matrix
            words = rows.reshape(32, 8).view(np.uint32)
            out += [words[:, i] for i in range(4)]
    return np.stack(out, axis=1)


def module() -> str:
    """All of the kernels: `product0`, …, `whole0`, …, `moves`."""
    parts = [product.text(f"product{at}") for at, product in enumerate(PRODUCTS)]
    parts += [whole.text(f"whole{at}") for at, whole in enumerate(WHOLE)]
    return "".join([*parts, moves("moves")])
