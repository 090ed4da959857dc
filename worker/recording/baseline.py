"""The trusted baseline of a stage, compiled once per content and architecture and kept under the data folder."""

from __future__ import annotations

from functools import cache

from kernelgate.stages import Stage
from worker.recording.compile import Compiled
from worker.recording.cubin import read_cubin
from worker.recording.native import cuda_program


def compiled_baseline(stage: Stage, target: str) -> Compiled:
    """The baseline's host library and cubin. Raises native.BuildError."""
    return _compiled(stage.text("baseline.cu"), tuple(sorted(stage.provided.items())), target)


@cache
def _compiled(source: str, provided: tuple[tuple[str, str], ...], target: str) -> Compiled:
    texts = {"baseline.cu": source.encode(), **{name: text.encode() for name, text in provided}}
    library, cubin = (path.read_bytes() for path in cuda_program(texts, "baseline.cu", target))
    return Compiled(library, cubin, read_cubin(cubin), "")
