"""What administrators look up: accounts, invites, the audit log; and making an invite."""

from __future__ import annotations

from fastapi import Request
from sqlalchemy import func, select

from api.administration import submission_counts, user_view
from api.auth import Identity
from api.paging import next_address
from api.schemas import AuditPage, AuditView, InviteBody, InviteView, NewInvite, UserPage
from api.views import base_url
from kernelgate.accounts import audit, create_invite
from kernelgate.db import transaction
from kernelgate.models import Audit, Invite, User, now


def users_page(request: Request, *, search: str | None, limit: int, after: str | None) -> UserPage:
    """Accounts by handle; `search`: part of one; `after`: only later ones."""
    key = func.lower(User.handle)
    wanted = select(User).order_by(key).limit(limit + 1)
    if search:
        wanted = wanted.where(key.contains(search.lower(), autoescape=True))
    if after:
        wanted = wanted.where(key > after.lower())
    with transaction() as database:
        users = database.scalars(wanted).all()
        counts = submission_counts(database, [user.id for user in users])
    items = [user_view(user, counts.get(user.id, 0)) for user in users[:limit]]
    more = len(users) > limit
    return UserPage(items=items, next=next_address(request, after=items[-1].handle) if more else None)


def usable_invites() -> list[InviteView]:
    """Newest first."""
    usable = select(Invite).where(Invite.uses_left > 0, Invite.expires_at > now()).order_by(Invite.id.desc())
    with transaction() as database:
        return [invite_view(invite) for invite in database.scalars(usable)]


def invite_view(invite: Invite) -> InviteView:
    return InviteView.model_validate({name: getattr(invite, name) for name in InviteView.model_fields})


def make_invite(request: Request, admin: Identity, body: InviteBody) -> NewInvite:
    """An invite and its link."""
    with transaction() as database:
        by = database.get_one(User, admin.user_id)
        invite, secret = create_invite(database, by=by, role=body.role, uses=body.uses, days=body.days, note=body.note)
        database.refresh(invite)
        audit(database, admin.handle, "invite.create", f"invite {invite.id}", role=str(body.role), uses=body.uses)
        url = f"{base_url(request)}/invite/{secret}"
        return NewInvite.model_validate({**invite_view(invite).model_dump(), "url": url})


def audit_page(request: Request, *, limit: int, before: int | None) -> AuditPage:
    """Newest first; `before`: only lines before this one."""
    wanted = select(Audit).order_by(Audit.id.desc()).limit(limit + 1)
    with transaction() as database:
        rows = database.scalars(wanted if before is None else wanted.where(Audit.id < before)).all()
    names = AuditView.model_fields
    items = [AuditView.model_validate({name: getattr(row, name) for name in names}) for row in rows[:limit]]
    return AuditPage(items=items, next=next_address(request, before=items[-1].id) if len(rows) > limit else None)
