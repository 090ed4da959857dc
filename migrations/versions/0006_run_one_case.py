"""Let a row of submissions be a trial: one case is run, and nothing counts.

It has the life of a submission (queue, lease, events, result), which a table of its own would have to repeat. What counts
goes by `verdict` and `speedup`, and a constraint keeps both empty for a trial.

Revision: 0006; follows: 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("submissions", sa.Column("trial", postgresql.JSONB(none_as_null=True), nullable=True))
    op.create_check_constraint(
        op.f("ck_submissions_trial"), "submissions", "trial IS NULL OR (verdict IS NULL AND speedup IS NULL)"
    )


def downgrade() -> None:
    op.execute("DELETE FROM submissions WHERE trial IS NOT NULL")
    op.drop_constraint(op.f("ck_submissions_trial"), "submissions")
    op.drop_column("submissions", "trial")
