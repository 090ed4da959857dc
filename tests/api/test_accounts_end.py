"""Accounts renamed, merged, deleted: what moves, what goes, what is refused, and that it is written down."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text

from kernelgate.accounts import delete_user, find_user
from kernelgate.db import transaction
from kernelgate.models import CourseRole, Member, ResultRow, Role, Submission, Token, User
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, problem, result_of
from tests.api.test_courses import course_with


def test_a_renamed_account_keeps_everything(api: Api) -> None:
    admin, ada = api.as_("root", Role.ADMIN), api.as_("ada")
    made = api.submit(ada)["id"]
    assert admin.post("/admin/users/ada/rename", json={"handle": "lovelace"}).json()["handle"] == "lovelace"
    assert ada.get(f"/submissions/{made}").json()["user"] == "lovelace"
    api.token("bob")
    problem(admin.post("/admin/users/lovelace/rename", json={"handle": "Bob"}), 409, "handle_taken")
    problem(admin.post("/admin/users/lovelace/rename", json={"handle": "a b"}), 422, "invalid_field")
    problem(admin.post("/admin/users/ada/rename", json={"handle": "x"}), 404, "unknown_user")
    assert admin.post("/admin/users/lovelace/rename", json={"handle": "Lovelace"}).is_success, (
        "its own, in other letters"
    )


def test_a_merged_account_moves_its_work_and_its_tokens_end(api: Api) -> None:
    admin, ada, twin = api.as_("root", Role.ADMIN), api.as_("ada"), api.as_("ada2")
    both = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER, ada2=CourseRole.ASSISTANT)
    alone = course_with(api, ines=CourseRole.INSTRUCTOR, ada2=CourseRole.MEMBER)
    headers = {"Idempotency-Key": "one"}
    ids = []
    for client in (ada, twin):
        sent = client.post(
            "/submit", data={"stage": "double"}, files={"file": ("double.py", "x = 1\n")}, headers=headers
        )
        ids.append(sent.json()["id"])
    body = {"into": "ada", "confirm": "ada2"}
    assert (
        "queued or running"
        in problem(admin.post("/admin/users/ada2/remove", json=body), 422, "invalid_field")["detail"]
    )
    for made in ids:
        Graded.finish(made, result_of(Verdict.ACCEPTED))
    ended = admin.post("/admin/users/ada2/remove", json=body).json()
    assert ended == {"handle": "ada2", "into": "ada", "submissions": 1}
    assert {each["id"] for each in ada.get("/me/submissions").json()["items"]} == set(ids)
    problem(twin.get("/me"), 401, "unknown_token")
    assert ada.get(f"/courses/{both}").json()["role"] == "member", "merging raises nobody"
    assert ada.get(f"/courses/{alone}").json()["role"] == "member"
    assert next(row["action"] for row in admin.get("/admin/audit").json()["items"]) == "user.merge"


def test_a_deleted_account_takes_all_its_data_along(api: Api) -> None:
    admin, ada = api.as_("root", Role.ADMIN), api.as_("ada")
    course_with(api, ada=CourseRole.MEMBER)
    Graded.finish(api.submit(ada)["id"], result_of(Verdict.ACCEPTED))
    problem(admin.post("/admin/users/ada/remove", json={"confirm": "ad"}), 422, "invalid_field")
    assert admin.post("/admin/users/ada/remove", json={"confirm": "ada"}).json()["submissions"] == 1
    with transaction() as session:
        for model in (Submission, ResultRow, Member):
            assert session.scalars(select(model)).all() == []
        assert [user.handle for user in session.scalars(select(User))] == ["root"]
        assert {token.user.handle for token in session.scalars(select(Token))} == {"root"}
    problem(ada.get("/me"), 401, "unknown_token")


@pytest.mark.parametrize("body", [{"confirm": "root"}, {"confirm": "root", "into": "ada"}])
def test_the_last_administrator_stays(api: Api, body: dict[str, str]) -> None:
    api.token("ada")
    problem(api.as_("root", Role.ADMIN).post("/admin/users/root/remove", json=body), 409, "last_admin")
    problem(
        api.as_("root").post("/admin/users/ada/remove", json={"into": "ada", "confirm": "ada"}), 422, "invalid_field"
    )


def wait_for_a_lock() -> None:
    """Until another connection waits for what this test's transaction holds."""
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    until = time.monotonic() + 20
    while True:
        with transaction() as watching:  # one each time: what the server says of its activity is kept within one
            if watching.scalar(waiting):
                return
        assert time.monotonic() < until, "nobody waits"
        time.sleep(0.05)


def test_what_is_submitted_while_the_account_is_deleted_is_refused(api: Api) -> None:
    ada = api.as_("ada")
    with ThreadPoolExecutor(1) as pool:
        with transaction() as session:
            user = find_user(session, "ada")
            assert user is not None
            delete_user(session, user)
            sent = pool.submit(ada.post, "/submit", data={"stage": "double"}, files={"file": ("double.py", "x = 1\n")})
            wait_for_a_lock()
        said = problem(sent.result(), 401, "unknown_token")
    assert "nothing was stored" in said["detail"]
    with transaction() as session:
        assert session.scalars(select(Submission)).all() == []


@pytest.mark.parametrize("into", [{}, {"into": "eva"}])
def test_an_account_does_not_go_while_something_of_it_is_being_stored(api: Api, into: dict[str, str]) -> None:
    admin, ada = api.as_("root", Role.ADMIN), api.as_("ada")
    api.token("eva")
    earlier = api.submit(ada)["id"]
    Graded.finish(earlier, result_of(Verdict.ACCEPTED))
    with ThreadPoolExecutor(1) as pool:
        with transaction() as session:
            like = session.get_one(Submission, earlier)
            session.add(
                Submission(
                    user_id=like.user_id,
                    stage="double",
                    stage_hash=like.stage_hash,
                    filename=like.filename,
                    via="api",
                    source=like.source,
                    source_hash=like.source_hash,
                    queue=like.queue,
                )
            )
            session.flush()
            removed = pool.submit(admin.post, "/admin/users/ada/remove", json={"confirm": "ada", **into})
            wait_for_a_lock()
        assert "queued or running" in problem(removed.result(), 422, "invalid_field")["detail"]
    with transaction() as session:
        assert [row.user.handle for row in session.scalars(select(Submission))] == ["ada", "ada"]
