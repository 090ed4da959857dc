"""The database's schema: brings it to the newest revision, and says which one it has."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


def configuration(url: str) -> Config:
    """Alembic's configuration for one database; it writes nothing to the terminal."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    return config


def newest() -> str:
    """The revision that this code needs."""
    head = ScriptDirectory.from_config(configuration("")).get_current_head()
    if head is None:
        raise RuntimeError(f"{MIGRATIONS} holds no revision; the installation is incomplete")
    return head


def current(url: str) -> str | None:
    """The revision of a database; None for an empty one. Raises sqlalchemy.exc.OperationalError when it is unreachable."""
    engine = create_engine(url, poolclass=pool.NullPool, connect_args={"connect_timeout": 5})
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(url: str, revision: str = "head") -> None:
    """Brings a database to a revision, in one transaction; several callers at once wait for one another."""
    command.upgrade(configuration(url), revision)


def downgrade(url: str, revision: str) -> None:
    """Takes a database back. What later revisions added is lost."""
    command.downgrade(configuration(url), revision)
