"""`kernelgate up`, `kernelgate migrate` and `kernelgate settings`.

What they use is imported when one of them runs: `kernelgate --help` is not to wait for a database's library.
"""

from __future__ import annotations

import time

import click


@click.command()
def up() -> None:
    """Run everything on this machine: Postgres, broker, API and worker, until Ctrl-C.

    Data is kept in KERNELGATE_DATA_DIR. A database or broker that the environment names is used instead of an embedded one.
    """
    from embedded.errors import EmbeddedError
    from embedded.up import up as run_up
    from kernelgate.settings import Settings

    try:
        # Not settings(): those may come from what an earlier, killed `up` left behind.
        run_up(Settings(), lambda line: click.echo(line))
    except EmbeddedError as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with status 1 unless the schema is the newest.")
@click.option("--wait", "wait_s", default=0.0, metavar="SECONDS", help="How long to wait for the database to answer.")
def migrate(check: bool, wait_s: float) -> None:
    """Bring the database of KERNELGATE_DATABASE_URL to the newest schema."""
    from embedded import schema
    from kernelgate.settings import settings

    url = settings().database_url
    revision = _revision(url, wait_s)
    newest = schema.newest()
    if check:
        if revision != newest:
            raise click.ClickException(
                f"the database is at {revision}, this code needs {newest}; run `kernelgate migrate`"
            )
        click.echo(f"the database is at {revision}, the newest revision")
        return
    schema.upgrade(url)
    click.echo(f"the database is at {newest} (was {revision})" if revision != newest else f"already at {newest}")


def _revision(url: str, wait_s: float) -> str | None:
    from sqlalchemy.exc import OperationalError

    from embedded import schema

    deadline = time.monotonic() + wait_s
    while True:
        try:
            return schema.current(url)
        except OperationalError as error:
            if time.monotonic() >= deadline:
                raise click.ClickException(
                    f"the database does not answer: {error.orig}; check KERNELGATE_DATABASE_URL, or start it"
                ) from error
        time.sleep(0.5)


@click.command("settings")
@click.option(
    "--markdown", is_flag=True, help="Write docs/settings.md instead: every setting, its default and meaning."
)
def settings_command(markdown: bool) -> None:
    """Show the settings in force and where each comes from. Passwords are left out."""
    from embedded.settings_page import in_force
    from embedded.settings_page import markdown as settings_page
    from kernelgate.settings import settings

    click.echo(settings_page() if markdown else in_force(settings()), nl=not markdown)


commands = [up, migrate, settings_command]
