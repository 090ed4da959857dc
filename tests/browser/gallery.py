"""A service to look at: its own database and API, and in it what a course leaves behind after a few weeks.

    python -m tests.browser.gallery             # prints an address and an administrator's token; Ctrl-C ends it

Timed results are the gradings that were recorded on an H200 (recorded.json beside this file), given to made-up accounts.
`--worker` starts a worker beside it, which grades what is submitted meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import create_engine, pool
from sqlalchemy.orm import Session

from embedded import schema
from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.postgres import Postgres
from embedded.process import Child
from kernelgate.accounts import create_token, create_user
from kernelgate.models import Audit, EventRow, Role, Submission, User, WorkerRow, now
from kernelgate.protocol import CaseReport, KernelResources, Result, Timing
from kernelgate.settings import Settings, environment
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Phase, State, Verdict
from tests.browser import gradings
from tests.browser.gradings import store
from tests.conftest import free_port, take_stages_as_proven, wait_until_ready

RECORDED = Path(__file__).with_name("recorded.json")
PEOPLE = ("ada", "grace", "barbara", "edsger", "donald", "margaret", "frances", "katherine", "adele", "radia", "shafi",
          "leslie", "john_with_a_rather_long_handle_indeed")  # fmt: skip
AUDITED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("user.role", "barbara", {"before": "submitter", "after": "instructor"}),
    ("stage.freeze", "online_softmax", {}),
    ("stage.thaw", "online_softmax", {}),
    ("token.create", "ada", {"token": 3, "scopes": ["read", "submit"]}),
    ("stage.reload", "all stages", {}),
)
FILES = {"starter": "starter/attention.cu", "solution": "solution/attention.cu"}


class Gallery(NamedTuple):
    """Where it listens, an administrator's token, and pages worth a picture: name → path."""

    url: str
    token: str
    pages: dict[str, str]


@contextmanager
def gallery(*, worker: bool) -> Iterator[Gallery]:
    """The running service; gone with everything in it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="kgg-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o711)
        data = DataDir(root)
        servers = [Postgres(data, durable=False), Broker(data, durable=False)]
        children: list[Child] = []
        try:
            for server in servers:
                server.start()
            values = _settings(root, *servers, worker=worker)
            token, pages = _fill(values, worker=worker)
            for process in ("serve", "worker")[: 2 if worker else 1]:
                command = [sys.executable, "-m", "kernelgate", process]
                children.append(Child(process, command, log=root / f"{process}.log", env=environment(values)))
                children[-1].start()
            url = f"http://127.0.0.1:{values.port}"
            # No test: on a busy machine it comes up late rather than not at all.
            wait_until_ready(url, children, within_s=300)
            yield Gallery(url, token, pages)
        finally:
            for child in reversed(children):
                child.stop()
            for server in reversed(servers):
                server.stop()


def _settings(root: Path, postgres: Any, broker: Any, *, worker: bool) -> Settings:
    """Without a worker nothing beats, and the rows of workers are to look alive for as long as somebody looks."""
    data = root / "data"
    data.mkdir()
    schema.upgrade(postgres.url("postgres"))
    return Settings(
        database_url=postgres.url("postgres"), broker_url=broker.url, data_dir=data, port=free_port(), open_signup=True,
        pending_limit=100, **({} if worker else {"heartbeat_s": 3600}),
    )  # fmt: skip


def _fill(values: Settings, *, worker: bool) -> tuple[str, dict[str, str]]:
    """With a worker nobody pretends to be one, and nothing waits for a card that is not there: it would never be ready."""
    take_stages_as_proven(values)
    stages, _ = load_stages(values.graders_dir)
    engine = create_engine(values.database_url, poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        root = create_user(session, "admin", Role.ADMIN)
        _, token = create_token(session, root, name="gallery", days=7)
        people = [create_user(session, handle, Role.SUBMITTER) for handle in PEOPLE]
        if not worker:
            session.add_all(gpu_workers())
        for action, target, data in AUDITED:
            session.add(Audit(actor="admin", action=action, target=target, data=data))
        pages = attention(session, stages["online_attention"], root, people)
        pages |= gradings.fill(session, stages, root, people)
        if not worker:
            pages |= _under_way(session, stages["online_attention"], root)
    return token, pages


HELD = "0.0101 ms a call is less than the 0.0642 ms that an NVIDIA H200 needs for 4.3 GFLOP at its FP32 peak."


def gpu_workers() -> list[WorkerRow]:
    """Two with a GPU, of which one is not well, and one without."""
    common = {"started_at": now() - timedelta(days=3), "heartbeat_at": now()}
    well = {
        "name": "NVIDIA H200", "bus": "00000000:1B:00.0", "driver": "580.65.06", "celsius": 42, "watts": 121, "sm_mhz": 1980,
        "highest_sm_mhz": 1980, "memory_used_mib": 2051, "memory_mib": 143_771, "programs": 1, "uncorrected_errors": 0,
        "well": True, "looked_at": (now() - timedelta(seconds=40)).isoformat(),
    }  # fmt: skip
    why = "a test kernel computed 3 of 16384 values wrongly"
    broken = {**well, "bus": "00000000:43:00.0", "celsius": 88, "watts": 402, "sm_mhz": 1215, "well": False, "why": why,
              "since": (now() - timedelta(minutes=25)).isoformat(), "uncorrected_errors": 12}  # fmt: skip
    queues, backends = ["gpu-nvidia-h200", "cpu"], ["gpu", "torch"]
    return [
        WorkerRow(name="gpu-1", queues=queues, backends=backends, gpu_model="NVIDIA H200", healthy=True,
                  health={"pid": 4711, "verifying": False, "cards": [well], "missing": {}}, **common),
        WorkerRow(name="gpu-2", queues=queues, backends=backends, gpu_model="NVIDIA H200", healthy=False,
                  health={"card": why, "pid": 512, "verifying": False, "cards": [broken], "missing": {}}, **common),
        WorkerRow(name="cpu-1", queues=["cpu"], backends=["torch", "emulator"], gpu_model=None, healthy=True,
                  health={"pid": 4712, "verifying": False, "missing": {"gpu": "no NVIDIA driver"}}, **common),
    ]  # fmt: skip


def attention(session: Session, stage: Stage, root: User, people: list[User]) -> dict[str, str]:
    """Every recorded grading, the slower ones first, as weeks of work; the administrator's own make a history."""
    recorded = [each for each in json.loads(RECORDED.read_text())["gradings"] if each["timing"]]
    recorded.sort(key=lambda each: each["timing"]["speedup"])
    pages: dict[str, str] = {}
    for place, each in enumerate(recorded):
        timing = _with_bytes(Timing.model_validate(each["timing"]))
        person = root if each["what"] != "solution" else people[place % len(people)]
        verdict = Verdict.ACCEPTED if timing.speedup >= 1.8 else Verdict.GATE_MISSED
        row = store(
            session,
            person,
            stage,
            _measured(stage, verdict, timing, each),
            _source(stage, each["what"]),
            hours=40 - place,
        )
        pages["accepted" if verdict is Verdict.ACCEPTED else "gate-missed"] = f"/submissions/{row.id}"
    impossible = timing.model_copy(
        update={"user_ms": 0.0101, "speedup": 67.4, "speedup_low": 66.1, "speedup_high": 68.2,
                "user_samples_ms": tuple(0.0101 * sample / timing.user_ms for sample in timing.user_samples_ms)}
    )  # fmt: skip
    held = _measured(stage, Verdict.ACCEPTED, impossible, each).model_copy(update={"held": HELD})
    row = store(session, root, stage, held, _source(stage, "solution"), hours=1)
    pages["held"] = f"/submissions/{row.id}"
    slower = pages["gate-missed"].rsplit("/", 1)[1]
    return pages | {"compared": f"{pages['accepted']}/source?against={slower}"}


def _with_bytes(timing: Timing) -> Timing:
    """With the facts that a grading did not yet keep when these were recorded: 2048 tokens, 8 heads of 64, float32; and the
    bandwidth on the card's data sheet."""
    gflops, share = float(timing.facts["gflop_per_s"]), float(timing.facts["share_of_fp32_peak"])
    least = 4.0 * 4 * 2048 * 8 * 64
    known = {
        "flops": gflops * timing.user_ms * 1e6,
        "peak_gflop_per_s": gflops / share,
        "bytes": least,
        "peak_gbps": 4800.0,
    }
    return timing.model_copy(update={"facts": {**timing.facts, **known}})


def _source(stage: Stage, what: str) -> bytes:
    return stage.files.get(FILES.get(what, ""), b"") or next(
        (body for name, body in stage.files.items() if name.endswith(f"/{what}.cu")), b"// not kept\n"
    )


def _measured(stage: Stage, verdict: Verdict, timing: Timing, recorded: dict[str, Any]) -> Result:
    cases = tuple(
        CaseReport(name=case.name, title=case.title, group=case.group, state="right", ms=timing.user_ms)
        for case in stage.spec.cases
    )
    return Result(
        verdict=verdict, reason="passed" if verdict.passes else "below_gate", stage=stage.name, stage_hash=stage.hash,
        message=f"{timing.speedup:.2f} times the baseline's speed.", backend=Backend.GPU, seed="5eed",
        phases={Phase(name): ms for name, ms in recorded["phases"].items()}, cases=cases, timing=timing,
        resources=(
            KernelResources(kernel="attend<64>(float const*, float*, int)", registers=128, spill_bytes=0,
                            shared_bytes=49_920, occupancy=0.25),
        ),
        machine={"gpu": "NVIDIA H200", "driver": "CUDA 13.0"},
    )  # fmt: skip


def _under_way(session: Session, stage: Stage, root: User) -> dict[str, str]:
    """One that waits and one that is being measured; nobody grades them."""
    found = {}
    for state, attempt in ((State.RUNNING, 1), (State.QUEUED, 0)):
        row = Submission(
            user_id=root.id, stage=stage.name, stage_hash=stage.hash, filename=stage.spec.file, source=b"// attention\n",
            source_hash="0" * 64, via="web", state=state, queue="gpu-nvidia-h200", attempt=attempt, lease_owner="gpu-1",
            lease_until=now() + timedelta(hours=8), claimed_at=now() if attempt else None,
        )  # fmt: skip
        session.add(row)
        session.flush()
        found[str(state)] = f"/submissions/{row.id}"
        if state is State.RUNNING:
            _events(session, row, stage)
    return found


def _events(session: Session, row: Submission, stage: Stage) -> None:
    def tell(kind: str, **data: Any) -> None:
        session.add(EventRow(submission_id=row.id, round=1, attempt=1, kind=kind, data=data))
        session.flush()

    tell("state", state="running", attempt=1)
    for phase, ms in ((Phase.COMPILE, 1642.0), (Phase.RECORD, 107.0), (Phase.CASES, 319.0)):
        tell("phase", phase=phase, state="started")
        if phase is Phase.CASES:
            for index, case in enumerate(stage.spec.cases):
                tell("case", index=index, total=len(stage.spec.cases), name=case.name, state="right", ms=0.3)
        tell("phase", phase=phase, state="ended", ms=ms)
    tell("phase", phase=Phase.MEASURE, state="started")
    for pairs, low, high in ((10, 1.62, 2.31), (14, 1.71, 2.12), (18, 1.79, 2.01), (22, 1.81, 1.96), (26, 1.83, 1.94)):
        tell("measure", pairs=pairs, speedup=(low + high) / 2, low=low, high=high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true")
    with gallery(worker=parser.parse_args().worker) as found:
        print(found.url, found.token, *(f"{name}: {path}" for name, path in found.pages.items()), sep="\n", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
