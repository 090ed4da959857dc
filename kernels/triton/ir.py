"""Reads Triton's own IR (TTIR) and writes it again as Python over numpy, for machines without a GPU.

Theory of operation. Triton's front end lowers a kernel to TTIR: a function in SSA form over tensors, with structured loops and
branches. Each operation becomes one assignment; each region a nested function, so that the same text serves when every program
of a grid takes the same way and when they part. Programs run side by side: a value that differs between them has one more axis
in front, a value that does not has none, and numpy's broadcasting joins the two. machine.py holds the operations themselves.

The IR comes from a process that ran submitted code, so it may say anything; what is not understood is refused by name, and all
of this runs in a sandbox that has nothing but one case's inputs.
"""

import re
from dataclasses import dataclass, field

LOC = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\"|\((?:[^()]|\([^()]*\))*\))*\))*\)")
VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
RESULTS = re.compile(r"(%[\w.$-]+(?::\d+)?(?:, %[\w.$-]+(?::\d+)?)*) = ")
TENSOR = re.compile(r"tensor<((?:\d+x)*)([^,]+?)(?:, #.*)?>")
POINTER = re.compile(r"!tt\.ptr<([^,>]+)(?:, \d+)?>")
NOTHING = {"tt.print", "gpu.barrier", "ttg.barrier", "ttg.local_barrier", "llvm.intr.assume"}


class NotInterpretedError(Exception):
    """An operation or a form that is not understood; the text names it and, where known, its line."""


@dataclass(frozen=True)
class Type:
    """A scalar (shape ()) or a tensor. element: f16, bf16, f32, f64, i1 to i64, or `ptr:` and what it points to."""

    shape: tuple[int, ...]
    element: str


@dataclass
class Op:
    """One operation. results: SSA names; text: all between its name and its types; types: what stands behind the colon."""

    name: str
    results: list[str]
    operands: list[str]
    text: str
    types: str
    line: int
    regions: list["Region"] = field(default_factory=list)


@dataclass
class Region:
    arguments: list[str]
    ops: list[Op]


def type_of(text):
    """The Type that a text names. Raises NotInterpretedError."""
    text = text.strip()
    whole = TENSOR.fullmatch(text)
    if whole:
        return Type(tuple(int(size) for size in whole[1].split("x") if size), _element(whole[2]))
    return Type((), _element(text))


def _element(text):
    pointer = POINTER.fullmatch(text)
    if pointer:
        return "ptr:" + _element(pointer[1])
    if text in ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index"):
        return text
    raise NotInterpretedError(f"values of type {text[:80]}")


def split(text):
    """A list of texts at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += letter in "<([{"
        depth -= letter in ")]}" or (letter == ">" and text[at - 1] != "-")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


class Reader:
    """Parses one module that holds one kernel."""

    def __init__(self, text, file):
        self.file = file
        self.lines, self.locations = [], {}
        for line in text.splitlines():
            if line.startswith("#loc"):
                name, _, said = line.partition(" = ")
                self.locations[name] = said
            elif line.strip() and not line.startswith("#"):
                self.lines.append(line.strip())
        self.at = 0

    def kernel(self):
        """(argument names, their Types, operations)."""
        while not self.lines[self.at].startswith("tt.func"):
            self.at += 1
        head = LOC.sub("", self.lines[self.at])
        if sum(line.startswith("tt.func") for line in self.lines) > 1:
            raise NotInterpretedError("functions that are not inlined (noinline=True)")
        inside = head[head.index("(") + 1 : head.rindex(")")]
        arguments = [re.sub(r"\s*\{.*\}$", "", part) for part in split(inside)]
        names = [part.split(":")[0].strip() for part in arguments]
        kinds = [type_of(part.split(":", 1)[1]) for part in arguments]
        self.at += 1
        return names, kinds, self._block()

    def _block(self):
        """Operations up to the line that closes their region; that line stays the current one."""
        ops = []
        while not self.lines[self.at].startswith("}"):
            ops.append(self._op())
        return ops

    def _line_of(self, text):
        found = LOC.findall(text)
        return self._resolve(found[-1], 0) if found else 0

    def _resolve(self, said, depth):
        """The line of the submitted file that a location leads to; 0 if to none."""
        here = re.search(r'"([^"]*)":(\d+):\d+', said)
        if here and here[1].rsplit("/", 1)[-1] == self.file:
            return int(here[2])
        if depth < 12:
            for name in reversed(re.findall(r"#loc\d*", said)):
                line = self._resolve(self.locations.get(name, ""), depth + 1)
                if line:
                    return line
        return 0

    def _op(self):
        raw = self.lines[self.at]
        line = self._line_of(raw)
        text = LOC.sub("", raw)
        self.at += 1
        named = RESULTS.match(text)
        results = _results(named[1]) if named else []
        body = text[named.end() :] if named else text
        if body.startswith("^"):
            raise NotInterpretedError("control flow that is not structured, as a return inside a branch is")
        name = re.match(r'"?([\w.]+)"?', body)
        if name is None:
            raise NotInterpretedError(f"the line {body[:80]!r}")
        rest = body[name.end() :]
        op = Op(name[1], results, [], "", "", line)
        if name[1] in ("scf.for", "scf.if", "scf.while"):
            self._structured(op, rest)
        elif rest.endswith("({"):
            self._with_region(op, rest)
        else:
            op.text, op.types = _halves(rest)
            op.operands = VALUE.findall(op.text)
        op.line = op.line or line
        return op

    def _structured(self, op, rest):
        head = rest.rstrip(" {")
        op.text = head
        region = self._region(_bound(head) if op.name != "scf.if" else [])
        op.regions.append(region)
        while "else" in self.lines[self.at - 1] or re.match(r"\} do \{", self.lines[self.at - 1]):
            op.regions.append(self._region([]))
        op.line = self._line_of(self.lines[self.at - 1])

    def _region(self, arguments):
        first = LOC.sub("", self.lines[self.at])
        if first.startswith("^"):
            arguments = [part.split(":")[0].strip() for part in split(first[first.index("(") + 1 : first.rindex(")")])]
            self.at += 1
        ops = self._block()
        self.at += 1
        return Region(arguments, ops)

    def _with_region(self, op, rest):
        op.text = rest
        op.operands = VALUE.findall(rest[: rest.index(")")])
        op.regions.append(self._region([]))
        op.types = LOC.sub("", self.lines[self.at - 1]).partition(":")[2]


def _results(text):
    names = []
    for part in text.split(", "):
        name, _, count = part.partition(":")
        names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return names


def _bound(head):
    """Names that a loop's head binds: of `for` the counter and the carried values, of `while` its arguments."""
    return [pair[0] for pair in re.findall(r"(%[\w.$-]+) = (%[\w.$#-]+)", head)]


def _halves(rest):
    """(before, after) the last ` : ` outside of braces and brackets."""
    depth, found = 0, -1
    for at, letter in enumerate(rest):
        depth += letter in "{[<"
        depth -= letter in "}]" or (letter == ">" and rest[at - 1] != "-")
        if depth == 0 and rest.startswith(" : ", at):
            found = at
    return (rest, "") if found < 0 else (rest[:found], rest[found + 3 :])


# --- writing it as Python -------------------------------------------------------------------------------------------------

ARITH = {
    "addf": "+", "subf": "-", "mulf": "*", "addi": "+", "subi": "-", "muli": "*", "andi": "&", "ori": "|", "xori": "^",
    "shli": "<<", "shrsi": ">>",
}  # fmt: skip
CALLS = {
    "arith.divf": "divide", "arith.remf": "fmod", "arith.negf": "negative", "arith.maxnumf": "fmax",
    "arith.minnumf": "fmin", "arith.maximumf": "maximum", "arith.minimumf": "minimum", "arith.maxsi": "maximum",
    "arith.minsi": "minimum", "arith.remsi": "fmod", "math.exp": "exp", "math.exp2": "exp2", "math.log": "log",
    "math.log2": "log2", "math.sqrt": "sqrt", "math.sin": "sin", "math.cos": "cos", "math.absf": "absolute",
    "math.absi": "absolute", "math.tanh": "tanh", "math.floor": "floor", "math.ceil": "ceil", "math.log1p": "log1p",
    "math.expm1": "expm1", "math.powf": "power", "tt.precise_sqrt": "sqrt", "tt.precise_divf": "divide",
}  # fmt: skip
OWN = {
    "arith.divsi": "divide_whole", "arith.divui": "divide_unsigned", "arith.remui": "remainder_unsigned",
    "arith.shrui": "shift_unsigned", "arith.maxui": "maximum_unsigned", "arith.minui": "minimum_unsigned",
    "math.rsqrt": "rsqrt", "math.fma": "fma", "math.erf": "erf", "tt.clampf": "clamp", "tt.mulhiui": "high_product",
}  # fmt: skip
CASTS = {
    "arith.extf": "cast", "arith.truncf": "cast", "arith.extsi": "cast", "arith.trunci": "truncate",
    "arith.sitofp": "cast", "arith.fptosi": "cast", "arith.extui": "cast_unsigned", "arith.uitofp": "cast_unsigned",
    "arith.fptoui": "cast", "arith.index_cast": "cast", "tt.fp_to_fp": "cast", "arith.bitcast": "bitcast",
    "tt.bitcast": "bitcast", "tt.int_to_ptr": "cast", "tt.ptr_to_int": "cast",
}  # fmt: skip
LIBRARY = {
    "__nv_expf": "exp", "__nv_fast_expf": "exp", "__nv_exp2f": "exp2", "__nv_logf": "log", "__nv_fast_logf": "log",
    "__nv_log2f": "log2", "__nv_sqrtf": "sqrt", "__nv_fabsf": "absolute", "__nv_fmaxf": "fmax", "__nv_fminf": "fmin",
    "__nv_tanhf": "tanh", "__nv_powf": "power",
}  # fmt: skip
FOLDS = {
    "arith.addf": "add", "arith.addi": "add", "arith.maxnumf": "fmax", "arith.maximumf": "maximum",
    "arith.minnumf": "fmin", "arith.minimumf": "minimum", "arith.maxsi": "maximum", "arith.minsi": "minimum",
    "arith.andi": "bitwise_and", "arith.ori": "bitwise_or", "arith.xori": "bitwise_xor", "arith.mulf": "multiply",
}  # fmt: skip


class Writer:
    """Writes the Python text of one kernel: `def kernel(M, A, arguments…)`, M the machine, A who is active."""

    def __init__(self):
        self.lines, self.names, self.types, self.depth = [], {}, {}, 0
        self.functions = 0

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    def name(self, value):
        value = value.removesuffix("#0") if value.endswith("#0") and value not in self.names else value
        if value not in self.names:
            self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def define(self, value, kind):
        self.types[value.removesuffix("#0")] = self.types[value] = kind
        return self.name(value)

    def kind(self, value):
        found = self.types.get(value)
        if found is None:
            raise NotInterpretedError(f"the value {value[:60]}, which nothing defines")
        return found

    def kernel(self, names, kinds, ops):
        arguments = [self.define(name, kind) for name, kind in zip(names, kinds, strict=True)]
        self.put(f"def kernel({', '.join(['M', 'A', *arguments])}):")
        self._body(ops)
        return "\n".join(self.lines) + "\n"

    def _body(self, ops):
        self.depth += 1
        for op in ops:
            self.op(op)
        self.put("return ()")  # a region without results may end without a word
        self.depth -= 1

    def op(self, op):
        short = op.name.partition(".")[2]
        write = getattr(self, "_" + op.name.replace(".", "_"), None)
        if write is not None:
            write(op)
        elif op.name in NOTHING:
            return
        elif op.name.startswith("arith.") and short in ARITH:
            a, b = (self.name(value) for value in op.operands)
            self._assign(op, f"{a} {ARITH[short]} {b}", _last(op.types))
        elif op.name in CALLS:
            self._assign(op, f"np.{CALLS[op.name]}({self._all(op)})", _last(op.types))
        elif op.name in OWN:
            self._assign(op, f"M.{OWN[op.name]}({self._all(op)})", _last(op.types))
        elif op.name in CASTS:
            kind = _last(op.types)
            self._assign(
                op,
                f"M.{CASTS[op.name]}({self._all(op)}, {self.kind(op.operands[0]).element!r}, {kind.element!r})",
                kind,
            )
        else:
            raise NotInterpretedError(f"{op.name} (line {op.line})")

    def _all(self, op):
        return ", ".join(self.name(value) for value in op.operands)

    def _assign(self, op, expression, kind):
        if kind.element == "bf16":
            expression = f"M.rounded({expression})"
        self.put(f"{self.define(op.results[0], kind)} = {expression}")

    # --- arith

    def _arith_constant(self, op):
        kind = type_of(op.types)
        self._assign(op, f"M.constant({_literal(op.text)!r}, {kind.shape!r}, {kind.element!r})", kind)

    def _arith_cmpi(self, op):
        predicate = op.text.split(",")[0].strip()
        kind = Type(type_of(op.types).shape, "i1")
        self._assign(op, f"M.compare({predicate!r}, {self._all(op)})", kind)

    _arith_cmpf = _arith_cmpi

    def _arith_select(self, op):
        kind = _last(op.types)
        condition = self.name(op.operands[0])
        if not self.kind(op.operands[0]).shape and kind.shape:
            condition = f"M.spread({condition}, {len(kind.shape)})"
        self._assign(op, f"np.where({condition}, {self.name(op.operands[1])}, {self.name(op.operands[2])})", kind)

    def _tt_extern_elementwise(self, op):
        symbol = re.search(r'symbol = "(\w+)"', op.text)
        if symbol is None or symbol[1] not in LIBRARY:
            raise NotInterpretedError(f"the library function {symbol[1] if symbol else op.text[:60]} (line {op.line})")
        self._assign(op, f"np.{LIBRARY[symbol[1]]}({self._all(op)})", _last(op.types))

    # --- tensors

    def _tt_get_program_id(self, op):
        self._assign(op, f"M.ids[{'xyz'.index(op.text.split()[0])}]", Type((), "i32"))

    def _tt_get_num_programs(self, op):
        self._assign(op, f"M.counts[{'xyz'.index(op.text.split()[0])}]", Type((), "i32"))

    def _tt_make_range(self, op):
        start, end = (re.search(rf"{key} = (\d+)", op.text)[1] for key in ("start", "end"))
        self._assign(op, f"np.arange({start}, {end}, dtype=np.int32)", type_of(op.types))

    def _tt_splat(self, op):
        kind = _last(op.types)
        self._assign(op, f"M.splat({self._all(op)}, {kind.shape!r})", kind)

    def _tt_unsplat(self, op):
        kind = self.kind(op.operands[0])
        self._assign(op, f"M.unsplat({self._all(op)}, {len(kind.shape)})", Type((), kind.element))

    def _tt_expand_dims(self, op):
        kind = _last(op.types)
        self._assign(op, f"np.expand_dims({self._all(op)}, {_attribute(op, 'axis') - len(kind.shape)})", kind)

    def _tt_broadcast(self, op):
        kind = _last(op.types)
        self._assign(op, f"M.broadcast({self._all(op)}, {kind.shape!r})", kind)

    def _tt_trans(self, op):
        order = [int(part) for part in re.search(r"array<i32: ([\d, ]+)>", op.text)[1].split(",")]
        self._assign(op, f"M.permute({self._all(op)}, {order!r})", _last(op.types))

    def _tt_reshape(self, op):
        kind = _last(op.types)
        rank = len(self.kind(op.operands[0]).shape)
        self._assign(op, f"M.reshape({self._all(op)}, {rank}, {kind.shape!r})", kind)

    def _tt_join(self, op):
        self._assign(op, f"M.join({self._all(op)})", _last(op.types))

    def _tt_cat(self, op):
        self._assign(op, f"M.concatenate({self._all(op)})", _last(op.types))

    def _tt_split(self, op):
        kind = _last(op.types)
        for index, value in enumerate(op.results):
            self.put(f"{self.define(value, kind)} = {self.name(op.operands[0])}[..., {index}]")

    def _tt_dot(self, op):
        into = _last(op.types)
        precision = re.search(r"inputPrecision = (\w+)", op.text)
        self._assign(
            op,
            f"M.dot({self._all(op)}, {self.kind(op.operands[0]).element!r}, {into.element!r}, "
            f"{precision[1] if precision else 'ieee'!r})",
            into,
        )

    # --- memory

    def _tt_addptr(self, op):
        kind = self.kind(op.operands[0])
        a, b = (self.name(value) for value in op.operands)
        self._assign(op, f"M.move({a}, {b}, {kind.element!r})", kind)

    def _tt_load(self, op):
        pointer = self.kind(op.operands[0])
        if "!tt.ptr<tensor" in op.types or "boundaryCheck" in op.text:
            raise NotInterpretedError(f"block pointers that were not lowered (line {op.line})")
        values = [self.name(value) for value in op.operands] + ["None"] * (3 - len(op.operands))
        kind = Type(pointer.shape, pointer.element.removeprefix("ptr:"))
        self._assign(op, f"M.load(A, {', '.join(values)}, {kind.element!r}, {len(kind.shape)}, {op.line})", kind)

    def _tt_store(self, op):
        pointer = self.kind(op.operands[0])
        values = [self.name(value) for value in op.operands] + ["None"] * (3 - len(op.operands))
        element = pointer.element.removeprefix("ptr:")
        self.put(f"M.store(A, {', '.join(values)}, {element!r}, {len(pointer.shape)}, {op.line})")

    def _tt_atomic_rmw(self, op):
        kind = _last(op.types)
        values = [self.name(value) for value in op.operands] + ["None"] * (3 - len(op.operands))
        what = op.text.split(",")[0].strip()
        self._assign(
            op, f"M.atomic(A, {what!r}, {', '.join(values)}, {kind.element!r}, {len(kind.shape)}, {op.line})", kind
        )

    def _tt_assert(self, op):
        said = re.search(r'"((?:[^"\\]|\\.)*)"', op.text)
        rank = len(self.kind(op.operands[0]).shape)
        self.put(f"M.confirm(A, {self.name(op.operands[0])}, {said[1] if said else ''!r}, {rank}, {op.line})")

    # --- regions

    def _function(self, region, kinds):
        """Writes a region as a function of who is active and its arguments; its name."""
        self.functions += 1
        name = f"f{self.functions}"
        arguments = [self.define(value, kind) for value, kind in zip(region.arguments, kinds, strict=True)]
        self.put(f"def {name}({', '.join(['A', *arguments])}):")
        self._body(region.ops)
        return name

    def _results(self, op, kinds):
        names = [self.define(value, kind) for value, kind in zip(op.results, kinds, strict=True)]
        return f"{', '.join(names)}{',' if len(names) == 1 else ''} = " if names else ""

    def _scf_for(self, op):
        head = re.match(r"\s*(%[\w.$-]+) = (\S+) to (\S+) step (\S+)", op.text)
        carried = re.search(r"iter_args\((.*?)\) ->", op.text)
        pairs = re.findall(r"(%[\w.$-]+) = (%[\w.$#-]+)", carried[1]) if carried else []
        kinds = [self.kind(value) for _, value in pairs]
        function = self._function(op.regions[0], [self.kind(head[2]), *kinds])
        bounds = ", ".join(self.name(value) for value in head.groups()[1:])
        values = "".join(self.name(value) + ", " for _, value in pairs)
        ranks = [len(kind.shape) for kind in kinds]
        self.put(f"{self._results(op, kinds)}M.count(A, {bounds}, ({values}), {ranks!r}, {function})")

    def _scf_while(self, op):
        pairs = re.findall(r"(%[\w.$-]+) = (%[\w.$#-]+)", op.text)
        kinds = [self.kind(value) for _, value in pairs]
        before = self._function(op.regions[0], kinds)
        passed = [self.kind(value) for value in op.regions[0].ops[-1].operands[1:]]
        after = self._function(op.regions[1], passed)
        values = "".join(self.name(value) + ", " for _, value in pairs)
        ranks = [[len(kind.shape) for kind in each] for each in (kinds, passed)]
        self.put(f"{self._results(op, passed)}M.repeat(A, ({values}), {ranks!r}, {before}, {after})")

    def _scf_if(self, op):
        condition = VALUE.search(op.text)[0]
        kinds = [type_of(part) for part in split(op.text.partition("-> (")[2].rpartition(")")[0])]
        chosen = [self._function(region, []) for region in op.regions] + ["None"] * (2 - len(op.regions))
        ranks = [len(kind.shape) for kind in kinds]
        self.put(f"{self._results(op, kinds)}M.choose(A, {self.name(condition)}, {', '.join(chosen)}, {ranks!r})")

    def _scf_yield(self, op):
        values = "".join(self.name(value) + ", " for value in op.operands)
        self.put(f"return ({values})")

    _tt_reduce_return = _scf_yield
    _tt_scan_return = _scf_yield

    def _scf_condition(self, op):
        values = "".join(self.name(value) + ", " for value in op.operands)
        self.put(f"return ({values})")

    def _tt_return(self, _op):
        self.put("return ()")

    def _tt_reduce(self, op):
        kinds = [self.kind(value) for value in op.operands]
        axis, rank = _attribute(op, "axis"), len(kinds[0].shape)
        results = [Type(kind.shape[:axis] + kind.shape[axis + 1 :], kind.element) for kind in kinds]
        region = op.regions[0]
        if len(region.ops) == 2 and region.ops[0].name in FOLDS and kinds[0].element != "bf16":
            self._assign(op, f"np.{FOLDS[region.ops[0].name]}.reduce({self._all(op)}, axis={axis - rank})", results[0])
            return
        function = self._function(region, [Type((), kind.element) for kind in kinds * 2])
        self.put(f"{self._results(op, results)}M.reduce(({self._all(op)},), {axis - rank}, {function})")

    def _tt_scan(self, op):
        kinds = [self.kind(value) for value in op.operands]
        axis = _attribute(op, "axis") - len(kinds[0].shape)
        function = self._function(op.regions[0], [Type((), kind.element) for kind in kinds * 2])
        backwards = "reverse = true" in op.text
        self.put(f"{self._results(op, kinds)}M.scan(({self._all(op)},), {axis}, {backwards}, {function})")


def _last(types):
    """The result's type: behind the arrow or `to`, else the last one listed."""
    for mark in (" -> ", " to "):
        if mark in types:
            text = types.rpartition(mark)[2].strip()
            return type_of(split(text[1:-1])[0] if text.startswith("(") else text)
    return type_of(split(types)[-1])


def _attribute(op, key):
    found = re.search(rf"{key} = (\d+)", op.text)
    if found is None:
        raise NotInterpretedError(f"{op.name} without {key}")
    return int(found[1])


def _literal(text):
    """The value of a constant as text: `true`, a number, bits in hex, or a flat list of these."""
    text = text.strip()
    inside = text[text.index("<") + 1 : text.rindex(">")] if text.startswith("dense<") else text
    if inside.startswith('"'):
        raise NotInterpretedError("large literal tensors")
    return re.findall(r"[^\[\],\s]+", inside) if inside.startswith("[") else inside


def translate(text, file):
    """The Python text of a TTIR module's kernel, and its arguments' element types. Raises NotInterpretedError."""
    names, kinds, ops = Reader(text, file).kernel()
    return Writer().kernel(names, kinds, ops), [kind.element for kind in kinds]
