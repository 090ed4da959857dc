"""Give every board a version, which changes in the transaction that changes the board.

The version names the last transaction that changed anything a board is made of, whoever sent it: a worker, the API, a
shell. It is written when that transaction commits (the triggers are deferred), so its row is locked last and for a moment,
and two transactions cannot wait for each other over it. The stage '' stands for all boards: accounts are on several.

Counting hidden submissions and disabled accounts told less: one hidden and one shown again left both counts as they were.

Revision: 0004; follows: 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_CHANGED = """
CREATE FUNCTION board_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
_TRIGGERS = {
    "results_change_boards": "AFTER INSERT OR UPDATE OR DELETE ON results",
    "submissions_change_boards": "AFTER UPDATE OF stage, user_id, created_at, hidden, gpu_model OR DELETE ON submissions",
    "users_change_boards": "AFTER UPDATE OF handle, disabled_at OR DELETE ON users",
}


def upgrade() -> None:
    op.create_table(
        "board_versions",
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("stage", name=op.f("pk_board_versions")),
    )
    op.execute(_CHANGED)
    for name, event in _TRIGGERS.items():
        op.execute(
            f"CREATE CONSTRAINT TRIGGER {name} {event} DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION board_changed()"
        )
    op.drop_index("ix_submissions_hidden", table_name="submissions", postgresql_where=sa.text("hidden"))
    op.drop_index("ix_users_disabled", table_name="users", postgresql_where=sa.text("disabled_at IS NOT NULL"))


def downgrade() -> None:
    op.create_index("ix_submissions_hidden", "submissions", ["stage"], postgresql_where=sa.text("hidden"))
    op.create_index("ix_users_disabled", "users", ["id"], postgresql_where=sa.text("disabled_at IS NOT NULL"))
    for name, event in _TRIGGERS.items():
        op.execute(f"DROP TRIGGER {name} ON {event.rsplit(' ', 1)[-1]}")
    op.execute("DROP FUNCTION board_changed()")
    op.drop_table("board_versions")
