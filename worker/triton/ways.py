"""How Triton is graded: replayed on a card, or interpreted. There too the sandbox's Triton is what records a submission."""

from __future__ import annotations

from worker.gpu import backend as gpu
from worker.judging.way import Way, cannot_import
from worker.triton import interpret, replay

WARM = (
    "triton",
    "triton.backends.nvidia.compiler",
    "triton.backends.nvidia.driver",
    "triton.experimental.gluon.nvidia.hopper",
    "torch.utils._python_dispatch",
)
"""What a session that records kernels would else import for seconds."""


def _no_triton() -> str | None:
    return cannot_import("torch") or cannot_import("triton")


def _no_triton_on_gpu() -> str | None:
    return gpu.missing_gpu() or _no_triton()


ON_A_CARD = (Way("triton", replay.run_cases, _no_triton_on_gpu),)
INTERPRETED = (Way("triton", interpret.run_cases, _no_triton, WARM),)
