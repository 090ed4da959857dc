"""Courses without a script: made, filled, joined by link, run by forms; and the header's word on what the link leads into."""

from __future__ import annotations

import re

from sqlalchemy import select

from kernelgate.db import transaction
from kernelgate.models import Member, Role, Submission
from tests.pages import samples
from tests.pages.conftest import Site, check, csrf

STAGE = "/courses/gpu/stages/online_softmax"


def test_a_course_by_forms_alone(site: Site) -> None:
    _, greta = site.sign_in("greta", Role.INSTRUCTOR)
    form = {"csrf_token": csrf(check(greta.get("/courses")))}
    made = check(greta.post("/courses", data={**form, "name": "gpu", "title": "GPU programming", "late_days": "3"}))
    assert "3 late days each" in made
    assert "No stages yet" in made
    settings = check(greta.post(STAGE, data={**form, "place": "1"}))
    assert 'value="2027-02-14T22:00"' not in settings
    rules = {
        "opens_at": "", "due_at": "2027-02-14T22:00", "freezes_at": "", "quota": "", "place": "1", "late": "days",
        "late_limit": "2", "late_percent": "0", "rule": "thresholds", "points": "1", "steps": "0: 4, 1.8: 10", "joint": "true",
    }  # fmt: skip
    settings = check(greta.post(STAGE, data={**form, **rules}))
    assert 'value="2027-02-14T22:00"' in settings
    assert 'value="0: 4, 1.8: 10"' in settings
    overview = check(greta.get("/courses/gpu"))
    assert "4 for passing, 10 from 1.80×" in overview
    assert "by team" in overview
    check(greta.post("/courses/gpu/announcements", data={**form, "text": "Read <b>chapter 3</b>."}))
    assert "Read &lt;b&gt;chapter 3&lt;/b&gt;." in check(greta.get("/courses/gpu"))
    people = check(
        greta.post("/courses/gpu/members", data={**form, "lines": "ada@uni.example, Ada, red", "role": "member"})
    )
    assert re.search(r"ada@uni\.example,Ada,red,http\S+/invite/kgi_", people)
    assert "cannot be accepted" in check(greta.post("/courses/gpu/invites", data={**form, "uses": "0"}), 422)


def test_a_link_asks_who_one_is_and_says_what_the_staff_sees(site: Site) -> None:
    _, greta = site.sign_in("greta", Role.INSTRUCTOR)
    form = {"csrf_token": csrf(check(greta.get("/courses")))}
    check(greta.post("/courses", data={**form, "name": "gpu", "title": "GPU programming", "late_days": "0"}))
    people = check(greta.post("/courses/gpu/invites", data={**form, "role": "member", "uses": "5", "days": "3"}))
    link = re.search(r"/invite/kgi_[\w-]+", people)
    assert link
    _, ada = site.sign_in("ada")
    asked = check(ada.get(link[0]))
    assert "staff sees what its members submit" in asked
    joined = check(ada.post(link[0].replace("/invite/", "/join/"), data={"csrf_token": csrf(asked)}))
    assert "You are member" in joined
    check(greta.post("/courses/gpu/announcements", data={**form, "text": "Due on Friday."}))
    assert "Due on Friday." in check(ada.get("/stages"))
    assert "Due on Friday." not in check(greta.get("/stages")), "it is for members"
    assert "Leave the course" in joined
    visitor = site.visitor()
    assert "sign in" in check(visitor.get(link[0]))
    check(visitor.post(link[0], data={"handle": "nina"}))
    assert "GPU programming" in check(visitor.get("/courses"))
    check(ada.post("/courses/gpu/members/ada/remove", data={"csrf_token": csrf(joined)}))
    with transaction() as database:
        assert len(database.scalars(select(Member)).all()) == 2


def test_members_see_the_board_and_the_staff_judges_again_from_it(site: Site) -> None:
    _, teacher = site.sign_in("greta", Role.INSTRUCTOR)
    ada, pupil = site.sign_in("ada")
    bob, _ = site.sign_in("bob")
    form = {"csrf_token": csrf(check(teacher.get("/courses")))}
    check(teacher.post("/courses", data={**form, "name": "gpu", "title": "GPU programming", "late_days": "0"}))
    check(teacher.post("/courses/gpu/stages/online_attention", data={**form, "place": "1"}))
    check(teacher.post("/courses/gpu/members", data={**form, "lines": "ada", "role": "member"}))
    with transaction() as database:
        for who, speedup in ((ada, 2.0), (bob, 3.0)):
            samples.submission(database, who, site.gated, samples.timed(site.gated, speedup))
    address = "/courses/gpu/stages/online_attention"
    board = check(pupil.get(address))
    assert "2.00×" in board
    assert "bob" not in board, "the board is the course's"
    assert "Judge again" not in board
    preview = check(teacher.get(f"{address}?preview=1&verdict=accepted"))
    assert '<b class="number">1</b> submission of 1 person would be judged again' in preview
    check(teacher.post(f"{address}/rejudge", data={**form, "verdict": "accepted"}))
    with transaction() as database:
        assert sorted(database.scalars(select(Submission.round))) == [1, 2]
        samples.submission(database, ada, site.gated, samples.timed(site.gated, 4.0), minutes_ago=-1)
    check(teacher.post(f"{address}/freeze", data={**form, "frozen": "true"}))
    with transaction() as database:
        samples.submission(database, ada, site.gated, samples.timed(site.gated, 9.0), minutes_ago=-2)
    assert "9.00×" in check(teacher.get(address))
    assert "9.00×" not in check(pupil.get(address))
    assert "/courses/gpu/members/ada" in check(teacher.get("/courses/gpu/members"))
    change = {"person": "Ada <L>", "email": "ada@uni.example", "role": "member", "team": "red"}
    assert "Ada &lt;L&gt;" in check(teacher.post("/courses/gpu/members/ada", data={**form, **change}))
    assert 'value="red"' in check(teacher.get("/courses/gpu/members/ada"))
    check(teacher.get("/courses/gpu/members/nobody"), 404)
    check(pupil.get("/courses/gpu/members/ada"), 403)
    check(pupil.get("/courses/gpu/members"), 403)
    check(pupil.get("/courses/gpu/settings"), 403)


def test_the_grid_sorts_and_filters_without_a_script_and_opens_timelines(site: Site) -> None:
    _, teacher = site.sign_in("greta", Role.INSTRUCTOR)
    people = {handle: site.sign_in(handle) for handle in ("ada", "bob", "eva")}
    form = {"csrf_token": csrf(check(teacher.get("/courses")))}
    check(teacher.post("/courses", data={**form, "name": "gpu", "title": "GPU programming", "late_days": "0"}))
    rules = {"place": "1", "rule": "thresholds", "steps": "1.8: 5, 3: 10"}
    check(teacher.post("/courses/gpu/stages/online_attention", data={**form, **rules}))
    check(
        teacher.post("/courses/gpu/members", data={**form, "lines": "ada, <b>Ada</b>, red\nbob\neva", "role": "member"})
    )
    with transaction() as database:
        for n, speedup in enumerate((1.9, 3.2)):
            timed = samples.timed(site.gated, speedup)
            samples.submission(
                database, people["bob"][0], site.gated, timed, source=f"// {n}\n".encode(), minutes_ago=9 - n
            )
        samples.submission(database, people["ada"][0], site.gated, samples.timed(site.gated, 2.0))
    text = check(teacher.get("/courses/gpu/grid"))
    assert "&lt;b&gt;Ada&lt;/b&gt;" in text
    assert re.findall(r'<th scope="row">(\w+)', text) == ["ada", "bob", "eva"]
    sorted_by = {"points": ["bob", "ada", "eva"], "-points": ["eva", "ada", "bob"], "-": ["eva", "bob", "ada"]}
    for sort, handles in sorted_by.items():
        found = check(teacher.get("/courses/gpu/grid", params={"sort": sort}))
        assert re.findall(r'<th scope="row">(\w+)', found) == handles
    assert re.search(r"10 ✓ 3\.20×\n2 · \d+ [A-Z][a-z]{2}<", text)
    assert re.findall(r'<th scope="row">(\w+)', check(teacher.get("/courses/gpu/grid?show=idle"))) == ["eva"]
    assert re.findall(r'<th scope="row">(\w+)', check(teacher.get("/courses/gpu/grid?search=RED"))) == ["ada"]
    assert "Nobody matches" in check(teacher.get("/courses/gpu/grid?search=%3Cscript%3E"))
    link = re.search(r'<a href="(people/bob/online_attention)"', text)
    assert link
    shown = check(teacher.get(f"/courses/gpu/{link[1]}"))
    assert "10 points" in shown
    assert "2 timed submissions" in shown
    assert "+1 −1 lines since the attempt before" in shown
    (best,) = re.findall(r"/courses/gpu/submissions/(\w+)/hide", shown)[:1]
    apart = check(teacher.post(f"/courses/gpu/submissions/{best}/hide", data={**form, "hidden": "true"}))
    assert "5 points" in apart
    assert f"Show {best[:8]}" in apart
    assert "10 points" in check(teacher.post(f"/courses/gpu/submissions/{best}/hide", data={**form, "hidden": "false"}))
    own = check(people["bob"][1].get(f"/courses/gpu/{link[1]}"))
    assert "Judge again" not in own
    assert "Points by hand" not in own
    assert "<b>10</b> points so far" in check(people["bob"][1].get("/courses/gpu"))
    check(people["ada"][1].get(f"/courses/gpu/{link[1]}"), 404)
    log = check(people["bob"][1].get("/courses/gpu/logs/bob"))
    assert "2 attempts · 10 points" in log
    given = check(teacher.post(f"/courses/gpu/{link[1]}/points", data={**form, "points": "7", "reason": "shown <i>"}))
    assert "Given by hand: shown &lt;i&gt;" in given
    assert "Nothing would change" in check(teacher.get("/courses/gpu/changes"))
