"""Which stages are open: what shipped as proven at once, what was changed once it is proven here, and never what failed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.catalog import StageState, standing
from kernelgate import shipped
from kernelgate.accounts import create_user
from kernelgate.db import transaction
from kernelgate.models import StageVersion, Submission
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from kernelgate.verdicts import State
from tests.conftest import forget_settings
from tests.long_form import long_form
from worker.backends import open_sandbox
from worker.judging.failures import Cancelled
from worker.sandbox import End, Limits, Sandbox
from worker.stages.giving_way import GivingWay
from worker.stages.opening import Progress, open_shipped, record, unproven
from worker.stages.proving import prove
from worker.stages.verify import Check, Report

LIMITS = Limits(wall_s=20, cpu_s=20, memory_mb=64, scratch_mb=1, output_kb=1)
PASSED = Check("solution", True, "accepted")
FAILED = Check("solution", False, "wrong_answer (wrong_value): x; expected a passing verdict")


@pytest.fixture
def stage(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    del database
    monkeypatch.setenv("KERNELGATE_GRADERS_DIR", str(tmp_path))
    forget_settings()
    yield load_stage(long_form("scaling", tmp_path))
    forget_settings()


def state(stage: Stage) -> StageState:
    with transaction() as session:
        return standing(session, stage).state


def changed(stage: Stage) -> Stage:
    with (stage.folder / "grader.py").open("a") as grader:
        grader.write("# changed\n")
    return load_stage(stage.folder)


def proven(stage: Stage, *checks: Check) -> None:
    record(Report(stage.name, stage.hash, list(checks)))


def test_what_shipped_opens_at_once_and_is_proven_here_afterwards(stage: Stage) -> None:
    shipped.write(stage.folder.parent, [stage])
    assert state(stage) is StageState.BEING_PROVEN
    assert open_shipped() == [stage.name]
    assert state(stage) is StageState.OPEN
    assert (unproven().own, unproven().shipped) == ([], [stage.folder])
    assert open_shipped() == []
    proven(stage, PASSED)
    assert (unproven().own, unproven().shipped) == ([], [])
    assert state(stage) is StageState.OPEN


def test_what_fails_here_closes_with_its_reason_and_stays_closed(stage: Stage) -> None:
    shipped.write(stage.folder.parent, [stage])
    open_shipped()
    proven(stage, PASSED, FAILED)
    assert open_shipped() == []
    assert state(stage) is StageState.FAILED
    with transaction() as session:
        assert "failed its verification" in str(standing(session, stage).why_closed(stage))
    assert (unproven().own, unproven().shipped) == ([], [])
    assert unproven(failed_too=True).own == [stage.folder]


def test_a_changed_version_is_an_own_one_and_waits_for_its_proof(stage: Stage) -> None:
    shipped.write(stage.folder.parent, [stage])
    own = changed(stage)
    assert open_shipped() == []
    assert (unproven().own, unproven().shipped) == ([own.folder], [])
    proven(own, PASSED)
    assert state(own) is StageState.OPEN
    assert unproven().own == []


def test_a_proof_says_how_far_it_is_and_is_begun_again_when_it_was_cut_off(stage: Stage) -> None:
    progress = Progress(stage, 106, shipped=False)
    for _ in range(31):
        progress(PASSED)
    progress.tell(progress._started + 62)
    assert state(stage) is StageState.BEING_PROVEN
    with transaction() as session:
        found = standing(session, stage)
    assert found.proof is not None
    assert found.proof.text == "31 of 106, about 2 min"
    assert "31 of 106, about 2 min" in str(found.why_closed(stage))
    assert unproven().own == [stage.folder]


def test_a_shipped_stage_stays_open_while_it_is_proven(stage: Stage) -> None:
    shipped.write(stage.folder.parent, [stage])
    open_shipped()
    Progress(stage, 9, shipped=True)(PASSED)
    assert state(stage) is StageState.OPEN
    assert unproven().shipped == [stage.folder]


def test_a_file_that_states_nothing_ships_nothing(stage: Stage) -> None:
    (stage.folder.parent / shipped.FILE).write_bytes(b"\xff\xfe scaling\n")
    assert open_shipped() == []
    (stage.folder.parent / shipped.FILE).write_text("scaling\nscaling  \n# scaling 0123\n")
    assert open_shipped() == []


def test_a_proof_runs_nothing_while_a_submission_waits(stage: Stage) -> None:
    with transaction() as session:
        user = create_user(session, "waiting")
        row = Submission(
            user_id=user.id, stage="s", stage_hash="h", filename="s.py", source=b"x", source_hash="", queue="cpu"
        )
        session.add(row)
        session.flush()
        waiting = row.id
    assert GivingWay(("cpu",)).taken()
    assert not GivingWay(("gpu-other",)).taken()
    way, seen = GivingWay(("cpu",)), threading.Event()
    reports: list[Report] = []

    def work() -> None:
        with open_sandbox(way.taken) as sandbox:
            reports.append(
                prove(
                    stage.folder,
                    sandbox,
                    brief=True,
                    jobs=1,
                    watch=lambda check: seen.set() if check.name == "solution" else None,
                    to_database=True,
                    giving_way=way,
                )
            )

    prover = threading.Thread(target=work)
    prover.start()
    assert not seen.wait(4)
    with transaction() as session:
        session.get_one(Submission, waiting).state = State.CANCELLED
    prover.join(90)
    assert [report.ok for report in reports] == [True]
    assert state(stage) is StageState.OPEN


def test_what_ran_when_somebody_came_ends_and_is_run_again(own_settings: None) -> None:
    del own_settings
    way, somebody, began = GivingWay(()), threading.Event(), []
    way._look = somebody.is_set  # type: ignore[method-assign]

    def work() -> str:
        began.append(1)
        if len(began) == 1:
            somebody.set()
            threading.Timer(2, somebody.clear).start()
        if sandbox.run(["/bin/sleep", "1"], limits=LIMITS).end is End.KILLED:
            raise Cancelled
        return "whole"

    with Sandbox(
        python=Path(sys.executable), uid=settings().sandbox_uid, minimum="none", give_way=way.taken
    ) as sandbox:
        assert way.patiently(work) == "whole"
    assert len(began) == 2


def test_a_stage_that_ends_its_proof_stops_no_other_and_is_not_tried_again(stage: Stage) -> None:
    """Each folder is proven in a process of its own; one that ends it is recorded as failed, with a sentence."""
    broken = long_form("aaa_broken", stage.folder.parent)
    with (broken / "grader.py").open("a") as grader:
        grader.write("\n\ndef reference(case, inputs, mistake=None):\n    __import__('os')._exit(7)\n")
    done = subprocess.run(
        [sys.executable, "-m", "kernelgate", "stage", "verify", "--record"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "FAIL proof: The proof's process was ended by exit status 7" in done.stderr
    assert state(stage) is StageState.OPEN
    assert unproven().own == []
    with transaction() as session:
        row = session.get_one(StageVersion, ("aaa_broken", load_stage(broken).hash))
    assert not row.verified
    assert "exit status 7" in row.report["checks"][0]["detail"]
