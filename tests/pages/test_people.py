"""A person's page and who sees it, cards to share, and what solvers may read of others."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from xml.etree import ElementTree

import pytest
from sqlalchemy import update

from api.pages.drawings.activity import activity
from kernelgate.db import transaction
from kernelgate.models import StageSwitch, User, now
from kernelgate.verdicts import Verdict
from tests.pages import samples
from tests.pages.conftest import Site, check


def test_a_page_is_its_owners_until_it_is_made_public(site: Site) -> None:
    user, ada = site.sign_in("ada")
    _, bob = site.sign_in("bob")
    with transaction() as database:
        samples.submission(database, user, site.values, samples.result(site.values, Verdict.ACCEPTED))
        samples.submission(database, user, site.values, samples.result(site.values, Verdict.WRONG_ANSWER))
    text = check(ada.get("/people/ada"))
    assert "Only you and the staff see this page" in text
    assert "1 of 2 stages passed" in text
    assert "2 submissions on 1 day" in text
    assert ">1 of 1</a>" in text
    missing = check(bob.get("/people/nobody"), 404)
    assert check(bob.get("/people/ada"), 404).replace("ada", "nobody") == missing
    csrf = re.search(r'name="csrf_token" value="([^"]+)"', text)
    assert csrf
    assert site.visitor().post("/me/public?on=1").status_code == 401
    check(ada.post("/me/public?on=1", data={"csrf_token": csrf[1]}))
    assert "Online softmax" in check(bob.get("/people/ada"))
    assert "To share" not in check(site.visitor().get("/people/ADA"))
    assert 'href="/people/ada"' in check(bob.get("/leaderboard/online_softmax"))
    with transaction() as database:
        database.execute(update(User).where(User.handle == "ada").values(disabled_at=now()))
    check(bob.get("/people/ada"), 404)


def test_a_frozen_board_keeps_its_secret_on_pages_of_people(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        database.execute(update(User).values(public=True))
        database.add(StageSwitch(stage="online_attention", frozen=True, frozen_at=now() - timedelta(hours=1)))
        samples.submission(database, user, site.gated, samples.timed(site.gated, 2.5))
    assert "2.50×" in check(ada.get("/people/ada"))
    shown = check(site.visitor().get("/people/ada"))
    assert "2.50×" not in shown
    assert "0 of 2 stages passed" in shown


def test_a_card_repeats_a_row_of_the_board(site: Site) -> None:
    user, _ = site.sign_in("ada")
    with transaction() as database:
        samples.submission(database, user, site.gated, samples.timed(site.gated, 2.5))
    answer = site.visitor().get("/leaderboard/online_attention/cards/ada.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    words = " ".join(ElementTree.fromstring(answer.text).itertext())  # noqa: S314 - our own picture
    assert "ada" in words
    assert "2.50×" in words
    assert "1 of 1" in words
    assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert site.visitor().get("/leaderboard/online_attention/cards/bob.svg").status_code == 404


@pytest.fixture
def for_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the stages are written: the stage of values shows its sources to those who have passed."""
    monkeypatch.setattr(samples, "VALUES_TOML", 'sources = "solvers"\n' + samples.VALUES_TOML)


@pytest.mark.usefixtures("for_solvers")
def test_solvers_read_how_others_did_it_where_the_stage_allows(site: Site) -> None:
    ada, first = site.sign_in("ada")
    bob, second = site.sign_in("bob")
    with transaction() as database:
        row = samples.submission(database, ada, site.values, samples.result(site.values, Verdict.ACCEPTED))
    check(second.get(f"/submissions/{row.id}/source"), 404)
    check(second.get("/stages/online_softmax/solution"), 403)
    assert "/source" not in check(second.get("/leaderboard/online_softmax"))
    with transaction() as database:
        samples.submission(database, bob, site.values, samples.result(site.values, Verdict.ACCEPTED))
    text = check(second.get("/stages/online_softmax/solution"))
    assert "How others did it" in text
    assert f"/submissions/{row.id}/source" in text
    assert f"/submissions/{row.id}/source" in check(second.get("/leaderboard/online_softmax"))
    check(second.get(f"/submissions/{row.id}/source"))
    assert "How others did it" in check(first.get("/stages/online_softmax/solution"))


def test_days_stand_in_their_weeks() -> None:
    today = date(2026, 11, 30)  # a Monday
    moments = [datetime(2026, 11, 30, 9, tzinfo=UTC)] * 6 + [datetime(2026, 11, 29, 23, 59, tzinfo=UTC)]
    found = activity(moments, today)
    last, before = found.days[-1], found.days[-2]
    assert (last.x, last.y, last.submissions, last.depth) == (25, 0, 6, 3)
    assert (before.x, before.y, before.submissions, before.depth) == (24, 6, 1, 1)
    assert (found.total, found.active, len(found.days)) == (7, 2, 25 * 7 + 1)
