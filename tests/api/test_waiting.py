"""The wait that a queued submission is promised: by what stands and runs before it, not by its own stage."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from api.waiting import expected_wait_ms
from kernelgate.db import transaction
from kernelgate.models import Role, Submission, now
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, add_worker, result_of, verify, write_stage


@pytest.fixture
def two(api: Api) -> Api:
    """A stage whose gradings took a minute and one whose took two seconds."""
    verify(write_stage(api.graders, "slow"))
    api.app.state.catalog.reload()
    add_worker()
    for stage, seconds in (("slow", 60), ("double", 2)):
        made = api.submit(api.as_("root", Role.ADMIN), stage=stage)["id"]
        Graded.finish(made, result_of(Verdict.ACCEPTED, stage=stage))
        took(made, seconds)
    return api


def took(submission: str, seconds: float) -> None:
    with transaction() as database:
        row = database.get_one(Submission, submission)
        row.claimed_at, row.finished_at = now() - timedelta(seconds=seconds), now()


def wait(submission: str) -> float | None:
    with transaction() as database:
        return expected_wait_ms(database, database.get_one(Submission, submission))


def test_a_short_one_waits_for_the_long_ones_before_it(two: Api) -> None:
    first = two.submit(two.as_("ada"), stage="slow")["id"]
    mine = two.submit(two.as_("ada"), stage="double")["id"]
    assert wait(first) is None, "nothing is before it"
    assert wait(mine) == pytest.approx(60_000, rel=0.05)
    Graded.run(first)
    with transaction() as database:
        database.execute(
            update(Submission).where(Submission.id == first).values(claimed_at=now() - timedelta(seconds=20))
        )
    assert wait(mine) == pytest.approx(40_000, abs=4_000)
    add_worker("w2")
    assert wait(mine) == pytest.approx(20_000, abs=4_000)  # the clock goes on


def test_one_that_takes_longer_than_usual_is_not_taken_for_done(two: Api) -> None:
    first = two.submit(two.as_("ada"), stage="slow")["id"]
    mine = two.submit(two.as_("ada"), stage="double")["id"]
    Graded.run(first)
    with transaction() as database:
        database.execute(update(Submission).where(Submission.id == first).values(claimed_at=now() - timedelta(hours=1)))
    assert wait(mine) == pytest.approx(15_000, rel=0.05)


def test_where_nobody_can_know_nothing_is_promised(two: Api) -> None:
    verify(write_stage(two.graders, "fresh"))
    two.app.state.catalog.reload()
    two.submit(two.as_("ada"), stage="fresh")
    mine = two.submit(two.as_("ada"), stage="double")["id"]
    assert wait(mine) is None


def test_one_that_is_judged_again_stands_behind_those_that_waited(two: Api) -> None:
    mine = two.submit(two.as_("ada"), stage="slow")["id"]
    admin = two.as_("root", Role.ADMIN)
    old = admin.get("/me/submissions?stage=double").json()["items"][0]["id"]
    assert admin.post(f"/admin/submissions/{old}/rejudge").json()["queue_position"] == 2
    assert wait(mine) is None
    assert wait(old) == pytest.approx(60_000, rel=0.05)
