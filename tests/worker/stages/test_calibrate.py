"""What repeated gradings say: the one in the middle, and how far they lie apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelgate.protocol import KernelResources, Result, Timing
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend
from kernelgate.verdicts import Verdict
from worker.commands import bench
from worker.stages.calibrate import Grading, NotMeasuredError, as_json, told


def graded(speedup: float | None) -> Grading:
    timing = speedup and Timing(
        baseline_ms=0.5 * speedup,
        user_ms=0.5,
        speedup=speedup,
        speedup_low=speedup - 0.01,
        speedup_high=speedup + 0.01,
        gate=1.8,
        baseline_samples_ms=(0.5 * speedup,),
        user_samples_ms=(0.5,),
        facts={"gflop_per_s": 1234.4, "share_of_fp32_peak": 0.25},
    )
    result = Result(
        verdict=Verdict.ACCEPTED if speedup else Verdict.COMPILE_ERROR,
        reason="passed" if speedup else "nvcc_error",
        message="It does not compile.",
        stage="online_attention",
        stage_hash="0" * 16,
        backend=Backend.GPU,
        seed="0",
        timing=timing or None,
        resources=(
            KernelResources(kernel="tile<32>(float*)", registers=95, spill_bytes=8, shared_bytes=64, occupancy=0.25),
        ),
    )
    return Grading("attention", result, 3.0)


def test_the_grading_in_the_middle_is_told_with_the_spread(graders: Path) -> None:
    lines = told(load_stage(graders / "online_attention"), [graded(2.0), graded(2.1), graded(2.5)])
    assert "ATTN USER MS      0.5000\n" in lines
    assert "SPEEDUP           2.100x  (95 %: 2.090 to 2.110)\n" in lines
    assert "GRADINGS          3, from 2.000x to 2.500x (spread 23.81%)\n" in lines
    assert "GFLOP/S           1234  (25.0% of the fp32 peak)\n" in lines
    kernel = "tile<32>(float*): 95 registers, 8 B spilled, 64 B static shared, occupancy 25%"
    assert f"KERNEL            {kernel}\n" in lines


def test_what_was_not_measured_is_said_and_not_summed_up(graders: Path) -> None:
    with pytest.raises(
        NotMeasuredError, match=r"attention was not measured: compile_error \(nvcc_error\): It does not"
    ):
        told(load_stage(graders / "online_attention"), [graded(2.0), graded(None)])


def test_every_sample_is_kept(graders: Path) -> None:
    kept = json.loads(json.dumps(as_json(load_stage(graders / "online_attention"), [graded(2.0), graded(None)])))
    assert [each["verdict"] for each in kept["gradings"]] == ["accepted", "compile_error"]
    assert kept["gradings"][0]["timing"]["user_samples_ms"] == [0.5]
    assert kept["gradings"][0]["total_s"] == 3.0


def test_a_folder_that_cannot_be_made_is_found_out_before_anything_is_measured(graders: Path) -> None:
    stage = graders / "online_softmax"
    words = [str(stage), str(stage / "solution" / "online_softmax.py"), "--output", "/proc/none/here.json"]
    done = CliRunner().invoke(bench, words)
    assert done.exit_code == 1
    assert "/proc/none" in done.output
    assert "online_softmax:" not in done.output, "no grading was made"
