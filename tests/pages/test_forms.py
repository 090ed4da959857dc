"""What the pages' forms do without a script: submit, sign up, tokens, invites, administration, answers."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from kernelgate.db import transaction
from kernelgate.models import Role, StageSwitch, Submission
from kernelgate.settings import settings
from kernelgate.verdicts import State
from tests.pages import samples
from tests.pages.conftest import Site, check, csrf

STAGE = "/stages/online_softmax"


def test_the_text_area_is_submitted(site: Site) -> None:
    _, ada = site.sign_in("ada")
    form = {"csrf_token": csrf(check(ada.get(STAGE))), "stage": "online_softmax", "source": "import torch\r\nx = 1\r\n"}
    answer = ada.post("/submit", data=form, files={"file": ("", b"")}, follow_redirects=False)
    assert answer.status_code == 303
    with transaction() as database:
        row = database.scalars(select(Submission)).one()
    assert answer.headers["location"] == f"/submissions/{row.id}"
    assert (row.source, row.filename, row.via) == (b"import torch\nx = 1\n", "online_softmax.py", "web")


def test_a_chosen_file_wins(site: Site) -> None:
    _, ada = site.sign_in("ada")
    form = {"csrf_token": csrf(check(ada.get(STAGE))), "stage": "online_softmax", "source": "text"}
    check(ada.post("/submit", data=form, files={"file": ("mine.py", b"FILE = 1\n")}))
    with transaction() as database:
        assert database.scalars(select(Submission)).one().source == b"FILE = 1\n"


def test_the_page_and_the_api_read_a_form_by_the_same_rules(site: Site) -> None:
    """The same bytes, once as a browser sends them and once as a client: the same submission or the same refusal."""
    _, ada = site.sign_in("ada")
    token = csrf(check(ada.get(STAGE)))
    text = {"csrf_token": token, "stage": "online_softmax", "source": "t = 1\r\n"}
    nothing = {"csrf_token": token, "stage": "online_softmax"}
    forms = [
        (text, {"file": ("mine.py", b"f = 1\n")}, b"f = 1\n"),
        (text, {"file": ("", b"")}, b"t = 1\n"),
        (text, {"file": ("mine.cu", b"f = 1\n")}, "wrong_filename"),
        (text, {"file": ("mine.py", b"")}, "empty_source"),
        ({**text, "verdict": "accepted"}, {"file": ("", b"")}, "invalid_field"),
        (nothing, {"file": ("", b"")}, "invalid_field"),
        (nothing, {"other": ("a.py", b"x")}, "invalid_field"),
    ]
    for data, files, wanted in forms:
        page = ada.post("/submit", data=data, files=files, follow_redirects=False)
        client = ada.post("/submit", data=data, files=files, headers={"Accept": "application/json"})
        if isinstance(wanted, bytes):
            assert (page.status_code, client.status_code) == (303, 202)
            ids = [page.headers["location"].rsplit("/", 1)[1], client.json()["id"]]
            with transaction() as database:
                assert [database.get_one(Submission, each).source for each in ids] == [wanted, wanted]
        else:
            assert client.json()["code"] == wanted
            assert client.json()["title"] in check(page, client.status_code)


def test_what_is_refused_comes_back_with_the_text(site: Site) -> None:
    _, ada = site.sign_in("ada")
    form = {"csrf_token": csrf(check(ada.get(STAGE))), "stage": "online_softmax"}
    text = check(ada.post("/submit", data={**form, "source": "x = 1\n" * 60_000}, files={"file": ("", b"")}), 413)
    assert "The source is too large" in text
    assert "x = 1\nx = 1" in text
    empty = check(ada.post("/submit", data={**form, "source": "  "}, files={"file": ("", b"")}), 422)
    assert "The source is empty" in empty
    binary = check(ada.post("/submit", data={**form, "source": ""}, files={"file": ("a.py", b"\x00\x01")}), 422)
    assert "The source is not text" in binary


def test_too_many_pending_says_when_to_try_again(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        for _ in range(settings().pending_limit):
            samples.submission(database, user, site.values, state=State.QUEUED)
    form = {"csrf_token": csrf(check(ada.get(STAGE))), "stage": "online_softmax", "source": "x = 1\n"}
    answer = ada.post("/submit", data=form, files={"file": ("", b"")})
    assert "You can try again in" in check(answer, 429)
    assert answer.headers["retry-after"]


def test_a_form_of_another_page_is_refused(site: Site) -> None:
    _, ada = site.sign_in("ada")
    form = {"stage": "online_softmax", "source": "x = 1\n"}
    check(ada.post("/submit", data={**form, "csrf_token": "forged"}, files={"file": ("", b"")}), 403)
    check(ada.post("/submit", data=form, files={"file": ("", b"")}), 403)
    check(ada.post("/me/tokens", data={"name": "x"}), 403)
    with transaction() as database:
        assert database.scalars(select(Submission)).all() == []


def test_sign_up_shows_the_token_once_and_it_signs_in(site: Site) -> None:
    new = site.visitor()
    check(new.get("/sign-up"))
    text = check(new.post("/sign-up", data={"handle": "grace"}))
    secret = re.search(r"kg_[\w-]{32}", text)
    assert secret
    assert secret[0] not in check(new.get("/me/tokens"))
    other = site.visitor()
    assert other.post("/sign-in", data={"token": secret[0], "next": "/me/tokens"}).url.path == "/me/tokens"
    taken = check(site.visitor().post("/sign-up", data={"handle": "GRACE"}), 409)
    assert "The handle is taken" in taken
    assert 'value="GRACE"' in taken
    check(site.visitor().post("/sign-up", data={"handle": "no spaces"}), 422)


def test_a_wrong_token_stays_at_the_door(site: Site) -> None:
    text = check(site.visitor().post("/sign-in", data={"token": "kg_" + "x" * 32, "next": "//evil.example"}), 401)
    assert "Unknown token" in text
    assert "evil.example" not in text


def test_sign_up_can_be_closed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_OPEN_SIGNUP", "false")
    settings.cache_clear()
    assert "Sign-up is closed" in check(site.visitor().get("/sign-up"), 403)
    check(site.visitor().post("/sign-up", data={"handle": "grace"}), 403)


def test_tokens_are_made_and_revoked(site: Site) -> None:
    _, ada = site.sign_in("ada")
    token = csrf(check(ada.get("/me/tokens")))
    made = check(ada.post("/me/tokens", data={"csrf_token": token, "name": "laptop", "days": "7", "scope_read": "on"}))
    assert "it is shown this once" in made
    assert "it is shown this once" not in check(ada.get("/me/tokens"))
    beyond = check(ada.post("/me/tokens", data={"csrf_token": token, "days": "7", "scope_admin": "on"}), 403)
    assert "cannot hand on" in beyond
    check(ada.post("/me/tokens", data={"csrf_token": token, "days": "99999", "scope_read": "on"}), 422)
    number = re.search(r"/me/tokens/(\d+)/revoke", made)
    assert number
    assert "revoked" in check(ada.post(f"/me/tokens/{number[1]}/revoke", data={"csrf_token": token}))


def test_an_invite_makes_an_account(site: Site) -> None:
    _, root = site.sign_in("root", Role.ADMIN)
    form = {
        "csrf_token": csrf(check(root.get("/admin/invites"))),
        "role": "instructor",
        "uses": "1",
        "days": "7",
        "note": "<b>",
    }
    link = re.search(r"/invite/(kgi_[\w-]+)", check(root.post("/admin/invites", data=form)))
    assert link
    guest = site.visitor()
    assert "You were invited" in check(guest.get(link[0]))
    check(guest.post(link[0], data={"handle": "root"}), 409)
    assert "Welcome, teacher" in check(guest.post(link[0], data={"handle": "teacher"}))
    check(site.visitor().get(link[0]), 404)
    check(site.visitor().post(link[0], data={"handle": "late"}), 404)


def test_administrators_switch_stages_and_judge_again(site: Site) -> None:
    _, root = site.sign_in("root", Role.ADMIN)
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.values, samples.wrong_from_row(site.values))
    form = {"csrf_token": csrf(check(root.get("/admin/stages")))}
    assert "closed" in check(root.post("/admin/stages/online_softmax", data={**form, "enabled": "false"}))
    assert "takes no submissions" in check(ada.get(STAGE))
    assert "<b>closed</b>, to be read" in check(ada.get("/"))
    check(root.post("/admin/stages/online_softmax", data={**form, "enabled": "true", "frozen": "true"}))
    with transaction() as database:
        assert database.get_one(StageSwitch, "online_softmax").frozen
    preview = check(root.get("/admin/stages/online_softmax?preview=1&verdict=wrong_answer"))
    assert "Judge 1 again" in preview
    assert "None of them stands on the board now" in preview
    assert "The old normalizer is not rescaled" in preview
    with transaction() as database:
        assert database.get_one(Submission, row.id).round == 1
    check(root.post("/admin/stages/online_softmax/rejudge", data={**form, "verdict": "wrong_answer"}))
    with transaction() as database:
        found = database.get_one(Submission, row.id)
        assert (found.round, found.state) == (2, State.QUEUED)
    assert "stage.rejudge" in check(root.get("/admin/audit"))


def test_administrators_look_after_accounts(site: Site) -> None:
    _, root = site.sign_in("root", Role.ADMIN)
    _, ada = site.sign_in("ada")
    form = {"csrf_token": csrf(check(root.get("/admin/users")))}
    check(root.post("/admin/users", data={**form, "handle": "bob", "role": "submitter"}))
    assert "it is shown this once" in check(
        root.post("/admin/users/bob/tokens", data={**form, "name": "n", "days": "3", "scope_read": "on"})
    )
    check(root.post("/admin/users/ada", data={**form, "disabled": "true"}))
    check(ada.get("/me/tokens"), 401)
    check(root.post("/admin/users/root", data={**form, "role": "submitter"}), 409)
    assert 'href="/admin/users/bob"' in check(root.get("/admin/users?search=BO"))


def test_a_submission_is_called_off(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.values, state=State.QUEUED)
    form = {"csrf_token": csrf(check(ada.get(f"/submissions/{row.id}")))}
    assert "Cancelled" in check(ada.post(f"/submissions/{row.id}/cancel", data=form))


def test_answers_are_checked_and_never_sent(site: Site) -> None:
    stranger = site.visitor()
    assert "That is it" not in check(stranger.get(STAGE))
    for given in ("5", " 5.000 ", "5,0", "10/2", "5.004"):
        assert "✓ That is it" in check(stranger.post(f"{STAGE}/answers/0", data={"answer": given}))
    for given in ("4", "five", "", "nan", "<script>", "5e0", "5/0", "1e999999", "5.01"):
        assert "✗ Not that" in check(stranger.post(f"{STAGE}/answers/0", data={"answer": given}))
    check(stranger.post(f"{STAGE}/answers/1", data={"answer": "5"}), 404)


def test_sign_out_ends_the_session(site: Site) -> None:
    _, ada = site.sign_in("ada")
    check(ada.post("/sign-out", data={"csrf_token": csrf(check(ada.get("/")))}))
    check(ada.get("/me/tokens"), 401)


def test_whoever_signed_up_is_signed_in_on_that_page_already_and_may_reload_it(site: Site) -> None:
    ada = site.visitor()
    form = {"handle": "ada", "next": "/stages/online_softmax"}
    text = check(ada.post("/sign-up", data=form))
    assert "Sign out" in text
    assert 'href="/stages/online_softmax">I have kept it' in text
    assert "kg_" in text
    again = check(ada.post("/sign-up", data=form))
    assert "The handle is taken" not in again
    assert "Welcome, ada" in again
    elsewhere = check(site.visitor().post("/sign-up", data={"handle": "bob", "next": "//evil.example"}))
    assert "evil.example" not in elsewhere
    assert "The handle is taken" in check(site.visitor().post("/sign-up", data=form), 409)
