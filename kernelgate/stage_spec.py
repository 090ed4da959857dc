"""What a stage.toml would say, from what a stage.py says: seams, contract, tensors, cases, mistakes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from kernelgate.case_lines import CaseLine, is_drawn
from kernelgate.families import filled
from kernelgate.languages import LANGUAGES
from kernelgate.seams import CHANGED, DTYPES, OF_THE_CASE, Argument, SeamError, SeamLine, result
from kernelgate.stage_source import Source, StageFileError, literal_of

PASSED_ON = (
    "needs",
    "hours",
    "ranking",
    "measured",
    "sources",
    "repeatable",
    "races",
    "calibrated",
    "evidence",
    "faster",
    "draft",
    "several",
    "pulled",
    "backends",
    "probe",
)
"""Keys that mean what they mean in stage.toml."""
MOST_MEMBERS = 24
"""Of a family of mistakes: each is a variant of the reference that is computed."""
BACKENDS = {"cuda": ["gpu", "emulator"], "triton": ["gpu", "interpreter"], "pytorch": ["torch"]}
LIMITS = {
    "cuda": {"wall_s": 90, "case_s": 10, "memory_mb": 4096, "scratch_mb": 256},
    "triton": {"wall_s": 120, "case_s": 10, "memory_mb": 8192, "scratch_mb": 512, "processes": 600},
    "pytorch": {"wall_s": 60, "case_s": 10, "memory_mb": 1024},
}


def spec_of(
    name: str,
    source: Source,
    language: str,
    seams: Mapping[str, SeamLine],
    ways: Mapping[str, SeamLine],
    lines: tuple[CaseLine, ...],
) -> dict[str, Any]:
    """seams: what a submission defines; ways: how its functions are called otherwise. lines: of all cases."""
    gate, called = source.literal("gate"), {**seams, **ways}
    measured = gate is not None or any("measured" in line.marks for line in lines)
    spec: dict[str, Any] = {
        "title": source.literal("title"),
        "summary": source.summary,
        "path": source.literal("path"),
        "order": source.literal("order"),
        "language": language,
        "file": source.literal("file", name + LANGUAGES[language].suffix),
        "backends": BACKENDS[language],
        "ranking": "speedup" if measured else "first_accepted",
        "seam": _seam_of(source, language, seams, lines),
        "limits": {**LIMITS[language], **source.literal("limits", {})},
        "tolerance": {},
        "tensors": _tensors(source, called),
        "cases": [case_of(line, called[line.seam], dict(line.values)) for line in lines if not line.drawn],
        "mistakes": list(_mistakes(source)),
        "done_when": [_done_when(item) for item in source.literal("done_when", [])],
        "short": True,
    }
    if gate is not None:
        spec["gate"] = {"speedup": gate}
    return spec | {key: source.literal(key) for key in PASSED_ON if key in source.values}


def derived_of(source: Source) -> tuple[Argument, ...]:
    """Tensors that are made of what comes back, by functions of their names."""
    stated, line = source.literal("derived", {}), source.line("derived")
    try:
        found = tuple(result(f"{name}: {form}") for name, form in stated.items())
    except SeamError as error:
        raise StageFileError(line, f"derived: {error}") from None
    for each in found:
        if each.name not in source.functions:
            raise StageFileError(line, f"derived: no function {each.name} is defined")
    return found


def _tensors(source: Source, called: Mapping[str, SeamLine]) -> dict[str, Any]:
    """Every judged tensor: what comes back, again where one call is made on changed inputs too, and what is made of these."""
    titles = source.literal("titles", {})
    judged = {each.judged: each for seam in called.values() for each in seam.judged}
    if source.literal("changed"):
        judged |= {name + CHANGED: each for name, each in judged.items()}
    judged |= {each.name: each for each in derived_of(source)}
    return {
        name: {
            "axes": _axes(each.dims),
            "dtype": "" if each.dtype == OF_THE_CASE else each.dtype,
            "title": titles.get(name, ""),
        }
        for name, each in judged.items()
    }


def _axes(dims: tuple[str, ...]) -> list[str]:
    """One of each size's name: "row 3" of [rows, width]; of a formula, its place."""
    places = {0: "row", len(dims) - 1: "column"} if len(dims) > 1 else {}
    return [_axis(dim, places.get(at, f"axis {at}")) for at, dim in enumerate(dims)]


def _axis(dim: str, otherwise: str) -> str:
    if not dim.isidentifier():
        return otherwise
    return dim[:-1] if dim.endswith("s") and len(dim) > 2 else dim


def _seam_of(
    source: Source, language: str, seams: Mapping[str, SeamLine], lines: tuple[CaseLine, ...]
) -> dict[str, Any]:
    cuda = language == "cuda"
    contract: dict[str, str] = {}
    try:
        signatures = [seam.c_signature() if cuda else seam.python_signature() for seam in seams.values()]
    except SeamError as error:
        raise StageFileError(source.line("seam") or source.line("seams"), str(error)) from None
    for name, seam in seams.items():
        contract |= {each.name: _number(each, name, lines) for each in seam.numbers if each.name not in seam.sizes}
        contract |= seam.contract(cuda=cuda)
    first = next(iter(seams.values()))
    return {
        "name": first.name,
        "signature": signatures[0],
        "contract": {**contract, **source.literal("contract", {})},
        "others": dict(zip([seam.name for seam in seams.values()][1:], signatures[1:], strict=True)),
    }


def _number(each: Argument, seam: str, lines: tuple[CaseLine, ...]) -> str:
    """The row of a number that is no size: what it is in the cases, as far as they show it."""
    shown = [line.values[each.name] for line in lines if line.seam == seam and "hidden" not in line.marks]
    listed = list(dict.fromkeys(str(value) for value in shown if not is_drawn(value)))
    if len(listed) == 1 and not any(is_drawn(value) for value in shown):
        return f"{each.dtype}: {listed[0]} in every case that is listed"
    return f"{each.dtype}: from case to case, {', '.join(listed[:4])}{', …' if len(listed) > 4 else ''}"


def _done_when(item: object) -> dict[str, Any]:
    return {"text": item} if isinstance(item, str) else dict(zip(("text", "answer"), item, strict=False))  # type: ignore[call-overload]


def _mistakes(source: Source) -> Iterator[dict[str, Any]]:
    """Names, titles and hints; the functions beside them are not looked at."""
    node = source.values.get("mistakes")
    if node is None:
        return
    if not isinstance(node, ast.Dict):
        raise StageFileError(node.lineno, "mistakes is {name: (function, title, hint)}")
    for key, value in zip(node.keys, node.values, strict=True):
        name = literal_of(key, "mistakes") if key else None
        parts = value.elts if isinstance(value, ast.Tuple) else []
        if not isinstance(name, str) or len(parts) not in (3, 4):
            raise StageFileError(
                value.lineno,
                f"mistakes: {name}: accepted is (function, title, hint), and behind them a reason where it shows as a "
                "contract violation, or the values of the function's parameters that are tried: {'block': (128, 256)}",
            )
        words = [literal_of(part, f"mistakes: {name}") for part in parts[1:]]
        stated = dict(zip(("name", "title", "hint"), [name, *words], strict=False))
        behind = words[2:]
        if behind and isinstance(behind[0], dict):
            stated |= _family(value.lineno, name, words[0], behind[0])
        elif behind:
            stated["violation"] = behind[0]
        yield stated


def _family(line: int, name: str, form: str, among: Mapping[str, object]) -> dict[str, Any]:
    values = {key: tuple(each) if isinstance(each, tuple | list) else (each,) for key, each in among.items()}
    if not 1 < prod(len(each) for each in values.values()) <= MOST_MEMBERS:
        raise StageFileError(line, f"mistakes: {name}: 2 to {MOST_MEMBERS} combinations of values are accepted")
    try:
        title = filled(form, [dict(zip(values, each, strict=True)) for each in product(*values.values())])
    except (KeyError, ValueError, IndexError) as error:
        raise StageFileError(
            line, f"mistakes: {name}: the title names {error}; the values are of {', '.join(values)}"
        ) from None
    return {"title": title, "form": form, "among": values}


# --- cases --------------------------------------------------------------------------------------------------------------


def case_of(line: CaseLine, seam: SeamLine, values: Mapping[str, Any]) -> dict[str, Any]:
    """A case of the spec from a line whose values are all drawn."""
    arrays, told = {each.name for each in seam.arrays}, {*seam.sizes, *(each.name for each in seam.numbers)}
    params = {key: value for key, value in values.items() if key in told}
    data = {key: value for key, value in values.items() if key not in told}
    dtype = DTYPES.get(line.dtype) or next(each.dtype for each in seam.judged)
    marks: dict[str, Any] = {mark: True for mark in ("measured", "needs_gpu", "refused") if mark in line.marks}
    by_hand = any(isinstance(value, list) for key, value in data.items() if key in arrays)
    return {
        "name": line.name,
        "title": _filled(line, dtype, values) or _title(line, seam, params, data),
        "group": line.group or ("Profile" if "measured" in line.marks else "By hand" if by_hand else "Sizes"),
        "dtype": dtype,
        "params": params,
        "data": {
            key: repr(value) if key in arrays and isinstance(value, list) else value for key, value in data.items()
        },
        "seam": line.seam,
        **marks,
    }


def _filled(line: CaseLine, dtype: str, values: Mapping[str, Any]) -> str:
    """The title with the values that it names in braces."""
    try:
        return line.title.format_map({**values, "dtype": line.dtype or dtype})
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise SeamError(f"case line {line.at} ({line.name}): title={line.title[:80]!r}: {error}") from None


def _title(line: CaseLine, seam: SeamLine, params: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Sizes, the numbers that are not every case's, what the arrays are made of."""
    numbers = [key for key in params if key not in seam.sizes and key not in line.inherited]
    words = [f"{key} {_short(params[key])}" for key in [*seam.sizes, *numbers]]
    words += [f"{key} = {_short(value)}" for key, value in data.items() if key not in line.inherited]
    return ", ".join([*words, line.dtype] if line.dtype else words)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
