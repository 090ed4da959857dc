"""Writes Triton's own IR again as Python over numpy, for machines without a GPU.

Theory of operation. Each operation of the IR becomes one assignment; each region a nested function, so that the same text
serves when every program of a grid takes the same way and when they part. Programs run side by side: a value that differs
between them has one more axis in front, a value that does not has none, and numpy's broadcasting joins the two. machine.py
holds the operations themselves.
"""

import ast
import re

from sandboxed_ir import NOTHING, VALUE, NotInterpretedError, Reader, Type, split, type_of

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
        # Lines of the submitted file: of each line here, and of the operation in hand.
        self.origins, self.origin = [], 0

    def put(self, text):
        self.lines.append("    " * self.depth + text)
        self.origins.append(self.origin)

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
        self.origin = op.line or self.origin
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
        kind = type_of(op.types or "i1")  # `true` and `false` stand without a type
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

    def _tt_gather(self, op):
        axis = _attribute(op, "axis") - len(self.kind(op.operands[0]).shape)
        self._assign(op, f"M.gather({self._all(op)}, {axis}, {op.line})", _last(op.types))

    def _tt_atomic_cas(self, op):
        raise NotInterpretedError(
            f"tl.atomic_cas (line {op.line}): programs run side by side here, and one that waits for a lock of another would "
            "wait without end"
        )

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
        line = op.line if _has_atomics(op.regions) else 0
        self.put(f"{self._results(op, passed)}M.repeat(A, ({values}), {ranks!r}, {before}, {after}, {line})")

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


def _has_atomics(regions):
    return any(op.name.startswith("tt.atomic") or _has_atomics(op.regions) for region in regions for op in region.ops)


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
    """A TTIR module's kernel as a Python module with the lines of the submitted file, and its arguments' element types.

    Raises NotInterpretedError.
    """
    names, kinds, ops = Reader(text, file).kernel()
    writer = Writer()
    module = ast.parse(writer.kernel(names, kinds, ops))
    known = next((line for line in writer.origins if line), 0)
    for node in ast.walk(module) if known else ():
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = writer.origins[node.lineno - 1] or known
    return module, [kind.element for kind in kinds]
