"""Comments between an author and those who teach them, questions answered to one or to all, feeds."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import pytest

from api.courses.commenting import MOST_AN_HOUR
from kernelgate.accounts import delete_user, find_user, merge_users
from kernelgate.db import transaction
from kernelgate.models import CourseRole, Role, Submission, now
from kernelgate.talk import Comment, Question
from tests.api.conftest import Api, problem
from tests.api.test_courses import course_with

ATOM = "{http://www.w3.org/2005/Atom}"
HTML = {"Accept": "text/html"}


@pytest.fixture
def course(api: Api) -> str:
    people = {"ines": CourseRole.INSTRUCTOR, "anna": CourseRole.ASSISTANT}
    return course_with(api, **people, **dict.fromkeys(("ada", "bob"), CourseRole.MEMBER))


def test_a_comment_on_a_line_is_seen_and_answered(api: Api, course: str) -> None:
    assert course
    ada, anna = api.as_("ada"), api.as_("anna")
    made = api.submit(ada)["id"]
    address = f"/submissions/{made}/comments"
    said = anna.post(address, json={"line": 1, "text": "Why <b>this</b>?"})
    assert (said.status_code, said.json()["author"], said.json()["seen_at"]) == (201, False, None)
    assert "1 new comment on your file." in ada.get("/stages", headers=HTML).text
    page = ada.get(f"/submissions/{made}/source", headers=HTML).text
    assert "Why &lt;b&gt;this&lt;/b&gt;?" in page
    assert "new comment" not in page
    assert "new comment" not in ada.get("/stages", headers=HTML).text, "it was seen"
    assert ada.post(address, json={"line": 1, "text": "It is shorter."}).json()["author"] is True
    assert "Comments of members that nobody has seen" in anna.get(f"/courses/{course}/questions", headers=HTML).text
    listed = anna.get(address).json()
    assert [(each["user"], each["line"]) for each in listed] == [("anna", 1), ("ada", 1)]
    assert all(each["seen_at"] for each in anna.get(address).json())
    problem(ada.post(address, json={"line": 99, "text": "Where?"}), 422, "invalid_field")
    problem(ada.post(address, json={"text": ""}), 422, "invalid_field")


def test_comments_are_for_the_author_and_their_teachers_alone(api: Api, course: str) -> None:
    assert course
    course_with(api, egon=CourseRole.INSTRUCTOR, eva=CourseRole.MEMBER)
    made = api.submit(api.as_("ada"))["id"]
    address = f"/submissions/{made}/comments"
    for who in ("anna", "ines"):
        assert api.as_(who).post(address, json={"text": "Well."}).is_success
    assert api.as_("greta", Role.INSTRUCTOR).get(address).is_success
    for who in ("bob", "egon", "otto"):
        problem(api.as_(who).get(address), 404, "unknown_submission")
        problem(api.as_(who).post(address, json={"text": "Hm."}), 404, "unknown_submission")
    problem(api.client.get(address), 401, "not_signed_in")
    number = api.as_("ada").get(address).json()[0]["id"]
    problem(api.as_("ada").post(f"{address}/{number}/remove"), 403, "missing_role")
    assert len(api.as_("anna").post(f"{address}/{number}/remove").json()) == 1
    problem(api.as_("anna").post(f"{address}/{number}/remove"), 404, "not_found")


def test_who_may_read_the_file_of_another_does_not_read_what_was_said_about_it(api: Api, course: str) -> None:
    assert course
    folder = api.graders / "double"
    text = (folder / "stage.toml").read_text()
    (folder / "stage.toml").write_text(text.replace('sources = "owner"', 'sources = "everyone"'))
    api.app.state.catalog.reload()
    made = _stored(api)
    api.as_("anna").post(f"/submissions/{made}/comments", json={"text": "Between us."})
    page = api.as_("otto").get(f"/submissions/{made}/source", headers=HTML)
    assert page.status_code == 200
    assert "Between us." not in page.text
    problem(api.as_("otto").get(f"/submissions/{made}/comments"), 403, "missing_role")


def _stored(api: Api) -> str:
    """A submission of ada's to a version that is not open any more."""
    api.token("ada")
    with transaction() as session:
        user = find_user(session, "ada")
        assert user is not None
        row = Submission(
            user_id=user.id, stage="double", stage_hash="0" * 16, filename="double.py", source=b"x = 1\n",
            source_hash="0" * 64, state="done", verdict="accepted", created_at=now(),
        )  # fmt: skip
        session.add(row)
        session.flush()
        return row.id


def test_a_question_is_answered_to_one_or_to_all_without_the_name(api: Api, course: str) -> None:
    ada, bob, anna = api.as_("ada"), api.as_("bob"), api.as_("anna")
    address = f"/courses/{course}/questions"
    number = ada.post(address, json={"stage": "double", "text": "Sorted?"}).json()["id"]
    problem(ada.post(address, json={"stage": "nothing", "text": "?"}), 404, "unknown_stage")
    assert bob.get(address).json() == []
    assert "1 question waits for an answer." in anna.get("/stages", headers=HTML).text
    assert anna.get(address).json()[0]["user"] == "ada"
    anna.post(f"{address}/{number}/answer", json={"text": "No."})
    assert (ada.get(address).json()[0]["answer"], bob.get(address).json()) == ("No.", [])
    anna.post(f"{address}/{number}/answer", json={"text": "No, never.", "to_all": True})
    seen = bob.get(address).json()[0]
    assert (seen["text"], seen["answer"], seen["user"]) == ("Sorted?", "No, never.", None)
    assert "ada" not in bob.get(address, headers=HTML).text
    elsewhere = course_with(api, anna=CourseRole.ASSISTANT)
    problem(anna.post(f"/courses/{elsewhere}/questions/{number}/answer", json={"text": "?"}), 404, "not_found")


def test_nobody_writes_more_than_anybody_reads(api: Api, course: str) -> None:
    ada = api.as_("ada")
    with transaction() as session:
        user = find_user(session, "ada")
        assert user is not None
        number = ada.post(f"/courses/{course}/questions", json={"text": "First?"}).json()["id"]
        one = session.get_one(Question, number)
        session.add_all(Question(course_id=one.course_id, user_id=user.id, text="?") for _ in range(MOST_AN_HOUR - 1))
    refused = ada.post(f"/courses/{course}/questions", json={"text": "Last?"})
    problem(refused, 429, "too_many_messages")
    assert 3500 < int(refused.headers["retry-after"]) <= 3600


def test_a_feed_has_what_was_said_to_all_and_ends_with_the_seat(api: Api, course: str) -> None:
    ada, ines = api.as_("ada"), api.as_("ines")
    ines.post(f"/courses/{course}/announcements", json={"text": "Due <soon> & sooner."})
    number = ada.post(f"/courses/{course}/questions", json={"text": "Sorted?"}).json()["id"]
    ines.post(f"/courses/{course}/questions/{number}/answer", json={"text": "No.", "to_all": True})
    private = ada.post(f"/courses/{course}/questions", json={"text": "Mine?"}).json()["id"]
    ines.post(f"/courses/{course}/questions/{private}/answer", json={"text": "Secret."})
    first = ada.post(f"/courses/{course}/feed").json()["url"]
    answer = api.client.get(first)
    assert answer.headers["content-type"].startswith("application/atom+xml")
    feed = fromstring(answer.content)  # noqa: S314 - our own
    texts = [each.text or "" for each in feed.iter(f"{ATOM}content")]
    assert texts == ["Sorted?\n\nNo.", "Due <soon> & sooner."]
    assert "Secret." not in answer.text
    for name in ("id", "title", "updated"):
        assert all(entry.find(f"{ATOM}{name}") is not None for entry in [feed, *feed.iter(f"{ATOM}entry")])
    second = ada.post(f"/courses/{course}/feed").json()["url"]
    problem(api.client.get(first), 404, "not_found")
    problem(api.as_("root", Role.ADMIN).post(f"/courses/{course}/feed"), 404, "unknown_member")
    problem(api.as_("otto").post(f"/courses/{course}/feed"), 404, "unknown_course")
    ines.post(f"/courses/{course}/members/ada/remove")
    problem(api.client.get(second), 404, "not_found")


def test_what_was_said_moves_with_a_merged_account_and_goes_with_a_deleted_one(api: Api, course: str) -> None:
    ada = api.as_("ada")
    ada.post(f"/courses/{course}/questions", json={"text": "Sorted?"})
    ada.post(f"/courses/{course}/feed")
    api.token("ada2")
    with transaction() as session:
        old, new = find_user(session, "ada"), find_user(session, "ada2")
        assert old is not None
        assert new is not None
        merge_users(session, old, new)
        assert session.query(Question).one().user_id == new.id
        delete_user(session, new)
    with transaction() as session:
        assert (session.query(Question).count(), session.query(Comment).count()) == (0, 0)
