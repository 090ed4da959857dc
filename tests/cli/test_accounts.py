"""Accounts, tokens and invites made on the database, and used on a server."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from kernelgate.cli.exits import Exit
from kernelgate.db import transaction
from kernelgate.models import Audit
from tests.api.conftest import Api, problem
from tests.cli.conftest import Cli


def test_an_account_is_made_listed_and_changed(cli: Cli) -> None:
    assert cli.run("user", "create", "ada").stdout == "ada  submitter\n"
    assert cli.run("user", "create", "root", "--role", "admin").stdout == "root  admin\n"
    assert cli.run("user", "role", "ADA", "instructor").stdout == "ada  instructor\n"
    assert cli.run("user", "disable", "ada").stdout == "ada  disabled\n"
    lines = cli.run("user", "list").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["ada", "instructor"], ["root", "admin"]]
    assert lines[0].endswith("disabled")
    assert cli.run("user", "enable", "ada").stdout == "ada  enabled\n"
    with transaction() as session:
        actions = session.scalars(select(Audit.action).order_by(Audit.id)).all()
        actors = set(session.scalars(select(Audit.actor)))
    assert actions == ["user.create", "user.create", "user.role", "user.disable", "user.enable"]
    assert all(actor.startswith("command line (") for actor in actors)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("user", "create", "a b"), Exit.REFUSED, "starting with a letter or digit"),
        (("user", "create", "-x"), Exit.USAGE, "No such option"),
        (("user", "create", "ada", "--role", "god"), Exit.USAGE, "'god' is not one of"),
        (("user", "disable", "nobody"), Exit.REFUSED, "kernelgate user list"),
        (("token", "create", "nobody"), Exit.REFUSED, "there is no account 'nobody'"),
        (("token", "revoke", "99"), Exit.REFUSED, "there is no token 99"),
        (("token", "revoke", "x"), Exit.USAGE, "not a valid integer"),
        (("invite", "create", "--uses", "0"), Exit.REFUSED, "uses 0: 1 to 1000"),
        (("invite", "create", "--days", "nan"), Exit.REFUSED, "days nan"),
    ],
)
def test_what_cannot_be_is_refused(cli: Cli, words: tuple[str, ...], status: Exit, said: str) -> None:
    shown = cli.run(*words)
    assert shown.returncode == status
    assert said in shown.stderr


def test_a_taken_handle_and_scopes_beyond_the_role_are_refused(cli: Cli) -> None:
    cli.run("user", "create", "ada")
    assert "is taken" in cli.run("user", "create", "ADA").stderr
    shown = cli.run("token", "create", "ada", "--scope", "admin")
    assert shown.returncode == Exit.REFUSED
    assert "may have ['read', 'submit']" in shown.stderr


def test_a_token_is_printed_once_works_and_is_revoked(api: Api, cli: Cli) -> None:
    cli.run("user", "create", "ada")
    shown = cli.run("token", "create", "ada", "--scope", "read", "--days", "3", "--name", "laptop")
    token = shown.stdout.strip()
    client = api.open(Authorization=f"Bearer {token}")
    assert client.get("/me").json()["scopes"] == ["read"]
    listed = cli.run("token", "list", "ada").stdout
    assert token not in listed
    assert "laptop" in listed
    cli.run("token", "revoke", listed.split()[0])
    problem(client.get("/me"), 401, "revoked_token")
    assert "revoked" in cli.run("token", "list", "ada").stdout


def test_an_invites_link_makes_an_account(api: Api, cli: Cli) -> None:
    link = cli.run("invite", "create", "--role", "instructor", KERNELGATE_PUBLIC_URL=api.url).stdout.strip()
    assert link.startswith(f"{api.url}/invite/kgi_")
    answer = api.client.post(link, json={"handle": "ada"})
    assert answer.status_code == 201
    assert answer.json()["role"] == "instructor"


def test_a_database_that_is_away_or_empty_is_said(cli: Cli, empty_database: str) -> None:
    shown = cli.run("user", "list", KERNELGATE_DATABASE_URL="postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert shown.returncode == Exit.NETWORK
    assert "check KERNELGATE_DATABASE_URL" in shown.stderr
    shown = cli.run("user", "list", KERNELGATE_DATABASE_URL=empty_database)
    assert shown.returncode == Exit.FAILED
    assert "kernelgate migrate" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_accounts_are_renamed_merged_and_deleted(cli: Cli) -> None:
    for handle in ("ada", "ada2", "bob"):
        assert cli.run("user", "create", handle).returncode == 0
    assert cli.run("user", "rename", "ada", "lovelace").stdout == "ada is lovelace\n"
    assert cli.run("user", "merge", "ada2", "lovelace").stdout == "0 submissions of ada2 are lovelace's\n"
    assert cli.run("user", "merge", "bob", "bob").returncode == Exit.REFUSED
    assert cli.run("user", "delete", "bob", input="n\n").returncode == 1
    assert cli.run("user", "delete", "bob", "--yes").stdout == "bob is gone, with 0 submissions\n"
    assert [line.split()[0] for line in cli.run("user", "list").stdout.splitlines()] == ["lovelace"]
