"""A sign-in on its way to the provider and back, and the account that it ends at.

What binds the way back to the browser that left is a cookie of its own, set when it leaves: without it a state, a code or a
finished sign-in of somebody else is worth nothing, so nobody can be signed in to an attacker's account, or link an attacker's
identity. Each flow's state comes back once; its code is sent with a verifier that only this service knows, and its ID token
carries its nonce.

An identity gets the account that it is linked to; else the account whose address an administrator wrote down, when the provider
has verified that address; else, where that is allowed or an invite says so, a new one. It is never linked to an account by an
address that its owner or a course's staff typed in, and to an administrator's by none.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.limits import address_of
from api.problems import Refusal
from api.provider.github import ISSUER as GITHUB
from api.provider.github import GitHub
from api.provider.openid import OpenId
from api.provider.speaking import Claims, Grant, failed
from api.sign_in import Opened, find_invite, into_course, local_page, new_user, opened, take_invite
from kernelgate.accounts import audit, digest
from kernelgate.credentials import find_recovery, identity_of, link, note_use, use_recovery
from kernelgate.db import transaction
from kernelgate.models import Credential, Invite, ProviderFlow, Role, User, now
from kernelgate.settings import settings

LIFE = timedelta(minutes=10)
CALLBACK = "/sign-in/provider/back"
_MOST_OPEN = 300
"""Sign-ins of one address that left and did not come back yet: a class behind one address, and no more."""


class Leaving(NamedTuple):
    """Where the browser goes, and the cookie that it comes back with."""

    address: str
    cookie: str


class Choice(NamedTuple):
    """What is asked of somebody whose identity is known and whose account is not. linking: the account to be linked to."""

    claims: Claims
    linking: str = ""


@lru_cache(maxsize=4)
def _provider(issuer: str) -> OpenId | GitHub:
    return GitHub() if issuer == GITHUB else OpenId(issuer)


def provider() -> OpenId | GitHub:
    """The provider of the settings. Raises Refusal when there is none."""
    if not settings().oidc_issuer:
        raise Refusal("no_provider", "This service has no provider to sign in with.")
    return _provider(settings().oidc_issuer)


def leave(
    request: Request,
    origin: str,
    identity: Identity | None,
    *,
    onward: str | None,
    invite: str = "",
    recovery: str = "",
) -> Leaving:
    """Begins a sign-in, or the linking of another identity where somebody is signed in."""
    known = provider()
    authorize = known.authorize
    if invite:
        find_invite(invite)
    cookie, state, nonce = (secrets.token_urlsafe(32) for _ in range(3))
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    with transaction() as database:
        _check_open(database, address_of(request))
        database.add(
            ProviderFlow(
                hash=digest(cookie),
                state=state,
                nonce=nonce,
                verifier=verifier,
                onward=local_page(onward),
                invite_hash=digest(invite) if invite else None,
                recovery_hash=digest(recovery) if recovery else None,
                user_id=identity.user_id if identity and not recovery else None,
                address=address_of(request),
                expires_at=now() + LIFE,
            )
        )
    asked = {
        "response_type": "code",
        "client_id": settings().oidc_client_id,
        "redirect_uri": origin + CALLBACK,
        "scope": known.scope,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return Leaving(f"{authorize}{'&' if '?' in authorize else '?'}{urlencode(asked)}", cookie)


def _check_open(database: Session, address: str) -> None:
    database.execute(delete(ProviderFlow).where(ProviderFlow.expires_at <= now()))
    count = database.scalar(select(func.count()).where(ProviderFlow.address == address)) or 0
    if count >= _MOST_OPEN:
        raise Refusal(
            "too_many_sign_ins",
            f"{count} sign-ins from this address were begun within ten minutes and not completed.",
            headers={"Retry-After": str(int(LIFE.total_seconds()))},
        )


def _flow(database: Session, cookie: str) -> ProviderFlow:
    """The browser's own flow. Raises Refusal when it has none, or its time is up."""
    wanted = select(ProviderFlow).where(ProviderFlow.hash == digest(cookie[:200]), ProviderFlow.expires_at > now())
    flow = database.scalars(wanted.with_for_update()).one_or_none()
    if flow is None:
        raise lost()
    return flow


def lost() -> Refusal:
    return Refusal("sign_in_lost", "This browser did not begin the sign-in, or more than ten minutes ago.")


def come_back(request: Request, origin: str, identity: Identity | None, cookie: str) -> tuple[Opened, str] | Choice:
    """What the provider sent the browser back with: a session and the page to go on to, or the choice that is left."""
    asked = request.query_params
    with transaction() as database:
        flow = _flow(database, cookie)
        if not flow.state or not hmac.compare_digest(flow.state.encode(), asked.get("state", "").encode()):
            raise lost()
        flow.state = ""  # whatever comes of it, it comes back once
        grant = Grant(asked.get("code", ""), flow.verifier, flow.nonce, origin + CALLBACK)
    known = provider()
    if (known.names_issuer or "iss" in asked) and asked.get("iss") != known.issuer:
        raise failed(f"the answer is of {asked.get('iss')!r}")
    if "error" in asked or not grant.code:
        raise Refusal("sign_in_lost", "The provider did not sign you in, or you did not let it.")
    claims = known.claims(grant)
    with transaction() as database:
        flow = _flow(database, cookie)
        return _arrive(request, database, flow, claims, identity)


def _arrive(
    request: Request, database: Session, flow: ProviderFlow, claims: Claims, identity: Identity | None
) -> tuple[Opened, str] | Choice:
    known = identity_of(database, claims.issuer, claims.subject)
    if flow.recovery_hash is not None or flow.user_id is not None:
        if known is not None and known.user_id != flow.user_id:
            raise Refusal("identity_taken", f"{claims.label} is how another account signs in.")
    elif known is None:
        known = _by_address(database, claims)
    if known is not None:
        database.delete(flow)
        note_use(database, known)
        return opened(request, database, database.get_one(User, known.user_id), known), flow.onward
    linking = _linking(database, flow, identity)
    if not linking and not _welcome(database, flow, claims):
        raise Refusal("no_account", f"The provider knows you as {claims.label}, and no account here goes with that.")
    flow.identity = claims._asdict()
    return Choice(claims, linking)


def _by_address(database: Session, claims: Claims) -> Credential | None:
    """Links the identity to the account whose address an administrator wrote down, if it is a verified address of it."""
    if not claims.email:
        return None
    user = database.scalars(select(User).where(func.lower(User.email) == claims.email.lower())).one_or_none()
    if user is None or user.role == Role.ADMIN:
        return None
    audit(
        database, user.handle, "credential.link", user.handle, issuer=claims.issuer, identity=claims.label, by="address"
    )
    return link(database, user, claims.issuer, claims.subject, claims.label)


def _linking(database: Session, flow: ProviderFlow, identity: Identity | None) -> str:
    """The handle of the account that the identity is to be linked to: the link's, or that of who was and is signed in."""
    if flow.recovery_hash is not None:
        recovery = find_recovery(database, flow.recovery_hash)
        if recovery is None:
            raise Refusal("unusable_recovery", "The link is unknown, used or over.")
        return database.get_one(User, recovery.user_id).handle
    if flow.user_id is None:
        return ""
    if identity is None or identity.user_id != flow.user_id:
        raise lost()
    return identity.handle


def _invites(database: Session, flow: ProviderFlow, claims: Claims) -> list[Invite]:
    """The invite that it began with, and those of courses for a verified address of the identity."""
    usable = Invite.uses_left > 0, Invite.expires_at > now()
    ways = [Invite.hash == flow.invite_hash] if flow.invite_hash else []
    found = list(database.scalars(select(Invite).where(*ways, *usable))) if ways else []
    if claims.email:
        mailed = func.lower(Invite.email) == claims.email.lower(), Invite.course_id.is_not(None)
        known = {invite.id for invite in found}
        found += [each for each in database.scalars(select(Invite).where(*mailed, *usable)) if each.id not in known]
    return found


def _welcome(database: Session, flow: ProviderFlow, claims: Claims) -> bool:
    return settings().oidc_accounts or settings().open_signup or bool(_invites(database, flow, claims))


def pending(cookie: str) -> Choice | None:
    """The choice that this browser has left, for the page that shows it."""
    with transaction() as database:
        try:
            flow = _flow(database, cookie)
        except Refusal:
            return None
        if flow.identity is None:
            return None
        recovery = find_recovery(database, flow.recovery_hash) if flow.recovery_hash else None
        number = recovery.user_id if recovery else flow.user_id
        user = database.get(User, number) if number else None
        return Choice(Claims(**flow.identity), user.handle if user else "")


def make_account(request: Request, cookie: str, handle: str) -> tuple[Opened, str]:
    """An account of the handle for the identity that came back, with the seats that it was invited to."""
    with transaction() as database:
        flow, claims = _identified(database, cookie)
        if flow.user_id is not None or flow.recovery_hash is not None:
            raise lost()
        invites = _invites(database, flow, claims)
        if not invites and not (settings().oidc_accounts or settings().open_signup):
            raise Refusal("no_account", f"No account here goes with {claims.label}.")
        began = next((each for each in invites if each.hash == flow.invite_hash), None)
        user = new_user(database, handle, Role(began.role) if began else Role.SUBMITTER)
        courses = [into_course(database, user.handle, take_invite(database, each.hash)) for each in invites]
        credential = link(database, user, claims.issuer, claims.subject, claims.label)
        led = next((f"/courses/{course}" for course in courses if course), "/")
        onward = flow.onward if flow.onward != "/" else led
        database.delete(flow)
        return opened(request, database, user, credential), onward


def link_account(request: Request, cookie: str, identity: Identity | None, token_id: int | None) -> tuple[Opened, str]:
    """Links the identity that came back to the account of who is signed in, or of the recovery link it began with."""
    with transaction() as database:
        flow, claims = _identified(database, cookie)
        if flow.recovery_hash is not None:
            used = use_recovery(database, flow.recovery_hash)
            if used is None:
                raise Refusal("unusable_recovery", "The link is unknown, used or over.")
            user, token_id = used
        elif identity is not None and identity.user_id == flow.user_id:
            user = database.get_one(User, identity.user_id)
        else:
            raise lost()
        credential = link(database, user, claims.issuer, claims.subject, claims.label, token_id=token_id)
        audit(database, user.handle, "credential.link", user.handle, issuer=claims.issuer, identity=claims.label)
        onward = flow.onward
        database.delete(flow)
        return opened(request, database, user, credential), onward


def _identified(database: Session, cookie: str) -> tuple[ProviderFlow, Claims]:
    flow = _flow(database, cookie)
    if flow.identity is None:
        raise lost()
    claims = Claims(**flow.identity)
    if identity_of(database, claims.issuer, claims.subject) is not None:
        raise Refusal("identity_taken", f"{claims.label} is how an account signs in already.")
    return flow, claims
