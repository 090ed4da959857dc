"""From counts of an administrator's pages to the lists behind them; states in words; accounts renamed and deleted by forms."""

from __future__ import annotations

import re

from kernelgate.db import transaction
from kernelgate.models import Role
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
