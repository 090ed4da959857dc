"""Limits on what one user or one address may do. Those that count rows hold across processes and against parallel requests."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from fastapi import Request
from sqlalchemy import and_, delete, func, or_, select, text
from sqlalchemy.orm import Session

from api.problems import Refusal
from kernelgate.models import SignInFailure, SignUp, Submission, Token, now
from kernelgate.settings import settings
from kernelgate.verdicts import State, Verdict

_SUBMIT_LOCK = 0x6B67_0001
_SIGN_IN_LOCK = 0x6B67_0002
_SIGN_UP_LOCK = 0x6B67_0004
_PENDING_RETRY_S = 5
_ENDED_TOKENS_KEPT = timedelta(days=30)
SIGN_IN_WINDOW = timedelta(minutes=15)
HOUR = timedelta(hours=1)


def address_of(request: Request) -> str:
    """Whom limits by address count. Whoever has one IPv6 address has all 2^64 of its network, so that network is counted."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:100]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


def lock_user(database: Session, user_id: int) -> None:
    """Until the transaction ends, no other request of this user counts: two at once cannot both be the last one allowed."""
    database.execute(
        text("SELECT pg_advisory_xact_lock(:kind, hashint8(:user))"), {"kind": _SUBMIT_LOCK, "user": user_id}
    )


def check_submit_limits(database: Session, user_id: int, *, run: bool) -> None:
    """Raises Refusal when one more submission, or one more run, is too many: each is counted by itself.

    The caller holds `lock_user`. Our own failures do not count.
    """
    values = settings()
    kind = Submission.trial.is_not(None) if run else Submission.trial.is_(None)
    mine = and_(Submission.user_id == user_id, kind)
    what, at_once = ("runs", values.run_pending_limit) if run else ("submissions", values.pending_limit)
    unfinished = Submission.state.in_([State.QUEUED, State.RUNNING])
    pending = database.scalar(select(func.count()).select_from(Submission).where(mine, unfinished)) or 0
    if pending >= at_once:
        raise Refusal(
            "too_many_pending",
            f"{pending} {what} are queued or running; {at_once} may be at once.",
            headers={"Retry-After": str(_PENDING_RETRY_S)},
        )
    limit = values.run_hourly_limit if run else values.hourly_limit
    counted = database.scalars(
        select(Submission.created_at)
        .where(
            mine,
            Submission.created_at > now() - HOUR,
            Submission.verdict.is_distinct_from(Verdict.JUDGE_ERROR),
        )
        .order_by(Submission.created_at.desc())
        .limit(limit)
    ).all()
    if len(counted) >= limit:
        raise Refusal(
            "too_many_per_hour",
            f"{limit} {what} were made within 60 minutes, the most there may be.",
            headers=retry_after(counted[-1] + HOUR),
        )


def check_token_limits(database: Session, user_id: int) -> None:
    """Raises Refusal when one more token is too many; the caller holds `lock_tokens`. Tokens that ended long ago are swept."""
    swept, owned = now() - _ENDED_TOKENS_KEPT, Token.user_id == user_id
    database.execute(delete(Token).where(owned, or_(Token.revoked_at < swept, Token.expires_at < swept)))
    live = select(func.count()).where(owned, Token.revoked_at.is_(None), Token.expires_at > now())
    count, limit = database.scalar(live) or 0, settings().token_limit
    if count >= limit:
        raise Refusal("too_many_tokens", f"{count} tokens of this account work already; {limit} may.")
    limit = settings().token_hourly_limit
    made = database.scalars(
        select(Token.created_at)
        .where(owned, Token.created_at > now() - HOUR)
        .order_by(Token.created_at.desc())
        .limit(limit)
    ).all()
    if len(made) >= limit:
        raise Refusal(
            "too_many_tokens_per_hour",
            f"{limit} tokens were made for this account within 60 minutes, the most there may be.",
            headers=retry_after(made[-1] + HOUR),
        )


def retry_after(moment: datetime) -> dict[str, str]:
    return {"Retry-After": str(max(math.ceil((moment - now()).total_seconds()), 1))}


def count_sign_up(database: Session, address: str) -> None:
    """Counts a new account of an address. Raises Refusal when it has too many; one whose handle is refused does not count."""
    _lock_address(database, _SIGN_UP_LOCK, address)
    database.execute(delete(SignUp).where(SignUp.at < now() - HOUR))
    limit = settings().sign_up_limit
    made = database.scalars(
        select(SignUp.at).where(SignUp.address == address).order_by(SignUp.at.desc()).limit(limit)
    ).all()
    if len(made) >= limit:
        raise Refusal(
            "too_many_sign_ups",
            f"{limit} accounts were made from this address within 60 minutes, the most there may be.",
            headers=retry_after(made[-1] + HOUR),
        )
    database.add(SignUp(address=address))


def _lock_address(database: Session, kind: int, address: str) -> None:
    """Holds the address until the transaction ends: two at once cannot both be the last one allowed."""
    database.execute(
        text("SELECT pg_advisory_xact_lock(:kind, hashtext(:address))"), {"kind": kind, "address": address}
    )


def check_sign_in_limit(database: Session, address: str) -> None:
    """Raises Refusal after too many failures from one address. Holds the address until the transaction ends."""
    _lock_address(database, _SIGN_IN_LOCK, address)
    failures = database.scalars(
        select(SignInFailure.at)
        .where(SignInFailure.address == address, SignInFailure.at > now() - SIGN_IN_WINDOW)
        .order_by(SignInFailure.at.desc())
        .limit(settings().sign_in_limit)
    ).all()
    if len(failures) >= settings().sign_in_limit:
        raise Refusal(
            "too_many_sign_ins",
            f"{len(failures)} sign-ins from this address failed within 15 minutes.",
            headers=retry_after(failures[-1] + SIGN_IN_WINDOW),
        )


def check_guessing_limit(database: Session, account: str) -> None:
    """Raises Refusal after too many wrong passwords for one account, from whatever addresses. Its owner still gets in with a
    token or the provider. Five times what one address may: who shares one with others is not kept out by them."""
    limit = 5 * settings().sign_in_limit
    recent = select(func.count()).where(SignInFailure.address == account, SignInFailure.at > now() - SIGN_IN_WINDOW)
    if (database.scalar(recent) or 0) >= limit:
        raise Refusal(
            "too_many_sign_ins",
            f"{limit} sign-ins with this handle failed within 15 minutes.",
            headers={"Retry-After": str(int(SIGN_IN_WINDOW.total_seconds()))},
        )


def record_sign_in_failure(database: Session, address: str) -> None:
    database.execute(delete(SignInFailure).where(SignInFailure.at < now() - SIGN_IN_WINDOW))
    database.add(SignInFailure(address=address))


class Streams:
    """Open event streams by who holds them, within this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def take(self, holder: str) -> None:
        """Raises Refusal when `holder` has as many as settings allow; else the caller must `give` it back."""
        limit = settings().streams_per_user
        with self._lock:
            if self._open[holder] >= limit:
                raise Refusal(
                    "too_many_streams", f"{limit} event streams are open already.", headers={"Retry-After": "10"}
                )
            self._open[holder] += 1

    def give(self, holder: str) -> None:
        with self._lock:
            self._open[holder] -= 1
            if self._open[holder] <= 0:
                del self._open[holder]

    @contextmanager
    def held(self, holder: str) -> Iterator[None]:
        self.take(holder)
        try:
            yield
        finally:
            self.give(holder)

    @property
    def total(self) -> int:
        with self._lock:
            return self._open.total()
