"""`user`, `token` and `invite`: for whoever runs the service. They work on the database itself and need no running server."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kernelgate.cli.exits import Exit, stop

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernelgate.models import User

# Choices as words: the models that define them import the database's library, which `--help` is not to wait for.
ROLES = click.Choice(["submitter", "instructor", "admin"])
SCOPES = click.Choice(["read", "submit", "admin"])


@contextmanager
def database() -> Iterator[Session]:
    """A transaction on the database of KERNELGATE_DATABASE_URL; its failures end the command with a message."""
    from sqlalchemy.exc import OperationalError, ProgrammingError

    from kernelgate.accounts import AccountError
    from kernelgate.db import transaction

    try:
        with transaction() as session:
            yield session
    except AccountError as error:
        stop(Exit.REFUSED, str(error))
    except OperationalError as error:
        stop(Exit.NETWORK, f"the database does not answer: {error.orig}; check KERNELGATE_DATABASE_URL")
    except ProgrammingError as error:
        stop(Exit.FAILED, f"the database has another schema: {error.orig}; run `kernelgate migrate`")


def actor() -> str:
    """Who stands in the audit log for what the command line did."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return f"command line (uid {os.getuid()})"


def named(session: Session, handle: str) -> User:
    from kernelgate.accounts import find_user

    found = find_user(session, handle)
    if found is None:
        stop(Exit.REFUSED, f"there is no account {handle[:60]!r}; see `kernelgate user list`")
    return found


@click.group()
def user() -> None:
    """Make, list and change accounts."""


@user.command("create")
@click.argument("handle")
@click.option("--role", type=ROLES, default="submitter", show_default=True, help="What the account may do.")
def create_user(handle: str, role: str) -> None:
    """Make the account HANDLE. It has no token yet: see `kernelgate token create`."""
    from kernelgate import accounts
    from kernelgate.models import Role

    with database() as session:
        made = accounts.create_user(session, handle, Role(role))
        accounts.audit(session, actor(), "user.create", made.handle, role=role)
    click.echo(f"{made.handle}  {made.role}")


@user.command("list")
def list_users() -> None:
    """List every account: handle, role, when it was made, whether it is disabled."""
    from sqlalchemy import func, select

    from kernelgate.models import User

    with database() as session:
        for each in session.scalars(select(User).order_by(func.lower(User.handle))):
            disabled = "  disabled" if each.disabled_at else ""
            click.echo(f"{each.handle:<39}  {each.role:<10}  {each.created_at:%Y-%m-%d}{disabled}")


@user.command("role")
@click.argument("handle")
@click.argument("role", type=ROLES)
def set_role(handle: str, role: str) -> None:
    """Give the account HANDLE another role."""
    from kernelgate import accounts

    with database() as session:
        found = named(session, handle)
        accounts.audit(session, actor(), "user.role", found.handle, before=found.role, after=role)
        found.role = role
    click.echo(f"{found.handle}  {found.role}")


@user.command("disable")
@click.argument("handle")
def disable(handle: str) -> None:
    """Disable HANDLE: its sessions end, its tokens are refused, it leaves the leaderboards."""
    _set_disabled(handle, True)


@user.command("enable")
@click.argument("handle")
def enable(handle: str) -> None:
    """Enable HANDLE again."""
    _set_disabled(handle, False)


@user.command("rename")
@click.argument("handle")
@click.argument("new")
def rename(handle: str, new: str) -> None:
    """Give HANDLE the handle NEW; everything of the account stays, its tokens too. The audit log keeps the old handle."""
    from kernelgate import accounts

    with database() as session:
        found = named(session, handle)
        before = accounts.rename_user(session, found, new)
        accounts.audit(session, actor(), "user.rename", new, before=before)
    click.echo(f"{before} is {new}")


@user.command("email")
@click.argument("handle")
@click.argument("address", default="")
def email(handle: str, address: str) -> None:
    """Write down HANDLE's ADDRESS: whom the provider says has verified it gets the account. Without one: nobody.

    Administrators link an identity themselves.
    """
    from sqlalchemy import func, select

    from kernelgate import accounts
    from kernelgate.models import User

    with database() as session:
        found = named(session, handle)
        taken = session.scalar(
            select(User.handle).where(func.lower(User.email) == address.lower(), User.id != found.id)
        )
        if address and (taken or address.count("@") != 1):
            stop(Exit.REFUSED, f"{address[:100]!r} is {f'the address of {taken}' if taken else 'no address'}")
        accounts.audit(session, actor(), "user.email", found.handle, before=found.email, after=address)
        found.email = address
    click.echo(f"{found.handle}  {address}".rstrip())


@user.command("recover")
@click.argument("handle")
def recover(handle: str) -> None:
    """Make a link with which the owner of HANDLE sets a new password, and print it, this once. It works once, for two days."""
    from kernelgate import accounts
    from kernelgate.credentials import create_recovery
    from kernelgate.settings import settings

    with database() as session:
        found = named(session, handle)
        secret = create_recovery(session, found)
        accounts.audit(session, actor(), "recovery.create", found.handle)
    base = settings().public_url or f"http://{settings().host}:{settings().port}"
    click.echo(f"{base.rstrip('/')}/recover/{secret}")


@user.command("merge")
@click.argument("handle")
@click.argument("into")
def merge(handle: str, into: str) -> None:
    """Move everything of HANDLE to INTO and delete HANDLE, whose tokens end.

    Submissions with their results, seats in courses, extensions and points by hand; where both have one, INTO keeps its own.
    Refused while a submission of HANDLE is queued or running.
    """
    from kernelgate import accounts

    with database() as session:
        moved = accounts.merge_users(session, named(session, handle), named(session, into))
        accounts.audit(session, actor(), "user.merge", into, merged=handle, submissions=moved)
    click.echo(f"{moved} submissions of {handle} are {into}'s")


@user.command("delete")
@click.argument("handle")
@click.confirmation_option(
    help="Do not ask.", prompt="All submissions and results of the account go with it. Delete it?"
)
def delete_user(handle: str) -> None:
    """Delete HANDLE with everything it has: submissions, results, tokens, seats in courses. The audit log stays.

    For good; `kernelgate user disable` ends what somebody may do and keeps what they did. Refused while a submission of HANDLE
    is queued or running.
    """
    from kernelgate import accounts

    with database() as session:
        gone = accounts.delete_user(session, named(session, handle))
        accounts.audit(session, actor(), "user.delete", handle, submissions=gone)
    click.echo(f"{handle} is gone, with {gone} submissions")


def _set_disabled(handle: str, disabled: bool) -> None:
    from sqlalchemy import delete

    from kernelgate import accounts, models

    with database() as session:
        found = named(session, handle)
        if (found.disabled_at is not None) != disabled:
            accounts.audit(session, actor(), "user.disable" if disabled else "user.enable", found.handle)
            found.disabled_at = models.now() if disabled else None
            session.execute(delete(models.Session).where(models.Session.user_id == found.id))
    click.echo(f"{found.handle}  {'disabled' if disabled else 'enabled'}")


@click.group()
def token() -> None:
    """Make, list and revoke API tokens."""


@token.command("create")
@click.argument("handle")
@click.option(
    "--scope", "scopes", type=SCOPES, multiple=True, help="May be given several times; default: all of the role."
)
@click.option("--days", type=float, default=None, help="Days it lives; default: the setting KERNELGATE_TOKEN_DAYS.")
@click.option("--name", default="", help="What it is for.")
@click.option("--course", default=None, help="The only course that it is good for, one that HANDLE is in.")
def create_token(handle: str, scopes: tuple[str, ...], days: float | None, name: str, course: str | None) -> None:
    """Make a token for HANDLE and print it, this once."""
    from kernelgate import accounts
    from kernelgate.models import Scope
    from kernelgate.settings import settings

    with database() as session:
        found = named(session, handle)
        made, secret = accounts.create_token(
            session,
            found,
            name=name,
            scopes=[Scope(scope) for scope in scopes] or ([Scope.READ, Scope.SUBMIT] if course else None),
            days=settings().token_days if days is None else days,
            course=course,
        )
        accounts.audit(session, actor(), "token.create", found.handle, token=made.id, scopes=made.scopes)
    click.echo(secret)
    click.echo(
        f"token {made.id} of {found.handle}: {', '.join(made.scopes)}; until {made.expires_at:%Y-%m-%d}", err=True
    )


@token.command("list")
@click.argument("handle")
def list_tokens(handle: str) -> None:
    """List the tokens of HANDLE: number, first characters, scopes, end, name."""
    from sqlalchemy import select

    from kernelgate.models import Token

    with database() as session:
        found = named(session, handle)
        for each in session.scalars(select(Token).where(Token.user_id == found.id).order_by(Token.id)):
            state = "revoked" if each.revoked_at else f"until {each.expires_at:%Y-%m-%d}"
            click.echo(f"{each.id:>6}  {each.hint}…  {','.join(each.scopes):<18}  {state:<16}  {each.name}".rstrip())


@token.command("revoke")
@click.argument("number", type=click.IntRange(1))
def revoke_token(number: int) -> None:
    """Revoke the token with this NUMBER, from `kernelgate token list`, and the tokens made from it."""
    from kernelgate import accounts
    from kernelgate.models import Token

    with database() as session:
        found = session.get(Token, number)
        if found is None:
            stop(Exit.REFUSED, f"there is no token {number}")
        ended = accounts.revoke_token(session, found)
        if ended:
            accounts.audit(session, actor(), "token.revoke", found.user.handle, token=number, ended=ended)
    others = len(ended) - 1
    made = f", and {others} made from it" if others > 0 else ""
    click.echo(f"token {number} of {found.user.handle} is revoked{made}")


@click.group()
def invite() -> None:
    """Invite people."""


@invite.command("create")
@click.option(
    "--role", type=ROLES, default="submitter", show_default=True, help="The role of the accounts made with it."
)
@click.option("--uses", type=int, default=1, show_default=True, help="How many accounts it makes.")
@click.option("--days", type=float, default=7, show_default=True, help="Days it can be used.")
@click.option("--note", default="", help="What it is for.")
def create_invite(role: str, uses: int, days: float, note: str) -> None:
    """Make an invite and print its link, this once. Whoever opens it chooses a handle and has an account."""
    from kernelgate import accounts
    from kernelgate.models import Role
    from kernelgate.settings import settings

    with database() as session:
        made, secret = accounts.create_invite(session, by=None, role=Role(role), uses=uses, days=days, note=note)
        accounts.audit(session, actor(), "invite.create", f"invite {made.id}", role=role, uses=uses)
    base = settings().public_url or f"http://{settings().host}:{settings().port}"
    click.echo(f"{base.rstrip('/')}/invite/{secret}")


commands = [user, token, invite]
