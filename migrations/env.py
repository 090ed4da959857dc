"""How Alembic reaches the database: one connection, one transaction, one migrator at a time.

Revisions import alembic and sqlalchemy only. They describe the schema as it was when they were written; the models have
moved on since, so a revision that imported them would change its meaning with every later commit.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, pool, text

from kernelgate.settings import settings
from kernelgate.tables import metadata

MIGRATION_LOCK = 0x6B67_6D69
"""Postgres advisory lock: API processes on several machines may all be told to migrate when they start."""


def configured_url() -> str:
    """The database of whoever runs Alembic (`-x url=…` or the attribute "url"), else the one of the settings."""
    stated = context.config.attributes.get("url") or context.get_x_argument(as_dictionary=True).get("url")
    return str(stated or settings().database_url)


def migrate_online() -> None:
    engine = create_engine(configured_url(), poolclass=pool.NullPool)
    with engine.connect() as connection, connection.begin():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
        with context.begin_transaction():
            context.run_migrations()


def write_sql() -> None:
    """`alembic upgrade head --sql`: for databases whose schema only an administrator may change."""
    context.configure(
        url=configured_url(),
        target_metadata=metadata,
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
    )
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    write_sql()
else:
    migrate_online()
