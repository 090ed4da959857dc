"""From counts of an administrator's pages to the lists behind them; states in words; accounts renamed and deleted by forms."""

from __future__ import annotations

import re

from kernelgate.db import transaction
from kernelgate.models import Role, StageVersion
from kernelgate.verdicts import Verdict
from tests.pages import samples
from tests.pages.conftest import Site, check, csrf


def test_counts_lead_to_what_was_counted(site: Site) -> None:
    ada, _ = site.sign_in("ada")
    _, root = site.sign_in("root", Role.ADMIN)
    with transaction() as database:
        wrong = samples.submission(database, ada, site.values, samples.wrong_from_row(site.values)).id
        right = samples.submission(database, ada, site.values, samples.result(site.values, Verdict.ACCEPTED)).id
    text = check(root.get("/admin/stages/online_softmax")).replace("&amp;", "&")
    links = re.findall(r'href="(/admin/submissions\?stage=online_softmax&(?:verdict|mistake)=[^"]+)"', text)
    assert len(links) == 3
    for link in links:
        listed = check(root.get(link))
        assert (wrong[:8] in listed, right[:8] in listed) == (False, True) if "accepted" in link else (True, False)
    assert "online_softmax</span>" in check(root.get("/admin/stages"))


def test_an_account_is_renamed_and_deleted_by_forms(site: Site) -> None:
    site.sign_in("ada")
    _, root = site.sign_in("root", Role.ADMIN)
    form = {"csrf_token": csrf(check(root.get("/admin/users/ada")))}
    assert "lovelace" in check(root.post("/admin/users/ada/rename", data={**form, "handle": "lovelace"}))
    refused = check(root.post("/admin/users/lovelace/remove", data={**form, "into": "", "confirm": "ada"}), 422)
    assert "not the handle" in refused
    gone = check(root.post("/admin/users/lovelace/remove", data={**form, "into": "", "confirm": "lovelace"}))
    assert "lovelace" not in gone


def test_a_stage_says_who_closed_it_and_which_of_its_files_did_not_prove(site: Site) -> None:
    _, root = site.sign_in("root", Role.ADMIN)
    form = {"csrf_token": csrf(check(root.get("/admin/stages")))}
    assert "⊘ closed by root" in check(root.post("/admin/stages/online_softmax", data={**form, "enabled": "false"}))
    found = [
        {"name": "solution/attention.cu", "ok": True, "detail": "accepted"},
        {"name": "submissions/wrong_answer/no_mask.cu", "ok": False, "detail": "line 12: expected wrong_answer, got accepted"},
    ]  # fmt: skip
    with transaction() as database:
        row = database.get(StageVersion, ("online_attention", site.gated.hash))
        assert row is not None
        row.verified, row.report = False, {"checks": found}
    for address in ("/admin/stages", "/admin/stages/online_attention"):
        shown = check(root.get(address)).partition("<details>")[0]
        assert "submissions/wrong_answer/no_mask.cu</span>: line 12: expected wrong_answer, got accepted" in shown
        assert "solution/attention.cu" not in shown


def test_the_service_s_webhooks_are_made_tested_and_removed_by_forms(site: Site) -> None:
    _, root = site.sign_in("root", Role.ADMIN)
    _, ada = site.sign_in("ada")
    check(ada.get("/admin/webhooks"), 403)
    form = {"csrf_token": csrf(check(root.get("/admin/webhooks"))), "event_record": "on"}
    refused = check(root.post("/admin/webhooks", data={**form, "url": "https://10.0.0.1/"}), 422)
    assert "not public" in refused
    made = check(root.post("/admin/webhooks", data={**form, "url": "https://hooks.example/x"}))
    assert "whsec_" in made
    assert "record; made by root" in made
    number = re.findall(r"/admin/webhooks/(\d+)/test", made)[0]
    assert '<th scope="row" data-label="Event">ping' in check(root.post(f"/admin/webhooks/{number}/test", data=form))
    assert "No webhooks" in check(root.post(f"/admin/webhooks/{number}/remove", data=form))
