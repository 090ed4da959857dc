"""A session is its token in another form, and what a token made ends with it: attacks by whoever had a token for a while."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from kernelgate.accounts import find_user
from kernelgate.db import transaction
from kernelgate.models import Role, Scope, Session, Token, User, now
from kernelgate.protocol import EventKind
from tests.api.conftest import Api, Graded, problem


class Browser:
    """A client signed in by session, with its anti-forgery value."""

    def __init__(self, api: Api, token: str) -> None:
        self.client = api.open()
        answer = self.client.post("/sign-in", json={"token": token})
        assert answer.status_code == 200, answer.text
        self.csrf = str(answer.json()["csrf_token"])

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        return self.client.post(path, json=body or {}, headers={"X-CSRF-Token": self.csrf})

    def make(self, **asked: Any) -> dict[str, Any]:
        answer = self.post("/me/tokens", asked)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made


def bearer(api: Api, token: str) -> httpx.Client:
    return api.open(Authorization=f"Bearer {token}")


def end_of(made: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(made["expires_at"])


def own_number(client: httpx.Client) -> int:
    """The number of the account's first token."""
    return int(client.get("/me/tokens").json()[-1]["id"])


def test_a_session_of_a_days_token_makes_none_of_a_year_and_ends_when_it_is_revoked(api: Api) -> None:
    token = api.token("ada", days=1)
    browser = Browser(api, token)
    made = browser.make(name="long", days=365)
    assert end_of(made) <= now() + timedelta(days=1)
    client = bearer(api, token)
    assert client.post(f"/me/tokens/{own_number(client)}/revoke").status_code == 200
    problem(client.get("/me"), 401, "revoked_token")
    problem(browser.get("/me"), 401, "not_signed_in")
    problem(bearer(api, made["token"]).get("/me"), 401, "revoked_token")


def test_no_chain_of_sessions_and_tokens_gains_a_day_or_outlives_its_first(api: Api) -> None:
    token = first = api.token("ada", days=2)
    for _ in range(4):
        made = Browser(api, token).make(days=3650)
        assert end_of(made) <= now() + timedelta(days=2)
        token = made["token"]
    last = Browser(api, token)
    client = bearer(api, first)
    client.post(f"/me/tokens/{own_number(client)}/revoke")
    problem(last.get("/me"), 401, "not_signed_in")
    problem(bearer(api, token).get("/me"), 401, "revoked_token")


def test_revoking_a_made_token_leaves_the_one_it_came_from(api: Api) -> None:
    browser = Browser(api, api.token("ada"))
    laptop = browser.make(name="laptop")
    other = browser.make(name="other")
    browser.post(f"/me/tokens/{laptop['id']}/revoke")
    problem(bearer(api, laptop["token"]).get("/me"), 401, "revoked_token")
    assert bearer(api, other["token"]).get("/me").status_code == 200
    assert browser.get("/me").status_code == 200


def test_a_session_ends_with_the_days_of_its_token(api: Api) -> None:
    browser = Browser(api, api.token("ada", days=1))
    with transaction() as session:
        assert session.scalars(select(Session.expires_at)).one() <= now() + timedelta(days=1)
        session.execute(update(Token).values(expires_at=now()))
        session.execute(update(Session).values(expires_at=now() + timedelta(days=14)))
    problem(browser.get("/me"), 401, "not_signed_in")


def test_a_session_of_an_account_that_is_disabled_ends_and_does_not_come_back(api: Api) -> None:
    browser = Browser(api, api.token("ada"))
    admin = api.as_("root", Role.ADMIN)
    admin.post("/admin/users/ada", json={"disabled": True})
    problem(browser.get("/me"), 401, "not_signed_in")
    admin.post("/admin/users/ada", json={"disabled": False})
    problem(browser.get("/me"), 401, "not_signed_in")


def test_a_session_may_do_what_its_token_may_and_no_more(api: Api) -> None:
    reader = Browser(api, api.token("ada", scopes=[Scope.READ]))
    assert reader.get("/me").json()["scopes"] == ["read"]
    answer = problem(reader.post("/submit", {"stage": "double", "source": "x = 1\n"}), 403, "missing_scope")
    assert "the token that the session was opened with has: read" in answer["detail"]
    problem(reader.post("/me/tokens", {"scopes": ["submit"]}), 403, "missing_scope")


def test_a_promotion_gives_old_sessions_and_tokens_nothing(api: Api) -> None:
    """Otherwise whoever holds a forgotten token of somebody would be an administrator from that moment."""
    token = api.token("ada")
    browser = Browser(api, token)
    with transaction() as session:
        session.execute(update(User).values(role=Role.ADMIN))
    problem(browser.get("/admin/users"), 403, "missing_scope")
    problem(Browser(api, token).get("/admin/users"), 403, "missing_scope")
    problem(browser.post("/me/tokens", {"scopes": ["admin"]}), 403, "missing_scope")


def test_an_administrator_of_a_day_makes_himself_none_of_ten_years(api: Api) -> None:
    token = api.token("root", Role.ADMIN, days=1)
    api.token("second", Role.ADMIN)
    client = bearer(api, token)
    asked = {"days": 3650, "scopes": ["read", "submit", "admin"]}
    made = [client.post(f"/admin/users/{handle}/tokens", json=asked).json() for handle in ("root", "ROOT", "second")]
    made.append(client.post("/admin/users/root/tokens", json={"days": 3650}).json())
    assert all(end_of(each) <= now() + timedelta(days=1) for each in made)
    client.post(f"/admin/tokens/{own_number(client)}/revoke")
    for each in made:
        problem(bearer(api, each["token"]).get("/me"), 401, "revoked_token")


def test_a_token_that_an_administrator_makes_for_a_student_is_the_students(api: Api) -> None:
    api.token("ada")
    admin = api.as_("root", Role.ADMIN)
    made = admin.post("/admin/users/ada/tokens", json={"days": 120}).json()
    assert made["parent_id"] is None
    assert end_of(made) > now() + timedelta(days=119)
    admin.post(f"/admin/tokens/{own_number(admin)}/revoke")
    assert bearer(api, made["token"]).get("/me").json()["handle"] == "ada"


def test_a_token_that_is_being_revoked_makes_none_that_stays(api: Api, limits: Callable[..., None]) -> None:
    """Eight requests race the revocation; whichever comes first, nothing of that token works afterwards."""
    limits(token_limit=1000, token_hourly_limit=1000)
    for _ in range(4):
        token = api.token("ada")
        with transaction() as session:
            number = session.scalar(select(func.max(Token.id)))
        client = bearer(api, token)
        with ThreadPoolExecutor(8) as pool:
            makers = [pool.submit(client.post, "/me/tokens", json={"name": "late"}) for _ in range(8)]
            pool.submit(client.post, f"/me/tokens/{number}/revoke").result()
        made = [each.result().json().get("token") for each in makers]
        for secret in filter(None, made):
            problem(bearer(api, secret).get("/me"), 401, "revoked_token")


def test_a_stream_ends_with_the_token_that_opened_it(api: Api) -> None:
    token = api.token("ada")
    client = bearer(api, token)
    made = api.submit(client)
    with client.stream("GET", f"/submissions/{made['id']}/events") as stream:
        lines = stream.iter_lines()
        assert "queued" in next(line for line in lines if line.startswith("data:"))
        with transaction() as session:
            session.execute(update(Token).values(revoked_at=now()))
        Graded.event(made["id"], EventKind.CASE, {"index": 0, "total": 1, "name": "private", "state": "right"})
        assert not [line for line in lines if "private" in line]


def test_a_stream_of_a_strangers_eyes_ends_when_the_submission_is_hidden(api: Api) -> None:
    toml = api.graders / "double" / "stage.toml"
    toml.write_text(toml.read_text().replace('sources = "owner"', 'sources = "everyone"'))
    from tests.api.conftest import verify

    verify(api.graders / "double")
    api.app.state.catalog.reload()
    made = api.submit(api.as_("ada"))
    with api.client.stream("GET", f"/submissions/{made['id']}/events") as stream:
        lines = stream.iter_lines()
        assert "queued" in next(line for line in lines if line.startswith("data:"))
        api.as_("root", Role.ADMIN).post(f"/admin/submissions/{made['id']}/hide", json={"hidden": True})
        Graded.event(made["id"], EventKind.CASE, {"index": 0, "total": 1, "name": "private", "state": "right"})
        assert not [line for line in lines if "private" in line]


# ------------------------------------------------------------------------------------------------- how many, how fast


def test_an_account_has_only_so_many_tokens_at_once(api: Api, limits: Callable[..., None]) -> None:
    limits(token_limit=3)
    client = api.as_("ada")
    made = [client.post("/me/tokens", json={}).json() for _ in range(2)]
    answer = problem(client.post("/me/tokens", json={}), 409, "too_many_tokens")
    assert "3 tokens of this account work already; 3 may" in answer["detail"]
    problem(api.as_("root", Role.ADMIN).post("/admin/users/ada/tokens", json={}), 409, "too_many_tokens")
    client.post(f"/me/tokens/{made[0]['id']}/revoke")
    assert client.post("/me/tokens", json={}).status_code == 201


def test_tokens_are_made_only_so_fast_though_each_is_revoked(api: Api, limits: Callable[..., None]) -> None:
    limits(token_hourly_limit=3)
    client = api.as_("ada")
    for _ in range(2):
        number = client.post("/me/tokens", json={}).json()["id"]
        client.post(f"/me/tokens/{number}/revoke")
    answer = client.post("/me/tokens", json={})
    problem(answer, 429, "too_many_tokens_per_hour")
    assert 0 < int(answer.headers["retry-after"]) <= 3600


def test_parallel_requests_do_not_pass_the_limit_on_tokens(api: Api, limits: Callable[..., None]) -> None:
    limits(token_limit=5)
    client = api.as_("ada")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post("/me/tokens", json={}).status_code, range(16)))
    assert (answers.count(201), answers.count(409)) == (4, 12)


def test_tokens_that_ended_long_ago_are_swept(api: Api) -> None:
    client = api.as_("ada")
    old = client.post("/me/tokens", json={"name": "old"}).json()["id"]
    with transaction() as session:
        session.execute(update(Token).where(Token.id == old).values(revoked_at=now() - timedelta(days=31)))
    client.post("/me/tokens", json={"name": "new"})
    assert [each["name"] for each in client.get("/me/tokens").json()] == ["new", ""]


def test_one_address_signs_up_only_so_many_accounts(api: Api, limits: Callable[..., None]) -> None:
    """Every account comes with a token and limits of its own."""
    limits(open_signup=True, sign_up_limit=2)
    for handle in ("a1", "a1", "a2"):  # a handle that is taken does not count
        api.client.post("/sign-up", json={"handle": handle})
    answer = api.client.post("/sign-up", json={"handle": "a3"})
    problem(answer, 429, "too_many_sign_ups")
    assert 0 < int(answer.headers["retry-after"]) <= 3600
    with transaction() as session:
        assert find_user(session, "a3") is None
        assert find_user(session, "a2") is not None


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": "kgi_" + "x" * 32}])
def test_what_is_no_token_opens_no_session(api: Api, body: dict[str, str]) -> None:
    assert api.client.post("/sign-in", json=body).status_code in (401, 422)
    assert api.client.get("/me").status_code == 401
