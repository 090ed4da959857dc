"""Calls that a submission has to refuse, as a stage.py writes them: `"float32": "q: f32[33, 32], k: f32[33, 32], block_n=16"`.

What a call does not name is as the case has it. `transposed` behind an array makes it the transpose of one that is contiguous,
`strided` every second row of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kernelgate.seams import DTYPES, Role, SeamError, SeamLine

_ARRAY = re.compile(r"(?P<name>\w+)\s*:\s*(?P<dtype>\w+)\[(?P<shape>[\d,\s]*)\]\s*(?P<layout>transposed|strided|)")
_NUMBER = re.compile(r"(?P<name>\w+)\s*=\s*(?P<value>-?\d+(\.\d+)?|true|false)")


def refusals_of(stated: Mapping[str, str], seam: SeamLine) -> list[dict[str, Any]]:
    """Each call: `what` it is, `arrays` by name, `numbers` by name. Raises SeamError that quotes the part."""
    return [_refusal(what, text, seam) for what, text in stated.items()]


def _refusal(what: str, text: str, seam: SeamLine) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    for part in (part.strip() for part in re.split(r",(?![^\[]*\])", text)):
        array, number = _ARRAY.fullmatch(part), _NUMBER.fullmatch(part)
        if array and array["dtype"] in DTYPES and array["name"] in {each.name for each in seam.arrays}:
            shape = [int(size) for size in array["shape"].split(",") if size.strip()]
            arrays[array["name"]] = {"shape": shape, "dtype": DTYPES[array["dtype"]], "layout": array["layout"]}
        elif number and number["name"] in {each.name for each in seam.numbers}:
            numbers[number["name"]] = _value(number["value"])
        else:
            names = ", ".join(each.name for each in seam.arguments if each.role is not Role.RESULT)
            raise SeamError(
                f"refused: {what}: {part[:80]!r}; accepted are x: f32[3, 4], with transposed or strided behind it, and n=5, "
                f"of {names}"
            )
    return {"what": what, "arrays": arrays, "numbers": numbers}


def _value(text: str) -> int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text)
