"""Who stands where is kept by triggers: whatever is changed, in whatever order, it equals what the view works out."""

from __future__ import annotations

import random
import threading

from sqlalchemy import Connection, create_engine, pool, text

PEOPLE, STAGES, CHANGES = 4, ("one", "two"), 150
VERDICTS = ("accepted", "accepted", "gate_missed", "correct", "wrong_answer", "judge_error")
_SUBMISSION = """
INSERT INTO submissions (id, user_id, stage, stage_hash, filename, source, source_hash, via, state, queue, round, attempt,
                         cancel_requested, hidden, gpu_model, created_at, trial)
VALUES (:id, :user, :stage, '', 'a.cu', '', '', 'web', 'done', 'cpu', 1, 1, false, false, :gpu,
        now() + :minutes * interval '1 min',
        CASE WHEN :trial THEN '{}'::jsonb END)
"""
_RESULT = """
INSERT INTO results (submission_id, round, attempt, worker, verdict, reason, stage_hash, speedup, body)
SELECT id, (SELECT count(*) FROM results WHERE submission_id = :id) + 1, 1, 'w', :verdict, '', '', :speedup, '{}'
FROM submissions WHERE id = :id
"""
_DIFFERENCE = "(TABLE places EXCEPT TABLE placed) UNION ALL (TABLE placed EXCEPT TABLE places)"
_CHANGES = (
    "UPDATE submissions SET hidden = NOT hidden WHERE id = :id",
    "UPDATE submissions SET held = CASE WHEN held IS NULL THEN 'why' END WHERE id = :id",
    "UPDATE submissions SET user_id = :user WHERE id = :id",
    "UPDATE submissions SET created_at = created_at + :minutes * interval '1 minute' WHERE id = :id",
    "UPDATE submissions SET gpu_model = :gpu WHERE id = :id",
    "UPDATE submissions SET stage = :stage WHERE user_id = :user",
    "DELETE FROM results WHERE submission_id = :id AND round > 1",
    "DELETE FROM submissions WHERE id = :id",
)


def people_of(connection: Connection) -> list[int]:
    made = "INSERT INTO users (handle, role) SELECT 'p' || n, 'submitter' FROM generate_series(1, :n) n RETURNING id"
    return list(connection.scalars(text(made), {"n": PEOPLE}))


def test_places_equal_what_they_are_worked_out_of(database: str) -> None:
    draw = random.Random(7)  # noqa: S311 - the same changes each time
    engine = create_engine(database, poolclass=pool.NullPool)
    with engine.begin() as connection:
        people = people_of(connection)
    stood = set()
    for number in range(CHANGES):
        with engine.begin() as connection:
            for at in range(draw.choice((1, 1, 3))):
                fresh = draw.random() < 0.4
                given = {
                    "id": f"s{number}-{at}" if fresh else f"s{draw.randrange(number + 1)}-0", "user": draw.choice(people),
                    "stage": draw.choice(STAGES), "gpu": draw.choice(("H100", "H200", None)), "minutes": draw.randrange(60),
                    "verdict": draw.choice(VERDICTS), "speedup": draw.choice((None, 1.5, 2.0, 2.5)),
                    "trial": draw.random() < 0.1,
                }  # fmt: skip
                if fresh:
                    connection.execute(text(_SUBMISSION), given)
                connection.execute(text(_RESULT if fresh or draw.random() < 0.5 else draw.choice(_CHANGES)), given)
        with engine.connect() as connection:
            assert list(connection.execute(text(_DIFFERENCE))) == [], f"after change {number}"
            stood |= set(connection.scalars(text("SELECT kind FROM places")))
    assert stood == {"first", "right", "best", "timed"}


def test_a_judging_that_moves_nobody_leaves_the_version_of_places(database: str) -> None:
    def versions() -> tuple[str, str]:
        with engine.connect() as connection:
            row = connection.execute(text("SELECT version, places FROM board_versions WHERE stage = 'one'")).one()
            return row.version, row.places

    def judged(name: str, verdict: str) -> None:
        given = {"id": name, "user": user, "stage": "one", "gpu": None, "minutes": 0, "trial": False}
        with engine.begin() as connection:
            connection.execute(text(_SUBMISSION), given)
            connection.execute(text(_RESULT), {"id": name, "verdict": verdict, "speedup": None})

    engine = create_engine(database, poolclass=pool.NullPool)
    with engine.begin() as connection:
        user = people_of(connection)[0]
    judged("a", "accepted")
    before = versions()
    judged("b", "wrong_answer")
    after = versions()
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_two_judgings_that_end_at_once_are_both_seen(database: str) -> None:
    """Neither sees the other's result before it commits: the second to commit waits, and then sees both."""
    engine = create_engine(database, poolclass=pool.NullPool)
    with engine.begin() as connection:
        user = people_of(connection)[0]
        for name in ("a", "b"):
            given = {"id": name, "user": user, "stage": "one", "gpu": "H200", "minutes": 0, "trial": False}
            connection.execute(text(_SUBMISSION), given)
    together = threading.Barrier(2)

    def judged(name: str, speedup: float) -> None:
        with engine.begin() as connection:
            connection.execute(text(_RESULT), {"id": name, "verdict": "accepted", "speedup": speedup})
            together.wait(timeout=20)

    # `judgings` is counted by statement: two of one verdict in one stage would wait for each other there, before the barrier.
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE results DISABLE TRIGGER results_are_counted"))
    threads = [threading.Thread(target=judged, args=each) for each in (("a", 2.0), ("b", 2.5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        assert list(connection.execute(text(_DIFFERENCE))) == []
        best = connection.scalars(text("SELECT submission_id FROM places WHERE kind = 'best'"))
        assert list(best) == ["b"]
