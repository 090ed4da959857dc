"""Tokens, browser sessions, and what guards them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import select, update

from api.sign_in import local_page
from kernelgate.accounts import create_invite
from kernelgate.db import transaction
from kernelgate.models import Invite, Role, Scope, Session, Token, User, now
from tests.api.conftest import HONEST, Api, problem

SENT = {"stage": "double", "source": HONEST}


def test_a_token_says_who_one_is(api: Api) -> None:
    body = api.as_("ada").get("/me").json()
    assert body["handle"] == "ada"
    assert body["scopes"] == ["read", "submit"]
    assert (body["via"], body["csrf_token"], body["pending"]) == ("token", None, 0)


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer nonsense", "Bearer kg_short", "kg_" + "x" * 32])
def test_what_is_no_token_is_refused_as_such(api: Api, header: str) -> None:
    answer = api.client.get("/me", headers={"Authorization": header})
    problem(answer, 401, "malformed_token")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_an_unknown_token_is_refused(api: Api) -> None:
    answer = api.client.get("/me", headers={"Authorization": "Bearer kg_" + "x" * 32})
    problem(answer, 401, "unknown_token")
    assert "xxxx" not in answer.text


def test_an_expired_token_is_refused_as_such(api: Api) -> None:
    client = api.as_("ada")
    with transaction() as session:
        session.execute(update(Token).values(expires_at=now() - timedelta(seconds=1)))
    for answer in (client.post("/submit", json=SENT), client.get("/me")):
        assert "expired on" in problem(answer, 401, "expired_token")["detail"]
        assert "expired" in answer.headers["www-authenticate"]


def test_a_revoked_token_is_refused_as_such(api: Api) -> None:
    client = api.as_("ada")
    number = client.get("/me/tokens").json()[0]["id"]
    assert client.post(f"/me/tokens/{number}/revoke").json()["revoked_at"]
    problem(client.get("/me"), 401, "revoked_token")


def test_a_disabled_account_is_refused(api: Api) -> None:
    client = api.as_("ada")
    with transaction() as session:
        session.execute(update(User).values(disabled_at=now()))
    problem(client.get("/me"), 403, "account_disabled")


def test_a_token_does_only_what_its_scopes_say(api: Api) -> None:
    reader = api.as_("ada", scopes=[Scope.READ])
    answer = reader.post("/submit", json=SENT)
    assert "the token has: read" in problem(answer, 403, "missing_scope")["detail"]
    assert 'scope="submit"' in answer.headers["www-authenticate"]
    submitter = api.as_("ada", scopes=[Scope.SUBMIT])
    made = submitter.post("/submit", json=SENT).json()
    problem(submitter.get(f"/submissions/{made['id']}"), 403, "missing_scope")
    problem(submitter.get("/me/submissions"), 403, "missing_scope")


def test_administration_takes_role_and_scope(api: Api) -> None:
    problem(api.as_("ada").get("/admin/users"), 403, "missing_scope")
    problem(api.as_("root", Role.ADMIN, [Scope.READ, Scope.SUBMIT]).get("/admin/users"), 403, "missing_scope")
    admin = api.as_("root", Role.ADMIN)
    assert admin.get("/admin/users").status_code == 200
    with transaction() as session:
        session.execute(update(User).where(User.handle == "root").values(role=Role.SUBMITTER))
    problem(admin.get("/admin/users"), 403, "missing_role")


def test_a_token_makes_none_that_may_more_or_lives_longer(api: Api) -> None:
    reader = api.open(Authorization=f"Bearer {api.token('ada', scopes=[Scope.READ, Scope.SUBMIT], days=2)}")
    made = reader.post("/me/tokens", json={"name": "laptop", "days": 300})
    assert made.status_code == 201
    body = made.json()
    assert re.fullmatch(r"kg_[A-Za-z0-9_-]{32}", body["token"])
    assert body["scopes"] == ["read", "submit"]
    assert body["expires_at"] < (now() + timedelta(days=2, minutes=1)).isoformat()
    problem(reader.post("/me/tokens", json={"scopes": ["admin"]}), 403, "missing_scope")
    assert api.client.get("/me", headers={"Authorization": f"Bearer {body['token']}"}).json()["handle"] == "ada"
    assert body["token"] not in reader.get("/me/tokens").text


@pytest.mark.parametrize(
    "body", [{"days": 0}, {"days": 1e9}, {"scopes": []}, {"scopes": ["root"]}, {"name": "x" * 81}, {"nmae": "x"}]
)
def test_a_token_that_cannot_be_is_refused(api: Api, body: dict[str, object]) -> None:
    problem(api.as_("ada").post("/me/tokens", json=body), 422, "invalid_field")


def test_nobody_revokes_the_token_of_another(api: Api) -> None:
    number = api.as_("ada").get("/me/tokens").json()[0]["id"]
    problem(api.as_("bob").post(f"/me/tokens/{number}/revoke"), 404, "unknown_token_id")
    problem(api.as_("bob").post("/me/tokens/99999/revoke"), 404, "unknown_token_id")


def signed_in(api: Api, handle: str = "ada", role: Role = Role.SUBMITTER) -> tuple[httpx.Client, str]:
    """A browser's client and its anti-forgery value."""
    client = api.open()
    answer = client.post("/sign-in", json={"token": api.token(handle, role)})
    assert answer.status_code == 200, answer.text
    return client, str(answer.json()["csrf_token"])


def test_signing_in_sets_a_cookie_that_scripts_and_other_sites_do_not_get(api: Api) -> None:
    client = api.open()
    answer = client.post("/sign-in", json={"token": api.token("ada")})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/" in cookie
    assert "secure" not in cookie
    assert client.get("/me").json()["via"] == "session"
    with transaction() as session:
        stored = session.scalars(select(Session)).one()
    assert answer.cookies["kernelgate"].encode() not in stored.hash


def test_over_https_the_cookie_is_bound_to_the_host(api: Api, limits: Callable[..., None]) -> None:
    limits(cookie_secure=True)
    answer = api.client.post("/sign-in", json={"token": api.token("ada")})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-kernelgate=")
    assert "Secure" in cookie
    assert answer.headers["strict-transport-security"]


def test_a_session_id_is_never_taken_from_the_request(api: Api) -> None:
    """Session fixation: the id that an attacker planted is worth nothing after the victim signed in."""
    client = api.open(Cookie="kernelgate=planted")
    answer = client.post("/sign-in", json={"token": api.token("ada")})
    assert answer.cookies["kernelgate"] != "planted"
    assert api.open(Cookie="kernelgate=planted").get("/me").status_code == 401


def test_signing_in_again_ends_the_session_before(api: Api) -> None:
    client, _ = signed_in(api)
    before = client.cookies["kernelgate"]
    client.post("/sign-in", json={"token": api.token("ada")})
    assert client.cookies["kernelgate"] != before
    assert api.open(Cookie=f"kernelgate={before}").get("/me").status_code == 401


def test_a_session_that_is_over_is_none(api: Api) -> None:
    client, _ = signed_in(api)
    with transaction() as session:
        session.execute(update(Session).values(expires_at=now()))
    problem(client.get("/me"), 401, "not_signed_in")


def test_a_change_by_cookie_needs_the_anti_forgery_value(api: Api) -> None:
    client, csrf = signed_in(api)
    problem(client.post("/submit", json=SENT), 403, "csrf_failed")
    problem(client.post("/submit", json=SENT, headers={"X-CSRF-Token": "wrong"}), 403, "csrf_failed")
    problem(client.post("/submit", data={**SENT, "csrf_token": "wrong"}), 403, "csrf_failed")
    assert client.post("/submit", json=SENT, headers={"X-CSRF-Token": csrf}).status_code == 202
    assert client.post("/submit", data={**SENT, "csrf_token": csrf}).status_code == 202
    form = {"data": {"stage": "double", "csrf_token": csrf}, "files": {"file": ("double.py", HONEST)}}
    assert client.post("/submit", **form).status_code == 202


def test_the_value_of_another_session_does_not_do(api: Api) -> None:
    client, _ = signed_in(api)
    _, other = signed_in(api, "bob")
    problem(client.post("/submit", json=SENT, headers={"X-CSRF-Token": other}), 403, "csrf_failed")


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_what_another_site_caused_is_refused(api: Api, headers: dict[str, str]) -> None:
    client, csrf = signed_in(api)
    problem(client.post("/submit", json=SENT, headers={"X-CSRF-Token": csrf, **headers}), 403, "cross_site")
    problem(api.client.post("/sign-in", json={"token": api.token("ada")}, headers=headers), 403, "cross_site")


def test_ones_own_origin_is_fine(api: Api) -> None:
    client, csrf = signed_in(api)
    assert client.post("/submit", json=SENT, headers={"X-CSRF-Token": csrf, "Origin": api.url}).status_code == 202


def test_signing_out_ends_the_session_on_the_server(api: Api) -> None:
    client, csrf = signed_in(api)
    cookie = client.cookies["kernelgate"]
    problem(client.post("/sign-out"), 403, "csrf_failed")
    assert client.post("/sign-out", headers={"X-CSRF-Token": csrf}).status_code == 204
    assert api.open(Cookie=f"kernelgate={cookie}").get("/me").status_code == 401


def test_disabling_an_account_ends_its_sessions(api: Api) -> None:
    client, _ = signed_in(api)
    api.as_("root", Role.ADMIN).post("/admin/users/ada", json={"disabled": True})
    problem(client.get("/me"), 401, "not_signed_in")


def test_a_token_that_may_not_read_opens_no_session(api: Api) -> None:
    answer = api.client.post("/sign-in", json={"token": api.token("ada", scopes=[Scope.SUBMIT])})
    assert "may only: submit" in problem(answer, 403, "missing_scope")["detail"]


def test_each_token_that_opens_nothing_says_why(api: Api) -> None:
    secret = api.token("ada")
    problem(api.client.post("/sign-in", json={"token": "kg_" + "x" * 32}), 401, "unknown_token")
    with transaction() as session:
        session.execute(update(Token).values(expires_at=now()))
    problem(api.client.post("/sign-in", json={"token": secret}), 401, "expired_token")
    with transaction() as session:
        session.execute(update(Token).values(revoked_at=now()))
    problem(api.client.post("/sign-in", json={"token": secret}), 401, "revoked_token")
    with transaction() as session:
        session.execute(update(Token).values(revoked_at=None, expires_at=now() + timedelta(days=1)))
        session.execute(update(User).values(disabled_at=now()))
    problem(api.client.post("/sign-in", json={"token": secret}), 403, "account_disabled")


def test_guessing_is_limited_and_the_right_token_waits_too(api: Api, limits: Callable[..., None]) -> None:
    limits(sign_in_limit=3)
    secret = api.token("ada")
    for _ in range(3):
        problem(api.client.post("/sign-in", json={"token": "guess"}), 401, "unknown_token")
    for token in ("guess", secret):
        answer = api.client.post("/sign-in", json={"token": token})
        problem(answer, 429, "too_many_sign_ins")
        assert 0 < int(answer.headers["retry-after"]) <= 900
    problem(api.client.post("/invite/guess", json={"handle": "eve"}), 429, "too_many_sign_ins")


def test_sign_up_is_closed_unless_opened(api: Api) -> None:
    problem(api.client.post("/sign-up", json={"handle": "ada"}), 403, "signup_closed")


def test_sign_up_gives_an_account_a_session_and_a_token(api: Api, limits: Callable[..., None]) -> None:
    limits(open_signup=True)
    client = api.open()
    answer = client.post("/sign-up", json={"handle": "ada"})
    assert answer.status_code == 201
    assert client.get("/me").json()["handle"] == "ada"
    token = answer.json()["token"]
    assert api.open(Authorization=f"Bearer {token}").get("/me").json()["role"] == "submitter"
    problem(api.client.post("/sign-up", json={"handle": "ADA"}), 409, "handle_taken")


@pytest.mark.parametrize("handle", ["", "-x", "a b", "<script>", "x" * 40, "é", "a/b", "a\x00b", "a\nb"])
def test_a_handle_that_cannot_be_is_refused(api: Api, limits: Callable[..., None], handle: str) -> None:
    limits(open_signup=True)
    body = problem(api.client.post("/sign-up", json={"handle": handle}), 422, "invalid_field")
    assert body["errors"][0]["field"] == "handle"


def test_an_invite_makes_as_many_accounts_as_it_says(api: Api) -> None:
    admin = api.as_("root", Role.ADMIN)
    made = admin.post("/admin/invites", json={"role": "instructor", "uses": 1, "note": "course"}).json()
    path = httpx.URL(made["url"]).path
    client = api.open()
    assert client.post(path, json={"handle": "ROOT"}).status_code == 409  # a taken handle does not cost a use
    answer = client.post(path, json={"handle": "ada"})
    assert answer.status_code == 201
    assert client.get("/me").json()["role"] == "instructor"
    problem(api.client.post(path, json={"handle": "bob"}), 404, "unusable_invite")
    assert admin.get("/admin/invites").json() == []


def test_an_expired_or_revoked_invite_makes_none(api: Api) -> None:
    with transaction() as session:
        _, secret = create_invite(session, by=None, uses=5)
        session.execute(update(Invite).values(expires_at=now()))
    problem(api.client.post(f"/invite/{secret}", json={"handle": "ada"}), 404, "unusable_invite")
    admin = api.as_("root", Role.ADMIN)
    made = admin.post("/admin/invites", json={}).json()
    admin.post(f"/admin/invites/{made['id']}/revoke")
    problem(api.client.post(httpx.URL(made["url"]).path, json={"handle": "ada"}), 404, "unusable_invite")
    problem(admin.post("/admin/invites/999/revoke"), 404, "unusable_invite")


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/stages/double", True),
        ("/me?x=1", True),
        ("//evil.example", False),
        ("/\\evil.example", False),
        ("https://evil.example", False),
        ("javascript:alert(1)", False),
        ("/a\r\nSet-Cookie: x=y", False),
        ("", False),
    ],
)
def test_after_signing_in_one_stays_here(path: str, ours: bool) -> None:
    assert local_page(path) == (path if ours else "/")
