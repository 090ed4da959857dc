"""Passwords and the way back in, and what somebody tries who has neither."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from statistics import median

import httpx
import pytest
from sqlalchemy import select, update

from kernelgate.credentials import PasswordError, check_password
from kernelgate.db import transaction
from kernelgate.models import Credential, Role, SignInFailure, User
from kernelgate.models import Session as BrowserSession
from tests.api.conftest import Api, problem
from tests.api.provider import told

GOOD, OTHER = "correct horse battery", "staple staples stapler"
HTML = {"accept": "text/html"}


@pytest.fixture
def open_site(api: Api, limits: Callable[..., None]) -> Api:
    limits(open_signup=True)
    return api


def signed_up(api: Api, handle: str, password: str = GOOD) -> httpx.Client:
    """A browser of a new account."""
    client = api.open()
    answer = client.post("/sign-up", json={"handle": handle, "password": password})
    assert answer.status_code == 201, answer.text
    assert answer.json()["token"] is None
    client.headers["x-csrf-token"] = answer.json()["csrf_token"]
    return client


def signed_in(api: Api, handle: str, password: str) -> httpx.Response:
    return api.open().post("/sign-in", json={"handle": handle, "password": password})


def change(client: httpx.Client, **fields: str) -> httpx.Response:
    return client.post("/me/password", data=fields, headers=HTML)


def test_a_person_signs_up_signs_in_and_changes_the_password(open_site: Api) -> None:
    ada = signed_up(open_site, "ada")
    assert signed_in(open_site, "ADA", GOOD).json()["handle"] == "ada"
    elsewhere = open_site.open()
    elsewhere.post("/sign-in", json={"handle": "ada", "password": GOOD})
    assert change(ada, current="not this one", password=OTHER).status_code == 401
    assert change(ada, current=GOOD, password="short").status_code == 422
    assert change(ada, current=GOOD, password=OTHER).status_code == 303
    assert ada.get("/me").json()["handle"] == "ada"
    problem(elsewhere.get("/me"), 401, "not_signed_in")
    problem(signed_in(open_site, "ada", GOOD), 401, "wrong_password")
    assert signed_in(open_site, "ada", OTHER).status_code == 200


def test_a_token_made_by_a_person_outlives_the_session_and_belongs_to_nobody_elses_token(open_site: Api) -> None:
    ada = signed_up(open_site, "ada")
    made = ada.post("/me/tokens", json={"days": 400}).json()
    assert made["parent_id"] is None
    ada.post("/sign-out")
    assert open_site.open(Authorization=f"Bearer {made['token']}").get("/me").json()["handle"] == "ada"


def test_what_is_wrong_is_not_said_and_takes_as_long(open_site: Api, limits: Callable[..., None]) -> None:
    """Otherwise one learns which accounts have a password to guess."""
    limits(open_signup=True, sign_in_limit=1000)
    signed_up(open_site, "ada")
    open_site.token("machine")
    answers, seconds = {}, {}
    for handle in ("ada", "machine", "nobody", "no such/handle", "x" * 90):
        spent = []
        for _ in range(3):
            begun = time.perf_counter()
            answer = signed_in(open_site, handle, OTHER)
            spent.append(time.perf_counter() - begun)
        answers[handle], seconds[handle] = problem(answer, 401, "wrong_password"), median(spent)
    assert len({answer["detail"] for answer in answers.values()}) == 1
    assert min(seconds.values()) > 0.25 * max(seconds.values()), seconds


def test_guessing_is_limited_by_address_and_by_account(open_site: Api, limits: Callable[..., None]) -> None:
    limits(open_signup=True, sign_in_limit=3)
    signed_up(open_site, "ada")
    for _ in range(3):
        problem(signed_in(open_site, "ada", OTHER), 401, "wrong_password")
    answer = signed_in(open_site, "ada", GOOD)
    problem(answer, 429, "too_many_sign_ins")
    assert int(answer.headers["retry-after"]) > 0
    with transaction() as database:  # the same guesses from elsewhere, and more of them
        here = SignInFailure.address.not_like("account%")
        database.execute(update(SignInFailure).where(here).values(address="elsewhere"))
        database.add_all(SignInFailure(address="account ada") for _ in range(12))
    problem(signed_in(open_site, "Ada", GOOD), 429, "too_many_sign_ins")
    assert signed_in(open_site, "bob", GOOD).status_code == 401


@pytest.mark.parametrize(
    "password",
    ["", "short", "1234567890", "Password123", "aaaaaaaaaaaaaaa", "x" * 201, "ada-lovelace", "Ada-Lovelace1!"],
)
def test_a_password_that_is_guessed_first_is_refused(password: str) -> None:
    with pytest.raises(PasswordError):
        check_password(password, "ada-lovelace")


def test_what_is_stored_is_no_password(open_site: Api) -> None:
    signed_up(open_site, "ada")
    signed_up(open_site, "bob")
    with transaction() as database:
        secrets = database.scalars(select(Credential.secret)).all()
    assert len(set(secrets)) == 2
    assert all(re.match(r"\$argon2id\$v=19\$m=19456,t=2,p=1\$", secret) for secret in secrets)


def test_only_an_accounts_own_first_token_sets_a_password_and_takes_it_along(open_site: Api) -> None:
    """A token is no person: whoever had one for a while would have the account for good."""
    token = open_site.token("ada")
    owner = open_site.open(Authorization=f"Bearer {token}")
    made = owner.post("/me/tokens", json={"scopes": ["read", "submit"]}).json()
    derived = open_site.open(Authorization=f"Bearer {made['token']}")
    narrow = open_site.as_("root", Role.ADMIN).post("/admin/users/ada/tokens", json={"scopes": ["submit"]}).json()
    for client in (derived, open_site.open(Authorization=f"Bearer {narrow['token']}")):
        assert told(change(client, password=GOOD), "own_sign_in_first")
    assert change(owner, password=GOOD).status_code == 303
    assert told(change(owner, current=GOOD, password=OTHER), "own_sign_in_first")
    session = open_site.open()
    csrf = session.post("/sign-in", json={"handle": "ada", "password": GOOD}).json()["csrf_token"]
    session.headers["x-csrf-token"] = csrf
    later = session.post("/me/tokens", json={}).json()
    assert change(session, current=GOOD, password=OTHER).status_code == 303
    owner.post(f"/me/tokens/{owner.get('/me/tokens').json()[-1]['id']}/revoke")
    problem(session.get("/me"), 401, "not_signed_in")
    problem(signed_in(open_site, "ada", OTHER), 401, "wrong_password")
    problem(open_site.open(Authorization=f"Bearer {later['token']}").get("/me"), 401, "revoked_token")


def test_a_promotion_gives_an_open_session_nothing(open_site: Api) -> None:
    ada = signed_up(open_site, "ada")
    with transaction() as database:
        database.execute(update(User).values(role=Role.ADMIN))
    problem(ada.get("/admin/users"), 403, "missing_scope")
    again = open_site.open()
    again.post("/sign-in", json={"handle": "ada", "password": GOOD})
    assert again.get("/admin/users").status_code == 200


def test_signing_out_everywhere_and_a_disabled_account(open_site: Api) -> None:
    ada, elsewhere = signed_up(open_site, "ada"), open_site.open()
    elsewhere.post("/sign-in", json={"handle": "ada", "password": GOOD})
    assert ada.post("/me/sessions/end", headers=HTML).headers["location"] == "/sign-in"
    problem(elsewhere.get("/me"), 401, "not_signed_in")
    with transaction() as database:
        assert database.scalars(select(BrowserSession)).all() == []
    open_site.as_("root", Role.ADMIN).post("/admin/users/ada", json={"disabled": True})
    problem(signed_in(open_site, "ada", GOOD), 403, "account_disabled")


def test_a_way_back_works_once_and_ends_what_was(open_site: Api) -> None:
    ada, admin = signed_up(open_site, "ada"), open_site.as_("root", Role.ADMIN)
    problem(open_site.as_("bob").post("/admin/users/ada/recovery"), 403, "missing_scope")
    first = admin.post("/admin/users/ada/recovery").json()["url"]
    link = admin.post("/admin/users/ada/recovery").json()["url"].removeprefix(open_site.url)
    visitor = open_site.open(**HTML)
    assert told(visitor.get(first.removeprefix(open_site.url)), "unusable_recovery")
    assert "ada" in visitor.get(link).text
    assert ada.get("/me").status_code == 200  # looking at it, as a mail program does, changes nothing
    assert visitor.post(link, data={"password": "short"}).status_code == 422
    assert visitor.post(link, data={"password": OTHER}, headers={"origin": "https://evil.example"}).status_code == 403
    assert visitor.post(link, data={"password": OTHER}).status_code == 303
    assert visitor.get("/me", headers={"accept": "application/json"}).json()["handle"] == "ada"
    problem(ada.get("/me"), 401, "not_signed_in")
    assert told(visitor.post(link, data={"password": GOOD}), "unusable_recovery")
    problem(signed_in(open_site, "ada", GOOD), 401, "wrong_password")
    assert signed_in(open_site, "ada", OTHER).status_code == 200


def test_a_way_back_for_an_administrator_ends_with_the_makers_token(open_site: Api) -> None:
    """A stolen administrator's token would else make one for another administrator, and outlive itself."""
    thief = open_site.as_("root", Role.ADMIN)
    open_site.token("second", Role.ADMIN)
    link = thief.post("/admin/users/second/recovery").json()["url"].removeprefix(open_site.url)
    visitor = open_site.open(**HTML)
    visitor.post(link, data={"password": GOOD})
    numbers = {each["name"]: each["id"] for each in thief.get("/admin/users/root/tokens").json()}
    thief.post(f"/admin/tokens/{numbers['']}/revoke")
    problem(visitor.get("/me", headers={"accept": "application/json"}), 401, "not_signed_in")
    problem(signed_in(open_site, "second", GOOD), 401, "wrong_password")


def test_where_there_are_no_passwords_none_works(open_site: Api, limits: Callable[..., None]) -> None:
    signed_up(open_site, "ada")
    limits(open_signup=True, passwords=False)
    problem(signed_in(open_site, "ada", GOOD), 403, "no_passwords")
    answer = open_site.client.post("/sign-up", json={"handle": "bob", "password": GOOD})
    problem(answer, 403, "no_passwords")
    page = open_site.open(**HTML).get("/sign-in").text
    assert 'name="password"' not in page
    assert 'name="token"' in page


def test_the_last_way_in_stays_and_unlinking_needs_one(open_site: Api) -> None:
    ada = signed_up(open_site, "ada")
    with transaction() as database:
        user = database.scalars(select(User).where(User.handle == "ada")).one()
        database.add(
            Credential(user_id=user.id, kind="provider", issuer="https://id.example", subject="s", label="a@b")
        )
    number = re.search(r"/me/identities/(\d+)/unlink", ada.get("/me/tokens", headers=HTML).text)
    assert number
    assert ada.post(f"/me/identities/{number[1]}/unlink", headers=HTML).status_code == 303
    assert "Nothing there" in ada.post(f"/me/identities/{number[1]}/unlink", headers=HTML).text
