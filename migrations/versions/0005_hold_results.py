"""Let a result be held back for an administrator: why, in a sentence, on the submission.

A column of its own and not a kind of verdict: the verdict is what the grading found, and holding says only that it does not
count yet. Boards depend on it, so their trigger watches it.

Revision: 0005; follows: 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_BOARD = "stage, user_id, created_at, hidden, gpu_model"


def _watch(columns: str) -> None:
    op.execute("DROP TRIGGER submissions_change_boards ON submissions")
    op.execute(
        f"CREATE CONSTRAINT TRIGGER submissions_change_boards AFTER UPDATE OF {columns} OR DELETE ON submissions "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION board_changed()"
    )


def upgrade() -> None:
    op.add_column("submissions", sa.Column("held", sa.String(), nullable=True))
    op.create_index("ix_submissions_held", "submissions", ["created_at"], postgresql_where=sa.text("held IS NOT NULL"))
    _watch(f"{_BOARD}, held")


def downgrade() -> None:
    _watch(_BOARD)
    op.drop_index("ix_submissions_held", table_name="submissions", postgresql_where=sa.text("held IS NOT NULL"))
    op.drop_column("submissions", "held")
