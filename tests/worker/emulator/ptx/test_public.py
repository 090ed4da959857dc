"""Kernels in the manner of public ones: nvcc takes them, their PTX is translated, and numpy's answers come out in every pass.

The whole way is gone: the host code is recorded, the tape is played plainly, in another order of threads and in the checking
passes, with other inputs before and the same once more behind.
"""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from kernelgate.stages import Case, Seam, Spec, Stage
from tests.worker.emulator.ptx.public_kernels import FOLDER, PUBLIC, Public
from worker.emulator import run_cases
from worker.emulator.toolchain import Toolchain
from worker.judging.failures import Failure
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.recording.native import BuildError, cuda_root
from worker.sandbox import Sandbox


@pytest.fixture(scope="module")
def nvcc() -> None:
    try:
        cuda_root()
    except BuildError as error:
        pytest.skip(str(error))


def stage_of(sample: Public) -> Stage:
    """The scratch stage with the sample's seam and one case of its size."""
    folder = FOLDER.parent / "public_stage"
    spec = Spec.model_validate(tomllib.loads((folder / "stage.toml").read_text()))
    signature = spec.seam.signature.replace("seam(", f"{sample.name}(")
    size = int(sample.inputs(np.random.default_rng(0)).size)
    case = Case(name=sample.name, title=sample.name, group="kernels", params={"n": size})
    seam = Seam(name=sample.name, signature=signature)
    files = {"grader.py": (folder / "grader.py").read_bytes()}
    return Stage(folder, spec.model_copy(update={"seam": seam, "cases": (case,)}), files)


@pytest.mark.nvcc
@pytest.mark.usefixtures("nvcc")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sample", PUBLIC, ids=lambda sample: sample.name)
def test_a_public_kernel_gives_numpys_answer(compiler: Toolchain, sandbox: Sandbox, sample: Public) -> None:
    del compiler
    stage = stage_of(sample)
    job = Job(stage, sample.source, Grader(stage), sandbox, "7e57" * 8, Phases(Unwatched()))
    try:
        (ran,) = run_cases(job)
    except Failure as failure:
        pytest.fail(f"{failure.verdict}, {failure.reason}: {failure.message}\n{failure.log[:2000]}")
    y = np.frombuffer(ran.outputs["y"].data, np.float32)
    assert sample.wrong(ran.inputs["x"], y) == ""


def test_every_file_is_a_sample() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == {sample.name for sample in PUBLIC}
