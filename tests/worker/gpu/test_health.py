"""A card that is not well gets no work: nothing is claimed, the worker says why, and it goes on once the card is well."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from embedded.process import Child
from kernelgate.accounts import create_user
from kernelgate.db import transaction
from kernelgate.models import Role, Submission, WorkerRow
from kernelgate.settings import environment, settings
from kernelgate.stages import Stage
from kernelgate.verdicts import State
from tests.conftest import forget_settings
from worker.gpu import backend as gpu
from worker.gpu import health
from worker.gpu.backend import missing_gpu
from worker.gpu.lock import card_file
from worker.sandbox import Sandbox
from worker.service import tasks

BROKEN = "a test kernel computed 3 of 16384 values wrongly"


@pytest.fixture
def data_dir_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("KERNELGATE_DATA_DIR", str(tmp_path))
    forget_settings()
    yield tmp_path
    forget_settings()


class Card:
    """A probe that answers what the test wants and counts how often it was asked."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.asked = 0

    def look(self) -> str | None:
        self.asked += 1
        return self.answer

    examine = look


def test_what_was_found_is_remembered_until_the_card_is_well(data_dir_of_its_own: Path) -> None:
    del data_dir_of_its_own
    card = Card(None)
    assert health.fit(card.look)
    assert health.why_unwell() is None
    card.answer = f"{BROKEN}\x1b[2J"
    assert not health.fit(card.look)
    assert not health.fit(card.look), "it is not asked again by whoever grades"
    assert card.asked == 2
    assert health.why_unwell() == f"{BROKEN}\N{REPLACEMENT CHARACTER}[2J"
    assert not health.recovered(card.look)
    card.answer = None
    assert health.recovered(card.look)
    assert health.why_unwell() is None
    assert health.fit(card.look)


def test_cards_that_are_seen_apart_are_judged_apart(data_dir_of_its_own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del data_dir_of_its_own
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert not health.fit(Card(BROKEN).look)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert health.fit(Card(None).look)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert health.why_unwell() == BROKEN


def test_an_unwell_card_leaves_the_submission_queued(
    data_dir_of_its_own: Path,
    database: str,
    sandbox: Sandbox,
    small_stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del data_dir_of_its_own, database
    card = Card(BROKEN)
    monkeypatch.setattr(gpu, "missing_gpu", lambda: None)
    monkeypatch.setattr(gpu, "spare", card)
    with transaction() as session:
        user = create_user(session, "ada", Role.SUBMITTER)
        session.flush()
        submission = Submission(
            id="0" * 22,
            user_id=user.id,
            stage=small_stage.name,
            stage_hash=small_stage.hash,
            filename="scaling.py",
            source=b"",
            source_hash="0" * 64,
            queue="gpu-x",
        )
        session.add(submission)
    tasks.run(sandbox)
    with transaction() as session:
        left = session.get_one(Submission, "0" * 22)
        assert (left.state, left.attempt, left.lease_owner) == (State.QUEUED, 0, None)
    assert health.why_unwell() == BROKEN
    assert card.asked == 1


@pytest.mark.skipif(missing_gpu() is None, reason="this host's own card is well, and the worker would find that out")
def test_a_worker_with_an_unwell_card_says_so_and_takes_no_work(data_dir_of_its_own: Path, database: str) -> None:
    del database
    found = card_file("unwell")
    assert found.is_relative_to(data_dir_of_its_own)
    found.write_text(BROKEN)
    worker = Child(
        "worker",
        [sys.executable, "-m", "kernelgate", "worker"],
        log=data_dir_of_its_own / "worker.log",
        env=environment(settings()),
    )
    worker.start()
    try:
        row = _row(lambda row: not row.healthy)
        assert row.health["card"]
        assert "celery" not in _commands(worker.pid)
        found.unlink()
        assert "card" not in _row(lambda row: row.healthy).health
        assert "celery" in _commands(worker.pid)
    finally:
        worker.stop()


def _row(wanted: Callable[[WorkerRow], bool], within_s: float = 60.0) -> WorkerRow:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        with transaction() as session:
            row = session.scalars(select(WorkerRow)).one_or_none()
        if row is not None and wanted(row):
            return row
        time.sleep(0.1)
    pytest.fail(f"no such row in {within_s:g} s; the last one: {row.health if row else None}")


def _commands(parent: int) -> str:
    """The command lines of a process's children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return "\n".join(found)
