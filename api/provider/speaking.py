"""Requests to the provider: bounded in time and size, never led elsewhere; and who it then says somebody is."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from api.problems import Refusal

log = logging.getLogger(__name__)
_SECONDS = 10.0
_MOST_BYTES = 512 * 1024


class Claims(NamedTuple):
    """Who the provider says somebody is. email: one that it says is verified, else ""; name: what it calls them."""

    issuer: str
    subject: str
    email: str
    name: str

    @property
    def label(self) -> str:
        return self.email or self.name or self.subject


class Grant(NamedTuple):
    """What came back from the provider, and what this service had sent it off with."""

    code: str
    verifier: str
    nonce: str
    redirect: str


def failed(why: str) -> Refusal:
    """The log says why; the visitor can do nothing about it, and it may repeat what an attacker made the provider say."""
    log.warning("signing in with the provider failed: %s", why[:300])
    return Refusal("provider_failed", "The provider's answer could not be used; the service's log says why.")


def fetched(
    method: str,
    address: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    basic: tuple[str, str] | None = None,
) -> Any:
    """The JSON that an address of the provider answers with. Raises Refusal for anything else."""
    parts = urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise failed(f"{address} is not https")
    sent = {"Accept": "application/json", "User-Agent": "kernelgate", **(headers or {})}
    try:
        with (
            httpx.Client(timeout=_SECONDS, follow_redirects=False) as client,
            client.stream(method, address, data=form, headers=sent, auth=basic) as answer,
        ):
            body = bytearray()
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise failed(f"{address} answered with more than {_MOST_BYTES} bytes")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise failed(f"{address}: {error!r}") from error
    if answer.status_code != httpx.codes.OK:
        raise failed(f"{address} answered {answer.status_code}: {bytes(body[:200])!r}")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise failed(f"{address} answered with something other than JSON") from error
