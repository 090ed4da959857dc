"""The short form of a stage, `stage.py`, read as data: nothing of it is run here.

Top-level assignments of literals say what the stage is; functions are known by their names and parameters alone. The worker
runs the file, on the trusted side, for the reference, the inputs and the mistakes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelgate import case_lines, edit_lines
from kernelgate.case_lines import CaseLine
from kernelgate.edit_lines import Edit
from kernelgate.languages import LANGUAGES
from kernelgate.refusals import refusals_of
from kernelgate.seams import DTYPES, OF_THE_CASE, Argument, SeamError, SeamLine, names_in, parse
from kernelgate.stage_source import Source, StageFileError
from kernelgate.stage_spec import PASSED_ON, derived_of, spec_of

FILE = "stage.py"
FORM = b"short form 1\n"
"""Changed with what is derived from a stage.py: part of every such stage's hash."""
REQUIRED = ("title", "path", "order", "language", "cases")
READ_HERE = (
    *(
        "file",
        "gate",
        "seam",
        "seams",
        "ways",
        "limits",
        "contract",
        "done_when",
        "mistakes",
        "edits",
        "work",
        "independent",
    ),
    *("derived", "changed", "refused", "titles"),
)
RUN = ("inputs", "tolerance", "share")
"""Assignments that may hold functions, or functions; the worker reads them."""
ONE_SEAM = ""
"""The name of the only seam of a stage that has one."""


@dataclass(frozen=True)
class StageFile:
    """What a stage.py says. spec: as stage.toml would have it; lines of all cases; what timed calls take; edits.

    seams: all that a case can call, by name. ways: those of them that are functions of driver.py, which call the submission's.
    derived: tensors that are made of what comes back. changed: the input that a second run has another value of.
    """

    spec: dict[str, Any]
    seams: dict[str, SeamLine]
    ways: frozenset[str]
    lines: tuple[CaseLine, ...]
    timed: tuple[CaseLine, ...]
    edits: tuple[Edit, ...]
    derived: tuple[Argument, ...] = ()
    changed: str = ""
    refused: tuple[dict[str, Any], ...] = ()
    independent: tuple[str, ...] = ()
    work: str = "0"
    defined: frozenset[str] = field(default_factory=frozenset)


def read(name: str, text: str) -> StageFile:
    """Reads the stage.py of the folder `name`. Raises StageFileError."""
    source = Source(text)
    _check_names(source)
    language = source.literal("language")
    if language not in LANGUAGES:
        raise StageFileError(source.line("language"), f"no language {language!r}; known: {', '.join(LANGUAGES)}")
    seams, ways = _seams(source), _ways(source, language)
    called = {**seams, **ways}
    lines, timed = _cases(source, called)
    _check_functions(source, called)
    try:
        spec = spec_of(name, source, language, seams, ways, lines)
        refused = refusals_of(source.literal("refused", {}), next(iter(seams.values())))
    except SeamError as error:
        raise StageFileError(0, str(error)) from None
    return StageFile(
        spec,
        called,
        frozenset(ways),
        lines,
        timed,
        tuple(_edits(source, [each["name"] for each in spec["mistakes"]])),
        derived_of(source),
        _changed(source, language, called),
        tuple(refused),
        tuple(str(source.literal("independent", "")).split()),
        str(source.literal("work", "0")),
        frozenset(source.functions),
    )


def _check_names(source: Source) -> None:
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


def _seams(source: Source) -> dict[str, SeamLine]:
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


def _ways(source: Source, language: str) -> dict[str, SeamLine]:
    """Functions of driver.py that call the submission's, as seams by their names."""
    texts = source.literal("ways", {})
    if texts and language != "pytorch":
        raise StageFileError(
            source.line("ways"), "ways of calling are functions of a driver.py, which PyTorch stages alone have"
        )
    try:
        return {name: parse(f"{name}{text}") for name, text in texts.items()}
    except SeamError as error:
        raise StageFileError(source.line("ways"), f"ways: {error}") from None


def _changed(source: Source, language: str, called: Mapping[str, SeamLine]) -> str:
    name = str(source.literal("changed", ""))
    known = [each.name for seam in called.values() for each in seam.arrays]
    if name and (language != "triton" or name not in known):
        what = f"changed is {name!r}; accepted is an input of a Triton stage, of {', '.join(known)}"
        raise StageFileError(source.line("changed"), what)
    return name


def makers_of(source: Source, seams: Mapping[str, SeamLine]) -> list[str]:
    """The functions that make all inputs of a case, `inputs` or `inputs_NAME` of a seam, and what asks for the same values."""
    names = ("inputs", *(f"inputs_{seam}" for seam in seams), "tolerance")
    return [name for name in names if name in source.functions]


def _cases(source: Source, seams: Mapping[str, SeamLine]) -> tuple[tuple[CaseLine, ...], tuple[CaseLine, ...]]:
    """The lines of cases, and of what timed calls take."""
    known: dict[str, None] = {}
    for seam in seams.values():
        known |= dict.fromkeys(
            [*seam.sizes, *(each.name for each in seam.numbers), *(each.name for each in seam.arrays)]
        )
    for maker in makers_of(source, seams):
        known |= dict.fromkeys(name for name in source.parameters(maker) if name not in ("rng", "dtype", "seam"))
    try:
        lines = case_lines.read(str(source.literal("cases")), list(known))
        timed = [line for line in lines if line.name == case_lines.TIMED]
        lines = [line for line in lines if line.name != case_lines.TIMED]
        for line in lines:
            _check_case(line, seams)
    except (case_lines.CaseLineError, SeamError) as error:
        raise StageFileError(source.line("cases"), str(error)) from None
    return tuple(lines), tuple(timed)


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


def _check_functions(source: Source, seams: Mapping[str, SeamLine]) -> None:
    """The reference of each seam is there and asks for nothing that the seam does not have."""
    for name, seam in seams.items():
        wanted = f"reference_{name}" if name else "reference"
        function = source.functions.get(wanted)
        if function is None:
            raise StageFileError(0, f"no function {wanted} is defined")
        given = [*(each.name for each in seam.arguments), *seam.sizes]
        made = [name for maker in makers_of(source, seams) for name in source.parameters(maker)]
        for argument in source.parameters(wanted):
            if argument not in {*given, *made, "dtype"} and argument not in source.optional(wanted):
                raise StageFileError(
                    function.lineno,
                    f"{wanted} asks for {argument!r}; the seam has {', '.join(dict.fromkeys(given))}",
                )
    formula = str(source.literal("work", "0"))
    try:
        names_in(formula)
    except SeamError as error:
        raise StageFileError(source.line("work"), f"work: {error}") from None


def _edits(source: Source, mistakes: list[str]) -> Iterator[Edit]:
    stated = source.literal("edits", {})
    if isinstance(stated, str):
        try:
            yield from edit_lines.read(stated, mistakes)
        except edit_lines.EditLineError as error:
            raise StageFileError(source.line("edits"), str(error)) from None
        return
    for name, parts in stated.items():
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
