"""The migrated schema equals the models, and every revision can be taken back.

Alembic's own comparison sees neither check constraints nor expression indexes, so Postgres' catalogue is compared as well.
Triggers and views are the migrations' alone; tests/api/test_leaderboard.py shows what they do.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, pool, text

from embedded import schema
from kernelgate.tables import metadata

COLUMNS = """
    SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default
    FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 't'
"""
TRIGGERS = """
    SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function', proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
"""
INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"


def catalogue(url: str, *queries: str) -> set[tuple[object, ...]]:
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        rows = {
            tuple(row) for query in (COLUMNS, CONSTRAINTS, INDEXES, *queries) for row in connection.execute(text(query))
        }
    return {row for row in rows if "alembic_version" not in str(row[0])}


def test_the_migrated_schema_equals_the_models(database: str, empty_database: str) -> None:
    engine = create_engine(empty_database, poolclass=pool.NullPool)
    metadata.create_all(engine)
    migrated, modelled = catalogue(database), catalogue(empty_database)
    assert migrated == modelled
    assert any("ck_users_handle" in row for row in migrated), "the comparison sees check constraints"
    assert any("uq_users_handle_lower" in row for row in migrated), "the comparison sees expression indexes"


def test_alembic_finds_nothing_left_to_generate(database: str) -> None:
    command.check(schema.configuration(database))


def test_every_revision_can_be_taken_back_and_applied_again(empty_database: str) -> None:
    revisions = [found.revision for found in ScriptDirectory(str(schema.MIGRATIONS)).walk_revisions()]
    schema.upgrade(empty_database)
    before = catalogue(empty_database, TRIGGERS)
    for _ in revisions:
        schema.downgrade(empty_database, "-1")
    engine = create_engine(empty_database, poolclass=pool.NullPool)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
    assert schema.current(empty_database) is None
    assert catalogue(empty_database, TRIGGERS) == set(), "something is left"
    schema.upgrade(empty_database)
    assert catalogue(empty_database, TRIGGERS) == before


def test_there_is_one_line_of_revisions(empty_database: str) -> None:
    assert len(ScriptDirectory(str(schema.MIGRATIONS)).get_heads()) == 1
    assert schema.current(empty_database) is None
    schema.upgrade(empty_database)
    assert schema.current(empty_database) == schema.newest()


def test_revisions_are_numbered_files_with_a_way_back() -> None:
    for path in sorted((schema.MIGRATIONS / "versions").glob("*.py")):
        body = path.read_text().partition("def downgrade() -> None:")[2]
        assert body.strip() not in ("", "pass"), f"{Path(path).name} cannot be taken back"
