"""Host code recorded without a GPU: what honest code launches, and what everything else is told."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.stages import Case
from kernelgate.verdicts import Verdict
from tests.worker.recording.conftest import with_workspace
from worker.judging.failures import Failure
from worker.judging.job import Job
from worker.recording.compile import Compiled, compile_cuda
from worker.recording.entries import Copy, Fill, Upload
from worker.recording.placement import WORKSPACE, Edge, place
from worker.recording.record import Device, Take, record
from worker.recording.tape import Descriptor, Launch, Tape

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def seams(job: Callable[[str], Job], sources: Path) -> tuple[Job, Compiled]:
    made = job((sources / "seams.cu").read_text())
    return made, compile_cuda(made, "90a")


@pytest.fixture
def run(seams: tuple[Job, Compiled], device: Device) -> Callable[[int], tuple[Take, Tape]]:
    made, compiled = seams

    def take(tokens: int) -> tuple[Take, Tape]:
        case = Case(name=f"case_{tokens}", title="", group="", params={"tokens": tokens})
        buffers = place({"qkv": 3072 * 64, "out": 2048 * 64}, frozenset({"out"}), Edge.END)
        limits = made.stage.spec.limits.model_copy(update={"case_s": 2.0})
        spec = made.stage.spec.model_copy(update={"limits": limits})
        stage = type(made.stage)(made.stage.folder, spec, made.stage.files)
        asked = Take(case, Edge.END, buffers)
        return asked, record(replace(made, stage=stage), compiled, device, [asked])[asked.label]

    return take


def test_kernels_and_their_resources_are_read(seams: tuple[Job, Compiled]) -> None:
    made, compiled = seams
    by_name = {resource.kernel.split("(")[0]: resource for resource in made.resources}
    assert {"plain", "shared"} <= set(by_name)
    assert all(resource.registers > 0 and resource.spill_bytes == 0 for resource in made.resources)
    packed = next(kernel for name, kernel in compiled.cubin.kernels.items() if "packed" in name)
    assert packed.parameters == [(0, 24), (24, 8), (32, 1)]
    assert compiled.cubin.static_bytes == 16 * 4 + 4


def test_what_honest_code_asks_for_is_on_the_tape(run: Callable[[int], tuple[Take, Tape]]) -> None:
    take, tape = run(1)
    qkv, out = take.buffers["qkv"].address, take.buffers["out"].address
    table, counter = tape.variables["table"][0], tape.variables["counter"][0]
    upload, fill, packed, shared, copy, plain = (node.work for node in tape.nodes)
    assert upload == Upload(table + 4, struct.pack("<2f", 1.0, 2.0))
    assert fill == Fill(counter, 0, 4)
    assert isinstance(packed, Launch)
    assert (packed.grid, packed.block) == ((2, 3, 4), (8, 2, 1))
    assert struct.unpack("<QQhxxxxxxdc", packed.arguments) == (qkv + 28, out + 12, -2, 2.5, b"A")
    assert isinstance(shared, Launch)
    assert shared.shared == 100_000
    assert tape.shared_limits == {shared.kernel: 100_000}
    assert copy == Copy(out, qkv, 64)
    assert isinstance(plain, Launch)
    assert [node.after for node in tape.nodes] == [(), (0,), (1,), (2,), (3,), (4,)]


def test_queries_are_answered_for_the_target_gpu(run: Callable[[int], tuple[Take, Tape]]) -> None:
    (work,) = (node.work for node in run(2)[1].nodes)
    assert isinstance(work, Launch)
    assert work.grid == (5, 1, 1), "five blocks of 40,000 bytes fit beside each other"
    assert work.block == (32, 1, 1), "the probe failed as it should and left no error behind"


@pytest.mark.parametrize(
    ("which", "verdict", "reason", "said"),
    [
        (
            10,
            Verdict.CONTRACT_VIOLATION,
            "workspace",
            "asked for 16,777,216 bytes, the size of a 2048 × 2048 float matrix",
        ),
        (11, Verdict.CONTRACT_VIOLATION, "managed_memory", "cudaMallocManaged (line"),
        (12, Verdict.CONTRACT_VIOLATION, "unrecordable_call", "from the device to the host"),
        (13, Verdict.CONTRACT_VIOLATION, "unrecordable_call", "cudaMemcpyFromSymbol"),
        (14, Verdict.CONTRACT_VIOLATION, "unrecordable_call", "host callback"),
        (15, Verdict.CONTRACT_VIOLATION, "unrecordable_call", "cudaHostAlloc"),
        (16, Verdict.CONTRACT_VIOLATION, "unrecordable_call", "cudaDeviceReset"),
        (17, Verdict.CONTRACT_VIOLATION, "unknown_stream", "not handed out"),
        (18, Verdict.CONTRACT_VIOLATION, "stream_not_joined", "plain, on stream 2"),
        (19, Verdict.CONTRACT_VIOLATION, "upload_too_large", "host data"),
        (20, Verdict.RUNTIME_ERROR, "exception", "not today"),
        (21, Verdict.RUNTIME_ERROR, "exception", "not a std::exception"),
        (22, Verdict.RUNTIME_ERROR, "ended_early", "ended the process"),
        (23, Verdict.RUNTIME_ERROR, "crashed", "signal 6"),
        (24, Verdict.RUNTIME_ERROR, "crashed", "signal 11"),
        (25, Verdict.RUNTIME_ERROR, "launch_refused", "cudaErrorInvalidConfiguration"),
        (26, Verdict.RUNTIME_ERROR, "launch_refused", "cudaErrorLaunchOutOfResources"),
        (27, Verdict.RUNTIME_ERROR, "launch_refused", "cudaErrorInvalidValue"),
        (28, Verdict.TIME_LIMIT, "time_limit", "after 2 s"),
        (29, Verdict.CONTRACT_VIOLATION, "tape_damaged", "lie in no buffer"),
        (30, Verdict.CONTRACT_VIOLATION, "too_many_calls", "8 MiB"),
    ],
)
def test_what_cannot_count_is_named(
    run: Callable[[int], tuple[Take, Tape]], which: int, verdict: Verdict, reason: str, said: str
) -> None:
    with pytest.raises(Failure) as caught:
        run(which)
    assert (caught.value.verdict, caught.value.reason) == (verdict, reason)
    assert said in caught.value.message


def test_a_tensor_map_is_recorded_as_it_was_asked_for(job: Callable[[str], Job], sources: Path, device: Device) -> None:
    made = job((sources / "tensor_map.cu").read_text())
    compiled = compile_cuda(made, "90a")
    case = Case(name="map", title="", group="", params={"tokens": 13})
    take = Take(case, Edge.END, place({"qkv": 3072 * 13, "out": 2048 * 13}, frozenset({"out"}), Edge.END))
    tape = record(made, compiled, device, [take])[take.label]
    ((token, wanted),) = tape.descriptors.items()
    assert wanted == Descriptor(
        type=7,
        address=take.buffers["qkv"].address,
        sizes=(768, 13),
        strides=(3072,),
        box=(64, 8),
        steps=(1, 1),
        interleave=0,
        swizzle=0,
        promotion=2,
        fill=0,
    )
    (work,) = (node.work for node in tape.nodes)
    assert isinstance(work, Launch)
    (first, size), (second, _), _ = compiled.cubin.kernels[work.kernel].parameters
    assert work.arguments[first : first + size] == token
    assert struct.unpack("<Qi", work.arguments[second:]) == (take.buffers["out"].address, 13)


def test_another_driver_call_is_refused_by_name(job: Callable[[str], Job], sources: Path, device: Device) -> None:
    source = (sources / "tensor_map.cu").read_text().replace('"cuTensorMapEncodeTiled"', '"cuMemAlloc"')
    made = job(source)
    case = Case(name="map", title="", group="", params={"tokens": 13})
    take = Take(case, Edge.END, place({"qkv": 3072 * 13, "out": 2048 * 13}, frozenset({"out"}), Edge.END))
    with pytest.raises(Failure, match="cuMemAlloc") as caught:
        record(made, compile_cuda(made, "90a"), device, [take])
    assert caught.value.reason == "driver_call"


def test_a_workspace_is_handed_out_of_the_buffer_that_stands_for_it(
    job: Callable[[str], Job], sources: Path, device: Device
) -> None:
    made = with_workspace(job((sources / "workspace.cu").read_text()), kb=8)
    compiled = compile_cuda(made, "90a")
    takes = [
        Take(
            Case(name=f"rows_{tokens}", title="", group="", params={"tokens": tokens}),
            edge,
            place({"qkv": 3072 * 3, "out": 2048 * 3, WORKSPACE: 8192}, frozenset({"out", WORKSPACE}), edge),
        )
        for tokens, edge in ((3, Edge.END), (3, Edge.START), (4, Edge.END))
    ]
    tapes = record(made, compiled, device, takes[:2])
    for take in takes[:2]:
        fill, *rows, back = (node.work for node in tapes[take.label].nodes)
        at = take.buffers[WORKSPACE].address
        assert fill == Fill(at, 7, 1000)
        assert rows == [Copy(at + 1024 + 2048 * t, take.buffers["qkv"].address + 3072 * t, 2048) for t in range(3)]
        assert back == Copy(take.buffers["out"].address, at + 1024, 3 * 2048)
    with pytest.raises(Failure, match="a workspace of 8 KiB; cudaMallocAsync asked for 8,192 bytes") as caught:
        record(made, compiled, device, takes[2:])
    assert caught.value.reason == "workspace"


def test_a_forked_process_has_nothing_to_say(run: Callable[[int], tuple[Take, Tape]]) -> None:
    assert run(31)[1].launches == 1
