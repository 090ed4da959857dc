"""The seam of a CUDA stage: what a submission's one host function takes, read from the signature in stage.toml.

A pointer to const is an input, named as in the grader's `inputs`; another pointer is an output, named as in its `outputs`, or
an array that is changed in place, where a stage.py says so; an integer or a float is a number of the case's params; a
cudaStream_t is the stream everything has to be joined to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelgate.seams import C_TYPES, Role
from kernelgate.stages import Case, Stage, StageError
from worker.judging.arrays import ITEM_SIZE


class Kind(StrEnum):
    """What a parameter of the seam is."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    INT = "int"
    FLOAT = "float"
    STREAM = "stream"


@dataclass(frozen=True)
class Parameter:
    """One parameter: its kind, its name in the signature, and its type as C++ spells it, without a pointer's star."""

    kind: Kind
    name: str
    type: str = "float"

    @property
    def itemsize(self) -> int:
        """Bytes of one value of an array."""
        return ITEM_SIZE[DTYPES[self.type]]


_SIGNATURE = re.compile(r'extern "C" void (?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^()]*)\)')
_PARAMETER = re.compile(
    r"(?P<type>(?:const )?(?:[A-Za-z_]\w*(?: char| short| long long)?))\s*(?P<star>\*?)\s*\b(?P<name>[A-Za-z_]\w*)"
)
DTYPES = {spelled: dtype for dtype, spelled in C_TYPES.items()}
"""The numpy name of what an array parameter points to; numpy has no bfloat16, its values travel as uint16."""
_KINDS = {
    **{(f"const {name}", "*"): Kind.INPUT for name in DTYPES},
    **{(name, "*"): Kind.OUTPUT for name in DTYPES},
    ("int", ""): Kind.INT,
    ("unsigned", ""): Kind.INT,
    ("float", ""): Kind.FLOAT,
    ("double", ""): Kind.FLOAT,
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
            f"seam parameter {text[:80]!r}: accepted are const T* (input) and T* (output) with T one of "
            f"{', '.join(DTYPES)}; int, unsigned, float, double and cudaStream_t"
        )
    return Parameter(kind, part["name"], part["type"].removeprefix("const "))


def seam_of(stage: Stage, case: Case) -> tuple[Parameter, ...]:
    """The parameters of the seam that a case calls. Raises StageError."""
    found = parameters(signature_of(stage, case))
    if stage.form is None:
        return found
    inout = {each.name for each in stage.form.seams[case.seam].arguments if each.role is Role.INOUT}
    return tuple(replace(part, kind=Kind.INOUT) if part.name in inout else part for part in found)


def name_of(stage: Stage, case: Case) -> str:
    """The function that a case calls."""
    return stage.form.seams[case.seam].name if stage.form else stage.spec.seam.name


def signature_of(stage: Stage, case: Case) -> str:
    return stage.spec.seam.others.get(name_of(stage, case), stage.spec.seam.signature)
