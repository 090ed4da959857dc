"""Held results on the pages: what their owner reads, what an administrator decides with, and that nothing counts meanwhile."""

from __future__ import annotations

import httpx

from kernelgate.db import transaction
from kernelgate.models import Role, Submission
from kernelgate.stages import Stage
from tests.pages import samples
from tests.pages.conftest import Site, check, csrf

WHY = "0.01002 ms is less than the 0.06400 ms that an NVIDIA H200 needs for these operations at its peak."


def held(site: Site, stage: Stage, handle: str = "ada") -> tuple[str, httpx.Client]:
    user, client = site.sign_in(handle)
    with transaction() as database:
        result = samples.timed(stage, 77.0).model_copy(update={"held": WHY})
        return samples.submission(database, user, stage, result).id, client


def test_the_owner_reads_that_an_administrator_will_look_and_why(site: Site) -> None:
    made, ada = held(site, site.gated)
    text = check(ada.get(f"/submissions/{made}"))
    assert "an administrator will look at it before it counts" in text
    assert WHY in text
    assert "held back" in check(ada.get("/me/submissions"))
    home = check(ada.get("/"))
    assert "0 of 2 passed" in home
    assert "<b>ada</b>" not in home
    assert "Nobody stands here yet" in check(ada.get("/leaderboard/online_attention"))


def test_an_administrator_decides_with_everything_on_one_page(site: Site) -> None:
    made, ada = held(site, site.gated)
    _, root = site.sign_in("root", Role.ADMIN)
    assert "1 result is held back" in check(root.get("/admin/queue"))
    text = check(root.get("/admin/held"))
    for part in (WHY, "NVIDIA H200", f"/submissions/{made}/source", "77.0", "60 samples", "SM clock MHz"):
        assert part in text
    assert "◌ held back" in check(root.get("/admin/submissions"))
    answer = root.post(f"/admin/submissions/{made}/release", data={"csrf_token": csrf(text)})
    assert "Nothing is held back" in check(answer)
    assert "<b>ada</b>" in check(ada.get("/"))
    assert "administrator" not in check(ada.get(f"/submissions/{made}"))


def test_what_was_dismissed_says_so_to_its_owner(site: Site) -> None:
    made, ada = held(site, site.gated)
    _, root = site.sign_in("root", Role.ADMIN)
    form = {"csrf_token": csrf(check(root.get("/admin/held")))}
    assert "Nothing is held back" in check(root.post(f"/admin/submissions/{made}/dismiss", data=form))
    assert "did not let it count" in check(ada.get(f"/submissions/{made}"))
    assert "⊘ dismissed" in check(root.get("/admin/submissions"))
    root.post(f"/admin/submissions/{made}/hide", data={**form, "hidden": "false"})
    assert WHY in check(root.get("/admin/held"))


def test_a_hidden_submission_is_marked_in_lists_and_says_so_to_its_owner(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        made = samples.submission(database, user, site.gated, samples.timed(site.gated, 2.0)).id
        database.get_one(Submission, made).hidden = True
    _, root = site.sign_in("root", Role.ADMIN)
    assert "⊘ hidden" in check(root.get("/admin/submissions"))
    assert "An administrator has hidden this submission" in check(ada.get(f"/submissions/{made}"))
