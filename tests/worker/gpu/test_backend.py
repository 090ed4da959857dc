"""What only a GPU can show: graded on this host's card, where it has one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelgate.protocol import Result
from kernelgate.settings import ROOT
from kernelgate.stages import Backend, Case, Stage
from kernelgate.verdicts import Verdict
from tests.worker.recording.conftest import with_workspace
from worker.emulator.check_pass import offered
from worker.gpu.backend import fit, missing_gpu, model, spare
from worker.gpu.bench_client import Bench, look, probe
from worker.gpu.player import Player
from worker.gpu.protocol import CaseResult, Loaded, LoadModule, Ready, RunCase
from worker.gpu.sanitizer import sanitizer
from worker.grade import grade, new_seed
from worker.judging.job import Job
from worker.recording.compile import architecture, compile_cuda
from worker.recording.placement import WORKSPACE, Edge, place
from worker.recording.record import Device, Take, record
from worker.sandbox import Sandbox
from worker.stages.calibrate import calibrate, told
from worker.stages.pool import GradingPool

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
Grade = Callable[[str], Result]
Arrays = NDArray[np.float32]


@pytest.fixture(autouse=True)
def card(own_settings: None) -> str:
    """The card's name. Skips, with what is missing, where there is none to grade on."""
    del own_settings
    why = missing_gpu()
    if why is not None:
        pytest.skip(why)
    return str(model())


def test_the_device_masks_and_hashes_as_the_host_does(card: str) -> None:
    del card
    code = """
import numpy as np
from cuda.bindings import driver as cu
from worker.bench.card import Card
from worker.bench.driver import check
from worker.bench.guard import Guard, Release
from worker.gpu.masking import KEY_BYTES, masked, new_key, tree_root
from worker.recording.compile import architecture
from worker.recording.native import guard_image
ready = Card().ready()
stream = check(cu.cuStreamCreate(1))
guard = Guard(guard_image(architecture(*ready.capability)), stream)
release = Release(guard, 2)
for size in (1, 33, 8192, 8196, 1000003, 6291456):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    key = new_key()
    (hidden,) = masked([data], key)
    at = int(check(cu.cuMemAlloc(size)))
    check(cu.cuMemcpyHtoD(at, hidden.ctypes.data, size))
    roots = guard.roots([(at, size)])
    release.hold()
    guard.unmask(at, size, 0, release.keys + KEY_BYTES)()
    roots.launch()
    assert cu.cuStreamQuery(stream)[0] == cu.CUresult.CUDA_ERROR_NOT_READY and not roots.here[0]
    release.give(bytes(KEY_BYTES) + key)
    check(cu.cuStreamSynchronize(stream))
    assert guard.differing(at, size, int(data[0])) == int((data != data[0]).sum())
    back = np.empty(size, np.uint8)
    check(cu.cuMemcpyDtoH(back.ctypes.data, at, size))
    assert (back == data).all() and int(roots.here[0]) == tree_root(data), size
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def graded(stage: Stage, sandbox: Sandbox) -> Grade:
    def run(name: str) -> Result:
        return grade(stage, (stage.folder / name).read_bytes(), sandbox=sandbox, seed=new_seed())

    return run


def test_the_card_is_well(card: str) -> None:
    assert card
    assert look() is None
    assert fit()


def test_the_solution_is_right_and_measured(graded: Grade, stage: Stage) -> None:
    result = graded("solution/attention.cu")
    assert result.backend is Backend.GPU
    assert result.verdict in (Verdict.ACCEPTED, Verdict.GATE_MISSED), result.message
    assert result.timing is not None
    assert len(result.timing.user_samples_ms) == len(result.timing.baseline_samples_ms) >= 2
    assert result.timing.speedup_low <= result.timing.speedup <= result.timing.speedup_high
    for known in ("flops", "gflop_per_s", "peak_gflop_per_s", "bytes", "gb_per_s", "peak_gbps"):
        value = result.timing.facts[known]
        assert isinstance(value, float), known
        assert value > 0, known
    assert result.timing.facts["bytes"] == 2048 * (768 + 512) * 4
    assert result.timing.facts["by_host_ms"] == pytest.approx(result.timing.user_ms, rel=0.2)
    assert result.timing.facts["baseline_alone_ms"] == pytest.approx(result.timing.baseline_ms, rel=0.05)
    assert result.held == ""
    assert all(each.occupancy is not None and 0 < each.occupancy <= 1 for each in result.resources)
    if offered(stage):
        assert re.match(r"nothing found \(\d+ cases, ", result.machine["check pass"])


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("runtime_error/writes_past_the_end.cu", Verdict.RUNTIME_ERROR, "illegal_address"),
        ("runtime_error/writes_before_the_start.cu", Verdict.RUNTIME_ERROR, "illegal_address"),
        ("runtime_error/misaligned_vector.cu", Verdict.RUNTIME_ERROR, "misaligned_address"),
        ("contract_violation/input_scribbled.cu", Verdict.CONTRACT_VIOLATION, "inputs_changed"),
        ("time_limit/endless_kernel.cu", Verdict.TIME_LIMIT, "time_limit"),
        ("gate_missed/cached_by_pointer.cu", Verdict.GATE_MISSED, "too_slow"),
        ("wrong_answer/racing_sum.cu", Verdict.WRONG_ANSWER, "not_repeatable"),
    ],
)
def test_what_a_submission_does_to_the_card_is_told_and_costs_only_itself(
    graded: Grade, name: str, verdict: Verdict, reason: str
) -> None:
    result = graded(f"submissions/{name}")
    assert (result.verdict, result.reason) == (verdict, reason), result.message
    assert spare.examine() is None, "the next submission finds the card well"
    if sanitizer() is not None and reason in ("illegal_address", "misaligned_address"):
        assert re.search(r" compute-sanitizer: [A-Z].* in attention\.cu:\d+, by thread \(", result.message), (
            result.message
        )


def test_a_race_that_the_card_survives_is_told(stage: Stage, sandbox: Sandbox) -> None:
    if not offered(stage):
        pytest.skip("this host makes no check pass: it has no C++ compiler, or is told not to")
    source = stage.text("submissions/gate_missed/plain_rows.cu").replace("__syncwarp();", "")
    result = grade(stage, source.encode(), sandbox=sandbox, seed=new_seed())
    assert (result.verdict, result.reason) == (Verdict.WRONG_ANSWER, "race"), result.message
    assert "check pass: line" in result.message
    assert result.timing is None
    wrong = grade(stage, source.replace("* SCORE_SCALE", "").encode(), sandbox=sandbox, seed=new_seed())
    assert (wrong.reason, wrong.mistake and wrong.mistake.name) == ("wrong_value", "scale_forgotten"), wrong.message
    assert "Found on the CPU: Case " in wrong.message


def test_a_race_is_told_by_the_sanitizer_and_the_check_pass(graded: Grade, stage: Stage) -> None:
    if sanitizer() is None:
        pytest.skip("compute-sanitizer is neither on PATH nor in the CUDA toolkit")
    message = graded("submissions/wrong_answer/racing_tile.cu").message
    assert "compute-sanitizer: Race reported" in message
    if offered(stage):
        assert "Found on the CPU: Case " in message


def replayed(made: Job, device: Device, tokens: int) -> tuple[Arrays, Arrays]:
    """One seam recorded and replayed once: the input, and what it wrote, [tokens, 512]."""
    card = probe()
    assert isinstance(card, Ready)
    compiled = compile_cuda(made, architecture(*card.capability))
    case = Case(name="once", title="", group="", params={"tokens": tokens})
    sizes = {"qkv": 3072 * tokens, "out": 2048 * tokens}
    if made.stage.spec.limits.workspace_kb:
        sizes[WORKSPACE] = made.stage.spec.limits.workspace_kb * 1024
    take = Take(case, Edge.END, place(sizes, frozenset({"out", WORKSPACE}), Edge.END))
    tape = record(made, compiled, device, [take])[take.label]
    qkv = np.random.default_rng(1).standard_normal((tokens, 768)).astype(np.float32)
    bench = Bench()
    try:
        bench.ready()
        player = Player(bench)
        player.ask(LoadModule(), Loaded, compiled.device)
        order = RunCase(take.buffers, len(tape.raw), 5.0)
        _, payload = player.ask(order, CaseResult, tape.raw + qkv.tobytes())
    finally:
        bench.close()
    return qkv, np.frombuffer(payload, np.float32).reshape(tokens, 512)


def test_a_tensor_map_reads_what_the_seam_described(
    job: Callable[[str], Job], sources: Path, device: Device, card: str
) -> None:
    known = probe()
    assert isinstance(known, Ready)
    if known.capability[0] < 9:
        pytest.skip(f"tensor maps need compute capability 9.0; the {card} has {known.capability}")
    qkv, out = replayed(job((sources / "tensor_map.cu").read_text()), device, tokens=13)
    assert np.array_equal(out[:, :64], qkv[:, 640:704])
    assert np.isnan(out[:, 64:]).all(), "nothing else was written"


def test_a_workspace_is_memory_like_any_other(job: Callable[[str], Job], sources: Path, device: Device) -> None:
    made = with_workspace(job((sources / "workspace.cu").read_text()), kb=32)
    qkv, out = replayed(made, device, tokens=13)
    assert np.array_equal(out, qkv[:, :512])


def test_a_calibration_has_a_row_for_every_file(stage: Stage, sandbox: Sandbox, card: str) -> None:
    seen = []
    with GradingPool(sandbox) as pool:
        found = calibrate(stage, pool, 1, watch=seen.append)
    assert found.gpu == card
    assert found.stage_hash == stage.hash
    assert {row.name for row in found.rows} == {
        "starter",
        "solution",
        "half_warp_a_key",
        "plain_rows",
        "register_tiles",
    }
    solution = [each for each in seen if each.result.verdict is found.row("solution").verdict][:1]
    lines = told(stage, solution)
    for label in ("ATTN BASELINE MS", "ATTN USER MS", "SPEEDUP", "GFLOP/S", "KERNEL", "occupancy"):
        assert label in lines
