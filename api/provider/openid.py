"""An OpenID Connect provider: what it publishes about itself, and its ID token, checked before anything of it is believed.

The token comes straight from the provider over TLS; its signature is checked all the same, by an asymmetric algorithm alone:
with a symmetric one, or none, whoever knows the public key or nothing could sign.
"""

from __future__ import annotations

import hmac
import threading
import time
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from api.provider.speaking import Claims, Grant, failed, fetched
from kernelgate.settings import settings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
SCOPE = "openid email profile"
_KEPT_S = 3600.0
_KEYS_AGAIN_S = 30.0
_LEEWAY_S = 60
_OLDEST_S = 600


class Published(NamedTuple):
    """What a provider says about itself: where people and codes go, and how this service shows who it is."""

    authorize: str
    token: str
    keys: str
    about: str
    basic: bool
    names_issuer: bool


class OpenId:
    """The provider of the settings. One instance a process: what it publishes is kept for an hour."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._lock = threading.Lock()
        self._published: tuple[float, Published] | None = None
        self._keys: tuple[float, KeySet] | None = None

    @property
    def authorize(self) -> str:
        return self.published().authorize

    @property
    def scope(self) -> str:
        return SCOPE

    @property
    def names_issuer(self) -> bool:
        """Whether what comes back must name the issuer (RFC 9207): another provider's answer is then told apart."""
        return self.published().names_issuer

    def published(self) -> Published:
        with self._lock:
            if self._published is None or self._published[0] < time.monotonic() - _KEPT_S:
                self._published = (time.monotonic(), self._discover())
            return self._published[1]

    def _discover(self) -> Published:
        said = fetched("GET", self.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if not isinstance(said, dict) or said.get("issuer") != self.issuer:
            raise failed(f"{self.issuer} publishes another issuer: {str(said)[:100]}")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
        authorize, token, keys, about = (str(said.get(name) or "") for name in names)
        methods = said.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        named = said.get("authorization_response_iss_parameter_supported") is True
        return Published(authorize, token, keys, about, "client_secret_basic" in methods, named)

    def claims(self, grant: Grant) -> Claims:
        """Who the code stands for. Raises Refusal unless the provider says so in an ID token made for this sign-in."""
        published, values = self.published(), settings()
        secret = values.oidc_client_secret.get_secret_value()
        form = {
            "grant_type": "authorization_code",
            "code": grant.code,
            "redirect_uri": grant.redirect,
            "code_verifier": grant.verifier,
        }
        basic = (_encoded(values.oidc_client_id), _encoded(secret)) if secret and published.basic else None
        if basic is None:
            form |= {"client_id": values.oidc_client_id} | ({"client_secret": secret} if secret else {})
        said = fetched("POST", published.token, form=form, basic=basic)
        token = said.get("id_token") if isinstance(said, dict) else None
        if not isinstance(token, str):
            raise failed("the token endpoint gave no ID token")
        believed = self._believed(self._verified(token), grant.nonce)
        if "email" not in believed and published.about and isinstance(said.get("access_token"), str):
            believed = {**self._more(published.about, said["access_token"], believed["sub"]), **believed}
        return _claims(self.issuer, believed)

    def _more(self, address: str, access_token: str, subject: str) -> dict[str, Any]:
        """What the provider says at its userinfo endpoint, where the ID token has no address. It must be of the same person."""
        said = fetched("GET", address, headers={"Authorization": f"Bearer {access_token}"})
        if not isinstance(said, dict) or said.get("sub") != subject:
            raise failed("the userinfo endpoint speaks of somebody else")
        return said

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            try:
                found = jwt.decode(token, self._key_set(0), algorithms=[*ALGORITHMS])
            except (JoseError, ValueError):
                # The provider may have changed its keys since they were fetched.
                found = jwt.decode(token, self._key_set(_KEYS_AGAIN_S), algorithms=[*ALGORITHMS])
        except (JoseError, ValueError) as error:
            raise failed(f"the ID token does not verify: {error!r}") from error
        return dict(found.claims)

    def _key_set(self, newer_than: float) -> KeySet:
        """The provider's keys, fetched again when older than an hour, or than `newer_than` seconds unless that is 0."""
        with self._lock:
            oldest = time.monotonic() - (newer_than or _KEPT_S)
            fresh = self._keys is not None and self._keys[0] >= oldest
        if not fresh:
            address = self.published().keys
            try:
                keys = KeySet.import_key_set(fetched("GET", address))
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise failed(f"{address} has no keys: {error!r}") from error
            with self._lock:
                self._keys = (time.monotonic(), keys)
        assert self._keys is not None  # noqa: S101 - set above
        return self._keys[1]

    def _believed(self, said: dict[str, Any], nonce: str) -> dict[str, Any]:
        """Raises Refusal for a token of another issuer, client, sign-in or time (OpenID Connect Core, 3.1.3.7)."""
        client, moment = settings().oidc_client_id, time.time()
        audience = said.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        subject = said.get("sub")
        if said.get("iss") != self.issuer:
            raise failed(f"the ID token is of {said.get('iss')!r}")
        if client not in audiences or ((len(audiences) > 1 or "azp" in said) and said.get("azp") != client):
            raise failed(f"the ID token is for {audience!r}")
        if not _number(said.get("exp")) or said["exp"] < moment - _LEEWAY_S:
            raise failed("the ID token is over")
        if not _number(said.get("iat")) or not -_OLDEST_S < said["iat"] - moment < _LEEWAY_S:
            raise failed("the ID token was not made just now")
        if not hmac.compare_digest(str(said.get("nonce", "")).encode(), nonce.encode()):
            raise failed("the ID token was made for another sign-in")
        if not isinstance(subject, str) or not 0 < len(subject) <= 255:
            raise failed("the ID token names nobody")
        return said


def _claims(issuer: str, said: dict[str, Any]) -> Claims:
    """An address counts when the provider says that it is verified: some send the word in place of the truth value."""
    verified = said.get("email_verified") in (True, "true")
    email = said.get("email") if verified else ""
    name = said.get("preferred_username") or said.get("name") or ""
    return Claims(issuer, said["sub"], email if isinstance(email, str) else "", str(name)[:100])


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _encoded(text: str) -> str:
    """RFC 6749, 2.3.1: both parts are form-encoded before they are joined."""
    return quote_plus(text)
