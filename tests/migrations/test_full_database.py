"""Every revision is taken back and applied again over 100,000 submissions, and nothing that its table keeps is changed."""

from __future__ import annotations

import time

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool, text

from embedded import schema

COUNT = 100_000
FIRST, BOUND_S = "0001", 60.0
FILL = """
SET session_replication_role = replica;
INSERT INTO users (handle, role) SELECT 'person' || n, 'submitter' FROM generate_series(1, 500) n;
INSERT INTO submissions (id, user_id, stage, stage_hash, filename, source, source_hash, via, state, queue, round, attempt,
                         cancel_requested, hidden, verdict, reason, backend, gpu_model, speedup, created_at, finished_at)
SELECT lpad(to_hex(n), 16, '0'), u.id, 'stage' || n % 20, 'v' || n % 3, 'kernel.cu', decode(md5(n::text), 'hex'),
       md5(n::text), 'web', 'done', 'cpu', 1, 1, false, n % 50 = 0,
       CASE WHEN n % 4 = 0 THEN 'accepted' ELSE 'wrong_answer' END, 'passed', 'gpu', 'H200',
       CASE WHEN n % 4 = 0 THEN 1 + n % 97 / 50.0 END, now() - interval '1 minute' * n, now()
FROM generate_series(1, :count) n JOIN users u ON u.handle = 'person' || 1 + n % 500;
INSERT INTO results (submission_id, round, attempt, worker, verdict, reason, stage_hash, speedup, body, created_at)
SELECT id, 1, 1, 'w', verdict, reason, stage_hash, speedup, jsonb_build_object('cases', '[]'::jsonb), created_at
FROM submissions;
INSERT INTO events (submission_id, round, attempt, kind, data) SELECT id, 1, 1, 'result', '{}' FROM submissions;
INSERT INTO courses (name, title, late_days) VALUES ('gpu', 'GPU', 2);
INSERT INTO course_members (course_id, user_id, role, email, person)
SELECT c.id, u.id, 'member', '', '' FROM courses c, users u;
INSERT INTO course_stages (course_id, stage, place, late, late_percent, late_limit, joint, rule, points, steps)
SELECT c.id, 'stage' || n, n, 'none', 0, 0, false, 'pass', 1, '[]' FROM courses c, generate_series(0, 19) n;
INSERT INTO comments (submission_id, line, user_id, text) SELECT id, 1, user_id, 'Why?' FROM submissions LIMIT 10000;
"""
KEPT = """
SELECT (SELECT md5(string_agg(concat_ws('|', id, user_id, stage, stage_hash, source, verdict, speedup, hidden, created_at), ','
                              ORDER BY id)) FROM submissions),
       (SELECT md5(string_agg(concat_ws('|', submission_id, round, verdict, speedup, body), ',' ORDER BY submission_id))
        FROM results),
       (SELECT count(*) FROM events), (SELECT md5(string_agg(handle, ',' ORDER BY id)) FROM users)
"""


@pytest.mark.timeout(300)
def test_revisions_go_back_and_forward_over_a_full_database(empty_database: str) -> None:
    schema.upgrade(empty_database)
    engine = create_engine(empty_database, poolclass=pool.NullPool)
    with engine.begin() as connection:
        for statement in FILL.split(";\n"):
            if statement.strip():
                connection.execute(text(statement), {"count": COUNT} if ":count" in statement else {})
    with engine.connect() as connection:
        before = connection.execute(text(KEPT)).one()
    begun = time.monotonic()
    steps = len(list(ScriptDirectory(str(schema.MIGRATIONS)).walk_revisions())) - 1
    for _ in range(steps):
        schema.downgrade(empty_database, "-1")
    assert schema.current(empty_database) == FIRST
    with engine.connect() as connection:
        assert connection.execute(text(KEPT)).one() == before
    schema.upgrade(empty_database)
    took = time.monotonic() - begun
    with engine.connect() as connection:
        assert connection.execute(text(KEPT)).one() == before
        assert connection.scalar(text("SELECT count(*) FROM submissions")) == COUNT
        assert connection.scalar(text("SELECT sum(count) FROM judgings")) == COUNT
        assert {row.kind for row in connection.execute(text("SELECT DISTINCT kind FROM places"))} == {
            "first",
            "right",
            "best",
            "timed",
        }
    assert took < BOUND_S, f"{2 * steps} revisions took {took:.1f} s over {COUNT} submissions"
