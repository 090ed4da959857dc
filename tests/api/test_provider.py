"""Signing in with a real OpenID Connect provider, and what somebody who is not that person tries."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlencode

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from sqlalchemy import select, update

from api.problems import Refusal
from api.provider import flows
from api.provider.github import GitHub
from api.provider.openid import OpenId
from api.provider.speaking import Grant
from kernelgate.accounts import create_invite, find_user
from kernelgate.db import transaction
from kernelgate.models import Credential, Invite, ProviderFlow, Role, now
from kernelgate.settings import settings
from tests.api.conftest import Api
from tests.api.provider import CLIENT, Person, asked, serving, told

Limits = Callable[..., None]
JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture
def site(api: Api, limits: Limits, issuer: str) -> Api:
    """The service with the provider; it makes accounts for those who are invited or known, and for nobody else."""
    configure(limits, issuer)
    return api


def configure(limits: Limits, issuer: str, **more: object) -> None:
    limits(
        oidc_issuer=issuer, oidc_client_id=CLIENT[0], oidc_client_secret=CLIENT[1], oidc_name="the university", **more
    )


def test_a_new_person_chooses_a_handle_and_comes_back_as_the_same(site: Api, limits: Limits, issuer: str) -> None:
    configure(limits, issuer, oidc_accounts=True)
    ada = Person(site)
    page = ada.sign_in("ada", next="/stages/double")
    assert page.url.path == "/sign-in/provider/choose"
    assert "ada@uni.example" in page.text
    assert 'value="ada"' in page.text
    assert ada.handle is None
    assert ada.choose(handle="lovelace").url.path == "/stages/double"
    assert ada.handle == "lovelace"
    again = Person(site)
    assert again.sign_in("ada", next="/leaderboard").url.path == "/leaderboard"
    assert again.handle == "lovelace"
    assert "code=" not in str(page.url)


def test_who_is_not_invited_gets_no_account(site: Api) -> None:
    eve = Person(site)
    assert told(eve.sign_in("eve"), "no_account")
    assert told(eve.choose(handle="eve"), "sign_in_lost")
    with transaction() as database:
        assert find_user(database, "eve") is None


def test_an_invite_is_accepted_with_an_identity_once(site: Api) -> None:
    with transaction() as database:
        _, secret = create_invite(database, by=None, role=Role.INSTRUCTOR)
    first, second = Person(site), Person(site)
    assert first.sign_in("ines", invite=secret).url.path == "/sign-in/provider/choose"
    assert second.sign_in("ivan", invite=secret).url.path == "/sign-in/provider/choose"
    first.choose(handle="ines")
    assert first.handle == "ines"
    assert told(second.choose(handle="ivan"), "no_account")
    with transaction() as database:
        ines = find_user(database, "ines")
        assert ines is not None
        assert ines.role == Role.INSTRUCTOR
        assert find_user(database, "ivan") is None


@pytest.mark.parametrize(("name", "linked"), [("grace", True), ("GRACE", True), ("unverified-grace", False)])
def test_a_verified_address_that_an_administrator_wrote_down_links(site: Api, name: str, linked: bool) -> None:
    admin = site.as_("root", Role.ADMIN)
    site.token("hopper")
    assert admin.post("/admin/users/hopper", json={"email": "grace@uni.example"}).json()["email"] == "grace@uni.example"
    person = Person(site)
    person.sign_in(name)
    assert person.handle == ("hopper" if linked else None)


def test_an_administrators_account_is_linked_by_no_address(site: Api) -> None:
    """Otherwise whoever had an administrator's token for a minute would write his own address down, and stay."""
    admin = site.as_("root", Role.ADMIN)
    admin.post("/admin/users/root", json={"email": "mallory@uni.example"})
    person = Person(site)
    assert told(person.sign_in("mallory"), "no_account")


def test_an_address_in_a_courses_list_links_no_account(site: Api) -> None:
    """A course's staff types those: one of them would else write his own beside a student and become that student."""
    admin, victim = site.as_("root", Role.ADMIN), site.as_("victim")
    admin.post("/courses", json={"name": "gpu", "title": "GPU"})
    with transaction() as database:
        invite = Invite(hash=b"x", role=Role.SUBMITTER, uses_left=0, expires_at=now(), email="staff@uni.example")
        database.add(invite)
    admin.post("/courses/gpu/members", json={"text": "victim"})
    assert victim.get("/me").status_code == 200
    person = Person(site)
    assert told(person.sign_in("staff"), "no_account")


def test_who_is_signed_in_links_an_identity_by_a_form_of_this_site(site: Api) -> None:
    person = Person(site)
    person.here.post("/sign-in", data={"token": site.token("ada")})
    page = person.sign_in("ada-at-the-university", next="/me/tokens")
    assert "signs in to <b>ada</b>" in page.text
    csrf = person.here.get("/me", headers=JSON).json()["csrf_token"]
    assert told(person.choose(), "csrf_failed")
    assert person.choose(csrf_token=csrf).url.path == "/me/tokens"
    other = Person(site)
    other.sign_in("ada-at-the-university")
    assert other.handle == "ada"


def test_an_identity_belongs_to_one_account(site: Api, limits: Limits, issuer: str) -> None:
    configure(limits, issuer, oidc_accounts=True)
    first = Person(site)
    first.sign_in("one")
    first.choose(handle="one")
    second = Person(site)
    second.here.post("/sign-in", data={"token": site.token("two")})
    assert told(second.sign_in("one"), "identity_taken")


def test_an_identity_that_a_stolen_token_linked_ends_with_the_token(site: Api) -> None:
    token = site.token("ada")
    thief = Person(site)
    thief.here.post("/sign-in", data={"token": token})
    thief.sign_in("thief")
    thief.choose(csrf_token=thief.here.get("/me", headers=JSON).json()["csrf_token"])
    assert thief.handle == "ada"
    owner = site.open(Authorization=f"Bearer {token}")
    owner.post(f"/me/tokens/{owner.get('/me/tokens').json()[-1]['id']}/revoke")
    assert thief.handle is None
    assert told(thief.sign_in("thief"), "no_account")


# ------------------------------------------------------------------------------------- the way back, by somebody else


def test_nobody_is_signed_in_by_a_link_that_an_attacker_got_for_himself(site: Api, limits: Limits, issuer: str) -> None:
    """Login CSRF: the victim would work in the attacker's account."""
    configure(limits, issuer, oidc_accounts=True)
    attacker, victim = Person(site), Person(site)
    back = attacker.authenticate(attacker.leave(), "mallory")
    assert told(victim.arrive(back), "sign_in_lost")
    own = victim.leave()
    swapped = httpx.URL(str(back)).copy_set_param("state", asked(own)["state"])
    assert told(victim.arrive(swapped), "provider_failed")
    assert victim.handle is None


def test_a_code_of_another_sign_in_is_refused_by_nonce_and_verifier(site: Api, limits: Limits, issuer: str) -> None:
    """Code injection: a stolen code in one's own sign-in."""
    configure(limits, issuer, oidc_accounts=True)
    victim, attacker = Person(site), Person(site)
    stolen = asked(victim.authenticate(victim.leave(), "victim"))["code"]
    mine = attacker.authenticate(attacker.leave(), "attacker")
    assert told(attacker.arrive(mine.copy_set_param("code", stolen)), "provider_failed")
    assert attacker.handle is None


def test_a_way_back_works_once(site: Api, limits: Limits, issuer: str) -> None:
    configure(limits, issuer, oidc_accounts=True)
    person = Person(site)
    back = person.authenticate(person.leave(), "ada")
    person.arrive(back)
    assert told(person.arrive(back), "sign_in_lost")


def test_an_answer_of_another_issuer_is_refused(site: Api) -> None:
    person = Person(site)
    back = person.authenticate(person.leave(), "ada")
    assert told(person.arrive(back.copy_set_param("iss", "https://evil.example")), "provider_failed")
    again = person.authenticate(person.leave(), "ada")
    assert told(person.arrive(again.copy_remove_param("iss")), "provider_failed")


def test_a_sign_in_that_took_too_long_or_was_denied_says_so(site: Api) -> None:
    person = Person(site)
    back = person.authenticate(person.leave(), "ada")
    with transaction() as database:
        database.execute(update(ProviderFlow).values(expires_at=now()))
    assert told(person.arrive(back), "sign_in_lost")
    query = {"state": asked(person.leave())["state"], "error": "access_denied"}
    assert told(person.here.get(f"/sign-in/provider/back?{urlencode(query)}"), "provider_failed")


def test_after_signing_in_one_stays_on_this_site(site: Api, limits: Limits, issuer: str) -> None:
    configure(limits, issuer, oidc_accounts=True)
    for number, onward in enumerate(("https://evil.example/", "//evil.example", "/\\evil.example")):
        person = Person(site)
        person.sign_in(f"p{number}", next=onward)
        assert person.choose(handle=f"p{number}").url.host == "127.0.0.1"


def test_another_site_cannot_begin_a_sign_in(site: Api) -> None:
    answer = site.open(**{"sec-fetch-site": "cross-site", "accept": "text/html"}).get("/sign-in/provider")
    assert told(answer, "cross_site")


def test_a_session_id_from_before_is_not_kept(site: Api, limits: Limits, issuer: str) -> None:
    configure(limits, issuer, oidc_accounts=True)
    person = Person(site)
    person.here.cookies.set("kernelgate", "planted")
    person.sign_in("ada")
    person.choose(handle="ada")
    assert person.here.cookies.get("kernelgate", domain="127.0.0.1") != "planted"
    assert person.handle == "ada"


def test_sign_ins_that_do_not_come_back_are_limited_by_address(site: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_MOST_OPEN", 2)
    person = Person(site)
    person.leave()
    person.leave()
    assert person.here.get("/sign-in/provider").status_code == 429


def test_without_a_provider_there_is_no_way_to_one(api: Api) -> None:
    page = api.open(accept="text/html").get("/sign-in/provider")
    assert told(page, "no_provider")


# --------------------------------------------------------------------- ID tokens that the provider did not make like this


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


class Liar(BaseHTTPRequestHandler):
    """A provider whose ID token is whatever a test puts there; real ones cannot be made to lie."""

    answers: ClassVar[dict[str, Any]] = {}

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.dumps(self.answers.get(self.path.split("?")[0], {})).encode()
        self.send_response(200 if self.path in self.answers else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - the names that the library asks for

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def liar(key: RSAKey, limits: Limits) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    address = f"http://127.0.0.1:{server.server_port}"
    Liar.answers = {
        "/.well-known/openid-configuration": {
            "issuer": address,
            "authorization_endpoint": f"{address}/auth",
            "token_endpoint": f"{address}/token",
            "jwks_uri": f"{address}/keys",
        },
        "/keys": {"keys": [key.as_dict(private=False)]},
    }
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    configure(limits, address)
    yield address
    server.shutdown()
    server.server_close()


def claims_of(address: str, **changes: object) -> dict[str, Any]:
    moment = int(time.time())
    honest = {"iss": address, "aud": "kernelgate", "sub": "s", "exp": moment + 60, "iat": moment, "nonce": "n"}
    return {name: value for name, value in {**honest, **changes}.items() if value is not None}


def exchanged(address: str, token: str) -> Any:
    Liar.answers["/token"] = {"id_token": token}
    return OpenId(address).claims(Grant("code", "verifier", "n", "http://127.0.0.1/back"))


def test_an_honest_token_is_believed_and_its_address_only_when_verified(liar: str, key: RSAKey) -> None:
    for verified, email in ((True, "a@b.example"), ("true", "a@b.example"), (False, ""), ("false", ""), (None, "")):
        claims = claims_of(liar, email="a@b.example", email_verified=verified)
        found = exchanged(liar, jwt.encode({"alg": "RS256", "kid": "one"}, claims, key))
        assert (found.subject, found.email) == ("s", email)


OF_ANOTHER: tuple[dict[str, object], ...] = (
    {"iss": "https://evil.example"},
    {"aud": "another"},
    {"aud": ["kernelgate", "another"]},
    {"aud": ["kernelgate", "another"], "azp": "another"},
    {"azp": "another"},
    {"aud": None},
    {"exp": 1},
    {"exp": None},
    {"exp": "9999999999"},
    {"iat": 1},
    {"iat": 9999999999},
    {"iat": None},
    {"nonce": "another"},
    {"nonce": None},
    {"sub": None},
    {"sub": ""},
    {"sub": 7},
    {"sub": "s" * 300},
)


def test_a_token_for_another_is_refused(liar: str, key: RSAKey) -> None:
    for changes in OF_ANOTHER:
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims_of(liar, **changes), key)
        with pytest.raises(Refusal, match="could not be used"):
            exchanged(liar, token)


def symmetric(claims: dict[str, Any], secret: bytes) -> str:
    """Signed by HS256; made by hand, for the library refuses a public key as a secret."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "one"}, claims)]
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    mark = base64.urlsafe_b64encode(hmac.digest(secret, signed, "sha256")).rstrip(b"=")
    return (signed + b"." + mark).decode()


def test_a_token_that_anybody_could_sign_is_refused(liar: str, key: RSAKey) -> None:
    """Algorithm confusion: none, the public key as a shared secret, the client's secret, one's own key, a broken signature."""
    claims = claims_of(liar)
    other = RSAKey.generate_key(2048, {"kid": "one"})
    honest = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
    parts = honest.split(".")
    unsigned = "eyJhbGciOiJub25lIn0." + parts[1] + "."
    forged = [
        unsigned,
        symmetric(claims, key.as_pem(private=False)),
        symmetric(claims, CLIENT[1].encode()),
        jwt.encode({"alg": "RS256", "kid": "one"}, claims, other),
        f"{parts[0]}.{parts[1]}.{parts[2][:-8]}AAAAAAAA",
        "",
        "a.b",
    ]
    assert exchanged(liar, honest).subject == "s"
    for token in forged:
        with pytest.raises(Refusal, match="could not be used"):
            exchanged(liar, token)


def test_a_provider_that_changes_its_keys_is_understood(liar: str, key: RSAKey) -> None:
    provider = OpenId(liar)
    grant = Grant("code", "verifier", "n", "http://127.0.0.1/back")
    Liar.answers["/token"] = {"id_token": jwt.encode({"alg": "RS256", "kid": "one"}, claims_of(liar), key)}
    assert provider.claims(grant).subject == "s"
    fresh = RSAKey.generate_key(2048, {"kid": "two"})
    Liar.answers["/keys"] = {"keys": [fresh.as_dict(private=False)]}
    Liar.answers["/token"] = {"id_token": jwt.encode({"alg": "RS256", "kid": "two"}, claims_of(liar), fresh)}
    provider._keys = (time.monotonic() - 31, provider._keys[1]) if provider._keys else None
    assert provider.claims(grant).subject == "s"


def test_github_is_asked_who_it_is_and_only_a_verified_first_address_counts(liar: str) -> None:
    """No GitHub runs here: the answers are those of its documentation."""
    Liar.answers |= {
        "/login/oauth/access_token": {"access_token": "t", "token_type": "bearer"},
        "/user": {"id": 583231, "login": "octocat"},
        "/user/emails": [
            {"email": "old@b.example", "verified": True, "primary": False},
            {"email": "octo@b.example", "verified": True, "primary": True},
        ],
    }
    github, grant = GitHub(liar, liar), Grant("code", "verifier", "n", "http://127.0.0.1/back")
    assert github.claims(grant) == (liar, "583231", "octo@b.example", "octocat")
    Liar.answers["/user/emails"][1]["verified"] = False
    assert github.claims(grant).email == ""
    Liar.answers["/user"] = {"message": "Bad credentials"}
    with pytest.raises(Refusal, match="could not be used"):
        github.claims(grant)


@pytest.mark.parametrize("issuer", ["http://id.example", "ftp://id.example", "https://id.example?x=1", "id.example"])
def test_an_issuer_that_others_could_answer_for_is_refused_at_start(issuer: str, limits: Limits) -> None:
    limits(oidc_issuer=issuer)
    with pytest.raises(ValueError, match="is no issuer"):
        settings()


def test_credentials_of_a_provider_hold_no_secret(site: Api, limits: Limits, issuer: str) -> None:
    configure(limits, issuer, oidc_accounts=True)
    person = Person(site)
    person.sign_in("ada")
    person.choose(handle="ada")
    with transaction() as database:
        found = database.scalars(select(Credential)).one()
        assert (found.issuer, found.subject, found.secret) == (issuer, "ada", "")
        assert database.scalars(select(ProviderFlow)).all() == []
        number = found.id
    csrf = person.here.get("/me", headers=JSON).json()["csrf_token"]
    gone = person.here.post(f"/me/identities/{number}/unlink", data={"csrf_token": csrf})
    assert told(gone, "last_credential")
