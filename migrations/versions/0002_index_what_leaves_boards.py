"""Index the few rows that take places from leaderboards: hidden submissions and disabled accounts.

Every look at a board counts them to learn whether it changed.

Revision: 0002; follows: 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index("ix_submissions_hidden", "submissions", ["stage"], postgresql_where=sa.text("hidden"))
    op.create_index("ix_users_disabled", "users", ["id"], postgresql_where=sa.text("disabled_at IS NOT NULL"))


def downgrade() -> None:
    op.drop_index("ix_users_disabled", table_name="users", postgresql_where=sa.text("disabled_at IS NOT NULL"))
    op.drop_index("ix_submissions_hidden", table_name="submissions", postgresql_where=sa.text("hidden"))
