"""The short form of a stage, `stage.py`, read as data: nothing of it is run here.

Top-level assignments of literals say what the stage is; functions are known by their names and parameters alone. The worker
runs the file, on the trusted side, for the reference, the inputs and the mistakes.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelgate import case_lines
from kernelgate.case_lines import CaseLine
from kernelgate.languages import LANGUAGES
from kernelgate.seams import DTYPES, OF_THE_CASE, Role, SeamError, SeamLine, names_in, parse

FILE = "stage.py"
FORM = b"short form 1\n"
"""Changed with what is derived from a stage.py: part of every such stage's hash."""
REQUIRED = ("title", "path", "order", "language", "cases")
PASSED_ON = ("ranking", "sources", "repeatable", "races", "calibrated", "evidence", "draft", "backends", "probe")
"""Keys that mean what they mean in stage.toml."""
READ_HERE = (
    "file",
    "gate",
    "seam",
    "seams",
    "limits",
    "contract",
    "done_when",
    "mistakes",
    "edits",
    "work",
    "independent",
)
RUN = ("inputs", "tolerance", "share")
"""Assignments that may hold functions; the worker reads them."""
BACKENDS = {"cuda": ["gpu", "emulator"], "triton": ["gpu", "interpreter"], "pytorch": ["torch"]}
LIMITS = {
    "cuda": {"wall_s": 90, "case_s": 10, "memory_mb": 4096, "scratch_mb": 256},
    "triton": {"wall_s": 120, "case_s": 10, "memory_mb": 8192, "scratch_mb": 512, "processes": 600},
    "pytorch": {"wall_s": 60, "case_s": 10, "memory_mb": 1024},
}
ONE_SEAM = ""
"""The name of the only seam of a stage that has one."""


class StageFileError(ValueError):
    """A stage.py that cannot be used: the line, and a sentence."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}" if line else what)


@dataclass(frozen=True)
class Edit:
    """A wrong file that is a change of another: its verdict, of which folder's file, pairs of old and new text, and what it
    must be answered with."""

    name: str
    verdict: str
    of: str
    changes: tuple[tuple[str, str], ...]
    expected: dict[str, Any]

    def applied(self, text: str) -> str:
        """Raises StageFileError where the old text is no longer there."""
        for old, new in self.changes:
            if old not in text:
                raise StageFileError(0, f"edits: {self.name}: {old[:80]!r} does not stand in the {self.of}")
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class StageFile:
    """What a stage.py says. spec: as stage.toml would have it; seams by name; lines of all cases; edits."""

    spec: dict[str, Any]
    seams: dict[str, SeamLine]
    lines: tuple[CaseLine, ...]
    edits: tuple[Edit, ...]
    independent: tuple[str, ...] = ()
    work: str = "0"
    defined: frozenset[str] = field(default_factory=frozenset)


class _Source:
    """The top level of the file: literals by name with their lines, and functions with their parameters."""

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise StageFileError(error.lineno or 0, f"{error.msg}: {(error.text or '').strip()[:80]!r}") from None
        self.summary = " ".join((ast.get_docstring(tree) or "").split())
        self.values: dict[str, ast.expr] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign):
                self._assign(node)

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.values[target.id] = node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for name, value in zip(target.elts, node.value.elts, strict=False):
                if isinstance(name, ast.Name):
                    self.values[name.id] = value

    def line(self, name: str) -> int:
        return self.values[name].lineno if name in self.values else 0

    def literal(self, name: str, default: Any = None) -> Any:
        if name not in self.values:
            return default
        return _literal(self.values[name], name)


def _literal(node: ast.expr, name: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        shown = ast.unparse(node)[:80]
        raise StageFileError(
            node.lineno, f"{name} is {shown!r}; a value that can be read without running it is accepted"
        ) from None


def read(name: str, text: str) -> StageFile:
    """Reads the stage.py of the folder `name`. Raises StageFileError."""
    source = _Source(text)
    _check_names(source)
    language = source.literal("language")
    if language not in LANGUAGES:
        raise StageFileError(source.line("language"), f"no language {language!r}; known: {', '.join(LANGUAGES)}")
    seams = _seams(source)
    lines = _cases(source, seams)
    _check_functions(source, seams)
    spec = _spec(name, source, language, seams, lines)
    return StageFile(
        spec,
        seams,
        lines,
        tuple(_edits(source)),
        tuple(str(source.literal("independent", "")).split()),
        str(source.literal("work", "0")),
        frozenset(source.functions),
    )


def _check_names(source: _Source) -> None:
    for key in REQUIRED:
        if key not in source.values:
            raise StageFileError(0, f"{key} is missing; needed are {', '.join(REQUIRED)}, seam and reference")
    if not source.summary:
        raise StageFileError(1, "the file begins with its summary, a sentence in three quotation marks")
    known = {*REQUIRED, *PASSED_ON, *READ_HERE, *RUN}
    for key in source.values:
        near = _near(key, known)
        if key not in known and near:
            raise StageFileError(source.line(key), f"{key} is nothing that a stage says; did you mean {near}?")


def _near(word: str, known: set[str]) -> str:
    """The known word that is one slip away, or ''. Other assignments are the author's own constants."""
    found = difflib.get_close_matches(word, known, 1, 0.8)
    return found[0] if found and word.islower() else ""


def _seams(source: _Source) -> dict[str, SeamLine]:
    one, several = source.literal("seam"), source.literal("seams")
    if (one is None) == (several is None):
        raise StageFileError(
            0, 'a stage has a seam: seam = "name(x: f32[rows]) -> y: f32[rows]", or several by name in seams'
        )
    texts = {ONE_SEAM: one} if one is not None else several
    key = "seam" if one is not None else "seams"
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise StageFileError(source.line(key), f"{key} is {str(texts)[:80]!r}; text is accepted")
    try:
        return {name: parse(text) for name, text in texts.items()}
    except SeamError as error:
        raise StageFileError(source.line(key), str(error)) from None


def _cases(source: _Source, seams: Mapping[str, SeamLine]) -> tuple[CaseLine, ...]:
    known: dict[str, None] = {}
    for seam in seams.values():
        known |= dict.fromkeys(
            [*seam.sizes, *(each.name for each in seam.numbers), *(each.name for each in seam.arrays)]
        )
    try:
        lines = case_lines.read(str(source.literal("cases")), list(known))
        for line in lines:
            _check_case(line, seams)
    except (case_lines.CaseLineError, SeamError) as error:
        raise StageFileError(source.line("cases"), str(error)) from None
    return tuple(lines)


def _check_case(line: CaseLine, seams: Mapping[str, SeamLine]) -> None:
    """Every size and number of its seam has a value, and a stage's T a dtype."""
    where = f"case line {line.at} ({line.name})"
    if line.seam not in seams:
        raise SeamError(f"{where}: no seam {line.seam!r}; write seam= with one of {', '.join(seams)}")
    seam = seams[line.seam]
    needed = [*seam.sizes, *(each.name for each in seam.numbers if each.name not in seam.sizes)]
    for name in needed:
        if name not in line.values:
            raise SeamError(f"{where}: {name} has no value; the case needs {', '.join(f'{each}=' for each in needed)}")
    generic = any(each.dtype == OF_THE_CASE for each in (*seam.arrays, *seam.results))
    if generic and not all(word in DTYPES for word in line.dtype.split("|")):
        raise SeamError(f"{where}: dtype={line.dtype}: T needs one of {', '.join(DTYPES)}")
    if line.dtype and not generic:
        raise SeamError(f"{where}: dtype={line.dtype}: no array of the seam is T")


def _check_functions(source: _Source, seams: Mapping[str, SeamLine]) -> None:
    """The reference of each seam is there and asks for nothing that the seam does not have."""
    for name, seam in seams.items():
        wanted = f"reference_{name}" if name else "reference"
        function = source.functions.get(wanted)
        if function is None:
            raise StageFileError(0, f"no function {wanted} is defined")
        given = [*(each.name for each in seam.arguments), *seam.sizes]
        for argument in function.args.args:
            if argument.arg not in given:
                raise StageFileError(
                    function.lineno,
                    f"{wanted} asks for {argument.arg!r}; the seam has {', '.join(dict.fromkeys(given))}",
                )
    formula = str(source.literal("work", "0"))
    try:
        names_in(formula)
    except SeamError as error:
        raise StageFileError(source.line("work"), f"work: {error}") from None


# --- what stage.toml would say ------------------------------------------------------------------------------------------


def _spec(
    name: str, source: _Source, language: str, seams: Mapping[str, SeamLine], lines: tuple[CaseLine, ...]
) -> dict[str, Any]:
    gate = source.literal("gate")
    measured = gate is not None or any("measured" in line.marks for line in lines)
    spec: dict[str, Any] = {
        "title": source.literal("title"),
        "summary": source.summary,
        "path": source.literal("path"),
        "order": source.literal("order"),
        "language": language,
        "file": source.literal("file", name + LANGUAGES[language].suffix),
        "backends": _backends(language, seams),
        "ranking": "speedup" if measured else "first_accepted",
        "seam": _seam_of(source, language, seams),
        "limits": {**LIMITS[language], **source.literal("limits", {})},
        "tolerance": {},
        "tensors": {
            each.judged: {"axes": _axes(each.dims), "dtype": "" if each.dtype == OF_THE_CASE else each.dtype}
            for seam in seams.values()
            for each in seam.judged
        },
        "cases": [case_of(line, seams[line.seam], dict(line.values)) for line in lines if not line.drawn],
        "mistakes": list(_mistakes(source)),
        "done_when": [_done_when(item) for item in source.literal("done_when", [])],
        "short": True,
    }
    if gate is not None:
        spec["gate"] = {"speedup": gate}
    return spec | {key: source.literal(key) for key in PASSED_ON if key in source.values}


def _backends(language: str, seams: Mapping[str, SeamLine]) -> list[str]:
    """A card replays no array that is read and written in place: such a CUDA stage is played on the CPU everywhere."""
    in_place = any(each.role is Role.INOUT for seam in seams.values() for each in seam.arguments)
    return ["emulator"] if language == "cuda" and in_place else BACKENDS[language]


def _axes(dims: tuple[str, ...]) -> list[str]:
    """One of each size's name: "row 3" of [rows, width]; of a formula, its place."""
    return [_axis(dim, at) for at, dim in enumerate(dims)]


def _axis(dim: str, at: int) -> str:
    if not dim.isidentifier():
        return f"axis {at}"
    return dim[:-1] if dim.endswith("s") and len(dim) > 2 else dim


def _seam_of(source: _Source, language: str, seams: Mapping[str, SeamLine]) -> dict[str, Any]:
    cuda = language == "cuda"
    contract: dict[str, str] = {}
    try:
        signatures = [seam.c_signature() if cuda else seam.python_signature() for seam in seams.values()]
    except SeamError as error:
        raise StageFileError(source.line("seam") or source.line("seams"), str(error)) from None
    for seam in seams.values():
        contract |= seam.contract(cuda=cuda)
    first = next(iter(seams.values()))
    return {
        "name": first.name,
        "signature": signatures[0],
        "contract": {**contract, **source.literal("contract", {})},
        "others": dict(zip([seam.name for seam in seams.values()][1:], signatures[1:], strict=True)),
    }


def _done_when(item: object) -> dict[str, Any]:
    return {"text": item} if isinstance(item, str) else dict(zip(("text", "answer"), item, strict=False))  # type: ignore[call-overload]


def _mistakes(source: _Source) -> Any:
    """Names, titles and hints; the functions beside them are not looked at."""
    node = source.values.get("mistakes")
    if node is None:
        return
    if not isinstance(node, ast.Dict):
        raise StageFileError(node.lineno, "mistakes is {name: (function, title, hint)}")
    for key, value in zip(node.keys, node.values, strict=True):
        name = _literal(key, "mistakes") if key else None
        parts = value.elts if isinstance(value, ast.Tuple) else []
        if not isinstance(name, str) or len(parts) not in (3, 4):
            raise StageFileError(
                value.lineno,
                f"mistakes: {name}: accepted is (function, title, hint), and a reason behind them "
                "where it shows as a contract violation",
            )
        words = [_literal(part, f"mistakes: {name}") for part in parts[1:]]
        yield dict(zip(("name", "title", "hint", "violation"), [name, *words], strict=False))


def _edits(source: _Source) -> Any:
    for name, parts in source.literal("edits", {}).items():
        line = source.line("edits")
        expected = parts[-1] if isinstance(parts[-1], dict) else {}
        words = [part for part in parts if not isinstance(part, dict)]
        of = "starter" if words[1:2] == ["of starter"] else "solution"
        changes = words[2:] if words[1:2] in (["of starter"], ["of solution"]) else words[1:]
        if not changes or len(changes) % 2 or not all(isinstance(word, str) for word in words):
            what = f"edits: {name}: accepted is (verdict, old text, new text), further pairs, and a dict of what is expected"
            raise StageFileError(line, what)
        pairs = tuple(zip(changes[::2], changes[1::2], strict=True))
        yield Edit(name, words[0], of, pairs, expected)


# --- cases --------------------------------------------------------------------------------------------------------------


def case_of(line: CaseLine, seam: SeamLine, values: Mapping[str, Any]) -> dict[str, Any]:
    """A case of the spec from a line whose values are all drawn."""
    arrays = {each.name for each in seam.arrays}
    params = {key: value for key, value in values.items() if key not in arrays}
    data = {key: value for key, value in values.items() if key in arrays}
    dtype = DTYPES.get(line.dtype) or next(each.dtype for each in seam.judged)
    marks: dict[str, Any] = {mark: True for mark in ("measured", "needs_gpu") if mark in line.marks}
    return {
        "name": line.name,
        "title": line.title or _title(line, seam, params, data),
        "group": line.group or ("Profile" if "measured" in line.marks else "By hand" if _literals(data) else "Sizes"),
        "dtype": dtype,
        "params": params,
        "data": {key: value if isinstance(value, str | int | float) else repr(value) for key, value in data.items()},
        "seam": line.seam,
        **marks,
    }


def _literals(data: Mapping[str, Any]) -> bool:
    return any(isinstance(value, list) for value in data.values())


def _title(line: CaseLine, seam: SeamLine, params: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Sizes, the numbers that are not every case's, what the arrays are made of."""
    numbers = [key for key in params if key not in seam.sizes and key not in line.inherited]
    words = [f"{key} {params[key]:g}" for key in [*seam.sizes, *numbers]]
    words += [f"{key} = {value}" for key, value in data.items() if key not in line.inherited]
    return ", ".join([*words, line.dtype] if line.dtype else words)
