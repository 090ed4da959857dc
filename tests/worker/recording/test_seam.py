"""The signature in stage.toml, as the recorder reads it."""

from __future__ import annotations

import pytest

from kernelgate.stages import Stage, StageError
from worker.recording.seam import Kind, parameters


def test_the_capstone_signature(stage: Stage) -> None:
    found = [(part.kind, part.name) for part in parameters(stage.spec.seam.signature)]
    assert found == [(Kind.INPUT, "qkv"), (Kind.OUTPUT, "out"), (Kind.INT, "tokens"), (Kind.STREAM, "stream")]


@pytest.mark.parametrize(
    "signature", ["void f()", 'extern "C" int f(int n)', 'extern "C" void f(float** x)', 'extern "C" void f(char c)']
)
def test_what_is_not_understood_is_named(signature: str) -> None:
    with pytest.raises(StageError, match="seam"):
        parameters(signature)


def test_starter_and_baseline_are_one_kernel(stage: Stage) -> None:
    assert stage.starter == stage.text("baseline.cu")
