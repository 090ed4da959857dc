"""Keep places, numbers of judgings and named mistakes in the transaction that changes them, and index what lists go by.

A board of a stage with 70,000 submissions took seconds to put together, and every verdict made it again. `places` has what
a board shows: of each person and stage the first accepted submission, the first that is right in every value, and every
accepted one that was timed, the best by GPU model told apart. They are worked out again for one person in one stage whenever
a result or a submission of theirs changes, by the view `placed`: what a place is stands there alone. A verdict that moves
nobody leaves `board_versions.places` as it is. The triggers fire at the commit, when all changes of a transaction are made, so
once for each person and stage is enough: `places_worked_out` remembers by which transaction that was.

The row of `board_versions` is locked first and until the commit, so of two transactions that judge the same person's
submissions the second sees what the first did.

Revision: 0013; follows: 0012.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

# Filters on stage and user_id reach the table through every part of the view, for they are what its windows are parted by.
_GRADED = """
CREATE VIEW graded AS
SELECT s.stage, s.user_id, s.id AS submission_id, s.created_at, s.gpu_model, s.hidden OR s.held IS NOT NULL AS apart,
       r.verdict, r.speedup, r.speedup_low, r.speedup_high,
       count(*) FILTER (WHERE r.verdict <> 'judge_error') OVER (PARTITION BY s.stage, s.user_id ORDER BY s.created_at, s.id)
       AS attempts
FROM submissions s CROSS JOIN LATERAL (
    SELECT verdict, speedup, speedup_low, speedup_high FROM results WHERE submission_id = s.id ORDER BY round DESC LIMIT 1) r
WHERE s.trial IS NULL
"""
_COLUMNS = "submission_id, gpu_model, created_at, attempts, speedup, speedup_low, speedup_high"
_PLACED = f"""
CREATE VIEW placed AS
(SELECT DISTINCT ON (stage, user_id) stage, user_id, 'first' AS kind, {_COLUMNS}
 FROM graded WHERE verdict = 'accepted' AND NOT apart ORDER BY stage, user_id, created_at, submission_id)
UNION ALL
(SELECT DISTINCT ON (stage, user_id) stage, user_id, 'right' AS kind, {_COLUMNS}
 FROM graded WHERE verdict IN ('accepted', 'correct', 'gate_missed') AND NOT apart
 ORDER BY stage, user_id, created_at, submission_id)
UNION ALL
(SELECT stage, user_id,
        CASE row_number() OVER (PARTITION BY stage, user_id, gpu_model ORDER BY speedup DESC, created_at, submission_id)
        WHEN 1 THEN 'best' ELSE 'timed' END AS kind, {_COLUMNS}
 FROM graded WHERE verdict = 'accepted' AND NOT apart AND speedup IS NOT NULL AND gpu_model IS NOT NULL)
"""  # noqa: S608 - put together from constants
# Planned once a connection, and for tables as large as they will be: a plan made while `places` was empty would read all of it.
_WORKED_OUT = """
CREATE FUNCTION work_places_out(of_stage text, of_user bigint) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moved bigint;
BEGIN
    INSERT INTO places_worked_out AS w VALUES (of_stage, of_user, pg_current_xact_id()::text)
    ON CONFLICT (stage, user_id) DO UPDATE SET by = EXCLUDED.by WHERE w.by <> EXCLUDED.by;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH placed_now AS MATERIALIZED (SELECT * FROM placed WHERE stage = of_stage AND user_id = of_user),
    gone AS (
        DELETE FROM places p WHERE stage = of_stage AND user_id = of_user AND NOT EXISTS (
            SELECT FROM placed_now n WHERE n.kind = p.kind AND n.submission_id = p.submission_id)
        RETURNING 1
    ), come AS (
        INSERT INTO places AS p SELECT * FROM placed_now
        ON CONFLICT (stage, user_id, kind, submission_id) DO UPDATE
        SET (gpu_model, created_at, attempts, speedup, speedup_low, speedup_high) = (EXCLUDED.gpu_model, EXCLUDED.created_at,
             EXCLUDED.attempts, EXCLUDED.speedup, EXCLUDED.speedup_low, EXCLUDED.speedup_high)
        WHERE p IS DISTINCT FROM EXCLUDED
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM come) INTO moved;
    IF moved > 0 THEN
        UPDATE board_versions SET places = version WHERE stage = of_stage;
    END IF;
END $$
"""
_COUNTED = """
CREATE FUNCTION count_judgings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO judgings (stage, verdict, count)
    SELECT s.stage, m.verdict, count(*) FROM made m JOIN submissions s ON s.id = m.submission_id
    WHERE s.trial IS NULL OR m.verdict = 'judge_error' GROUP BY s.stage, m.verdict ORDER BY s.stage, m.verdict
    ON CONFLICT (stage, verdict) DO UPDATE SET count = judgings.count + EXCLUDED.count;
    RETURN NULL;
END $$
"""
_CHANGED = """
CREATE OR REPLACE FUNCTION board_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stages text[];
    people bigint[];
    of_stage text;
    of_user bigint;
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        stages := ARRAY[''];
    ELSIF TG_TABLE_NAME = 'submissions' THEN
        stages := CASE TG_OP WHEN 'DELETE' THEN ARRAY[OLD.stage] ELSE ARRAY[OLD.stage, NEW.stage] END;
        people := CASE TG_OP WHEN 'DELETE' THEN ARRAY[OLD.user_id] ELSE ARRAY[OLD.user_id, NEW.user_id] END;
    ELSE
        SELECT array_agg(stage), array_agg(user_id) INTO stages, people FROM submissions
        WHERE id = CASE TG_OP WHEN 'DELETE' THEN OLD.submission_id ELSE NEW.submission_id END;
    END IF;
    INSERT INTO board_versions (stage, version)
    SELECT DISTINCT stage, pg_current_xact_id()::text || ' ' || now()::text
    FROM unnest(coalesce(stages, ARRAY[''])) AS stage ORDER BY stage
    ON CONFLICT (stage) DO UPDATE SET version = EXCLUDED.version WHERE board_versions.version <> EXCLUDED.version;
    IF people IS NULL THEN
        UPDATE board_versions SET places = version WHERE stage = '';
    END IF;
    FOR of_stage, of_user IN SELECT DISTINCT s, p FROM unnest(stages) AS s, unnest(people) AS p ORDER BY s, p LOOP
        PERFORM work_places_out(of_stage, of_user);
    END LOOP;
    RETURN NULL;
END $$
"""
_BEFORE = """
CREATE OR REPLACE FUNCTION board_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stages text[];
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        stages := ARRAY[''];
    ELSIF TG_TABLE_NAME = 'submissions' THEN
        stages := CASE TG_OP WHEN 'DELETE' THEN ARRAY[OLD.stage] ELSE ARRAY[OLD.stage, NEW.stage] END;
    ELSE
        SELECT array_agg(stage) INTO stages FROM submissions
        WHERE id = CASE TG_OP WHEN 'DELETE' THEN OLD.submission_id ELSE NEW.submission_id END;
    END IF;
    INSERT INTO board_versions (stage, version)
    SELECT DISTINCT stage, pg_current_xact_id()::text || ' ' || now()::text
    FROM unnest(coalesce(stages, ARRAY[''])) AS stage ORDER BY stage
    ON CONFLICT (stage) DO UPDATE SET version = EXCLUDED.version WHERE board_versions.version <> EXCLUDED.version;
    RETURN NULL;
END $$
"""
_INDEXES = {
    "ix_submissions_stage_verdict_user": ("stage, verdict, user_id", "verdict IS NOT NULL"),
    "ix_submissions_stage_mistake_user": ("stage, mistake, user_id", "mistake IS NOT NULL"),
    "ix_submissions_created": ("created_at, id", "trial IS NULL"),
    "ix_submissions_stage_created": ("stage, created_at, id", "trial IS NULL"),
    "ix_submissions_verdict_created": ("verdict, created_at, id", "trial IS NULL"),
    "ix_submissions_stage_user_created": ("stage, user_id, created_at, id", "trial IS NULL"),
    "ix_submissions_open": ("queue, state", "state IN ('queued', 'running')"),
    "ix_submissions_apart": ("created_at, id", "hidden"),
    "ix_submissions_finished": ("stage, queue, finished_at", "state = 'done' AND trial IS NULL"),
}


def upgrade() -> None:
    op.create_table(
        "places",
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("submission_id", sa.String(), nullable=False),
        sa.Column("gpu_model", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("speedup", sa.Float(), nullable=True),
        sa.Column("speedup_low", sa.Float(), nullable=True),
        sa.Column("speedup_high", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("stage", "user_id", "kind", "submission_id", name=op.f("pk_places")),
        sa.CheckConstraint("kind IN ('first', 'right', 'best', 'timed')", name=op.f("ck_places_kind")),
    )
    op.create_table(
        "judgings",
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stage", "verdict", name=op.f("pk_judgings")),
    )
    op.create_table(
        "places_worked_out",
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("stage", "user_id", name=op.f("pk_places_worked_out")),
    )
    op.add_column("board_versions", sa.Column("places", sa.String(), nullable=False, server_default=""))
    op.add_column("submissions", sa.Column("mistake", sa.String(), nullable=True))
    op.execute(
        "UPDATE submissions s SET mistake = r.body->'mistake'->>'name' FROM results r "
        "WHERE r.submission_id = s.id AND r.round = s.round AND r.body->'mistake'->>'name' IS NOT NULL AND s.trial IS NULL"
    )
    op.drop_index("ix_submissions_stage_verdict", table_name="submissions")
    for name, (columns, where) in _INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON submissions ({columns}) WHERE {where}")
    for statement in (_GRADED, _PLACED, _WORKED_OUT, _COUNTED):
        op.execute(statement)
    op.execute("INSERT INTO places SELECT * FROM placed")
    op.execute("CREATE INDEX ix_places_stage_kind ON places (stage, kind)")
    op.execute(
        "INSERT INTO judgings SELECT s.stage, r.verdict, count(*) FROM results r JOIN submissions s ON s.id = r.submission_id "
        "WHERE s.trial IS NULL OR r.verdict = 'judge_error' GROUP BY s.stage, r.verdict"
    )
    op.execute(_CHANGED)
    op.execute(
        "CREATE TRIGGER results_are_counted AFTER INSERT ON results REFERENCING NEW TABLE AS made "
        "FOR EACH STATEMENT EXECUTE FUNCTION count_judgings()"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER results_are_counted ON results")
    op.execute(_BEFORE)
    op.execute("DROP FUNCTION count_judgings()")
    op.execute("DROP FUNCTION work_places_out(text, bigint)")
    op.execute("DROP VIEW placed")
    op.execute("DROP VIEW graded")
    for name in _INDEXES:
        op.execute(f"DROP INDEX {name}")
    op.create_index("ix_submissions_stage_verdict", "submissions", ["stage", "verdict"])
    op.drop_column("submissions", "mistake")
    op.drop_column("board_versions", "places")
    op.drop_table("places_worked_out")
    op.drop_table("judgings")
    op.drop_table("places")
