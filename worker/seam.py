"""The seam of a CUDA stage: what a submission's one host function takes, read from the signature in stage.toml.

A pointer to const is an input, named as in the grader's `inputs`; another pointer is an output, named as in its `outputs`; an
integer or a float is a number of the case's params; a cudaStream_t is the stream everything has to be joined to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from kernelgate.stages import StageError


class Kind(StrEnum):
    """What a parameter of the seam is."""

    INPUT = "input"
    OUTPUT = "output"
    INT = "int"
    FLOAT = "float"
    STREAM = "stream"


@dataclass(frozen=True)
class Parameter:
    """One parameter: its kind and its name in the signature."""

    kind: Kind
    name: str


_SIGNATURE = re.compile(r'extern "C" void (?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^()]*)\)')
_PARAMETER = re.compile(r"(?P<type>(?:const )?(?:float|int|cudaStream_t))\s*(?P<star>\*?)\s*(?P<name>[A-Za-z_]\w*)")
_KINDS = {
    ("const float", "*"): Kind.INPUT,
    ("float", "*"): Kind.OUTPUT,
    ("int", ""): Kind.INT,
    ("float", ""): Kind.FLOAT,
    ("cudaStream_t", ""): Kind.STREAM,
}


def parameters(signature: str) -> tuple[Parameter, ...]:
    """The parameters of a seam in order. Raises StageError naming the part that is not understood."""
    whole = _SIGNATURE.fullmatch(signature.strip())
    if whole is None:
        raise StageError(f'seam signature {signature[:120]!r}: accepted is `extern "C" void name(parameters)`')
    return tuple(_parameter(part.strip()) for part in whole["parameters"].split(","))


def _parameter(text: str) -> Parameter:
    part = _PARAMETER.fullmatch(text)
    kind = _KINDS.get((part["type"], part["star"])) if part else None
    if part is None or kind is None:
        raise StageError(
            f"seam parameter {text[:80]!r}: accepted are const float* (input), float* (output), int, float and cudaStream_t"
        )
    return Parameter(kind, part["name"])
