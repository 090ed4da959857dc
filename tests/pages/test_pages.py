"""Every page, for everyone who may ask for it: its status, its rules, and what it says."""

from __future__ import annotations

import io
import json
import time
import zipfile

import pytest
from sqlalchemy import delete, update

from kernelgate.db import transaction
from kernelgate.models import Role, StageSwitch, StageVersion, WorkerRow
from kernelgate.verdicts import State, Verdict
from tests.pages import samples
from tests.pages.conftest import Site, check

OPEN = ("/", "/stages", "/stages/online_softmax", "/stages/online_attention", "/leaderboard", "/leaderboard/online_softmax",
        "/leaderboard/online_attention", "/sign-in", "/sign-up", "/docs", "/docs/settings")  # fmt: skip
OWN = ("/me/submissions", "/me/tokens")
ADMINS = ("/admin/queue", "/admin/submissions", "/admin/stages", "/admin/stages/online_softmax",
          "/admin/stages/online_softmax?preview=1", "/admin/users", "/admin/users/root",
          "/admin/invites", "/admin/webhooks", "/admin/audit")  # fmt: skip


def test_everyone_reads_the_open_pages(site: Site) -> None:
    for path in OPEN:
        assert "Sign in" in check(site.visitor().get(path)), path


def test_a_stage_that_is_measured_shows_what_its_own_files_reach(site: Site) -> None:
    text = check(site.visitor().get("/stages/online_attention"))
    assert "own files reach on the NVIDIA H200; passing takes 1.80×" in text
    for name in ("starter", "plain_rows", "solution", "register_tiles"):
        assert f"<code>{name}</code>" in text
    assert "own files reach" not in check(site.visitor().get("/stages/online_softmax"))


def test_own_pages_ask_strangers_to_sign_in(site: Site) -> None:
    _, ada = site.sign_in("ada")
    for path in OWN:
        assert f'href="/sign-in?next={path}"' in check(site.visitor().get(path), 401)
        check(ada.get(path))


def test_administration_is_for_administrators(site: Site) -> None:
    _, ada = site.sign_in("ada")
    _, root = site.sign_in("root", Role.ADMIN)
    for path in ADMINS:
        check(site.visitor().get(path), 401)
        check(ada.get(path), 403)
        check(root.get(path))


def test_what_is_not_there_says_so(site: Site) -> None:
    for path in ("/nothing", "/stages/nothing", "/leaderboard/nothing", "/docs/nothing"):
        assert "<h1>" in check(site.visitor().get(path), 404)


def test_a_submission_of_nobody_is_not_there(site: Site) -> None:
    assert "Sign in" in check(site.visitor().get("/submissions/0000000000000000"), 401)
    check(site.sign_in("ada")[1].get("/submissions/0000000000000000"), 404)


def test_without_a_bundle_pages_stand_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.pages.site.assets._written_at", lambda _: 0)
    text = check(site.visitor().get("/stages/online_softmax"))
    assert "<script" not in text
    assert 'href="/static/styles/site.css"' in text
    assert site.visitor().get("/static/styles/site.css").status_code == 200


def test_the_lesson_is_typeset(site: Site) -> None:
    text = check(site.visitor().get("/stages/online_softmax"))
    assert "<math" in text
    assert "$" not in text.split('id="lesson"')[1].split('id="contract"')[0]
    assert "output 5.0000, log-sum-exp 1.3863" in text  # the trace's end, computed by the server
    assert "SECRET_SOLUTION" not in text
    assert '<th scope="col"><math aria-label="m prime"' in text
    assert '<th scope="col">sum <math aria-label="l"' in text


def test_a_newcomer_is_sent_to_what_can_be_graded_now(site: Site) -> None:
    assert "Start with “Online softmax”" in check(site.visitor().get("/"))
    with transaction() as database:
        database.execute(update(WorkerRow).values(backends=["gpu"]))
    assert "Start with “Online attention”" in check(site.visitor().get("/"))
    with transaction() as database:
        database.execute(update(StageVersion).values(verified=False).where(StageVersion.stage == "online_attention"))
    assert "Start with “Online softmax”" in check(site.visitor().get("/")), (
        "a stage that is closed to everybody was offered"
    )


def test_home_shows_how_far_one_is(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        samples.submission(database, user, site.values, samples.accepted(site.values))
        samples.submission(database, user, site.values, state=State.QUEUED)
    text = check(ada.get("/"))
    assert "1 of 2 passed" in text
    assert "Go on with “Online attention”" in text
    assert "<b>ada</b>" in text
    assert "Yours:" in text


def test_right_values_do_not_pass_a_stage_whose_gate_is_open(site: Site) -> None:
    """What the capstone's unchanged starter gets on a machine without a GPU."""
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.gated, samples.result(site.gated, Verdict.CORRECT))
    home = check(ada.get("/"))
    assert "0 of 2 passed" in home
    assert "gate open" in home
    assert "passed when its gate is measured" in check(ada.get("/stages/online_attention"))
    assert "asks for 1.80× the baseline’s speed as well" in check(ada.get(f"/submissions/{row.id}"))
    with transaction() as database:
        samples.submission(database, user, site.gated, samples.timed(site.gated, 2.0))
    assert "1 of 2 passed" in check(ada.get("/"))


def test_a_closed_stage_stays_to_be_read_and_keeps_what_was_passed(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        samples.submission(database, user, site.values, samples.accepted(site.values))
        database.add(StageSwitch(stage=site.values.name, enabled=False))
    for page in ("/", "/stages"):
        text = check(ada.get(page))
        assert "Online softmax" in text
        assert "<b>closed</b>, to be read" in text
    assert "1 of 2 passed" in check(ada.get("/"))
    lesson = check(ada.get("/stages/online_softmax"))
    assert "takes no submissions" in lesson
    assert "closed by an administrator" in lesson


def test_a_stage_that_is_being_proven_is_not_called_closed(site: Site) -> None:
    with transaction() as database:
        database.execute(delete(StageVersion).where(StageVersion.stage == "online_softmax"))
    text = check(site.visitor().get("/stages"))
    assert "<b>being proven</b>, opens by itself" in text
    assert "<b>closed</b>" not in text


def test_a_frozen_board_gives_nothing_newer_away(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.values, samples.accepted(site.values))
        database.add(StageSwitch(stage=site.values.name, frozen=True, frozen_at=row.created_at.replace(year=2020)))
    assert "<b>ada</b>" not in check(ada.get("/"))
    assert "Frozen" in check(ada.get("/leaderboard/online_softmax"))


def test_without_a_worker_home_says_that_submissions_wait(site: Site) -> None:
    with transaction() as database:
        database.execute(delete(WorkerRow))
    assert "No worker answers" in check(site.visitor().get("/"))


def test_empty_lists_say_what_to_do(site: Site) -> None:
    _, ada = site.sign_in("ada")
    assert "Nothing submitted yet" in check(ada.get("/me/submissions"))
    assert "Nothing matches" in check(ada.get("/me/submissions?verdict=accepted"))
    assert "Nobody stands here yet" in check(ada.get("/leaderboard/online_softmax"))


def test_my_submissions_filter_and_page(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        for minute in range(60):
            samples.submission(database, user, site.values, samples.accepted(site.values), minutes_ago=minute)
        samples.submission(database, user, site.gated, samples.timed(site.gated, 1.1, Verdict.GATE_MISSED))
    assert check(ada.get("/me/submissions?stage=online_attention")).count('class="row-link') == 1
    assert check(ada.get("/me/submissions?verdict=gate_missed")).count('class="row-link') == 1
    first = check(ada.get("/me/submissions"))
    assert first.count('class="row-link') == 50
    older = first.split("Next page")[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    assert check(ada.get(older)).count('class="row-link') == 11
    check(ada.get("/me/submissions?verdict=nonsense"), 422)


def test_a_speed_board_draws_its_intervals(site: Site) -> None:
    with transaction() as database:
        for place, speedup in enumerate((2.4, 1.9)):
            user = samples.user(database, f"solver{place}")
            samples.submission(database, user, site.gated, samples.timed(site.gated, speedup))
        samples.submission(database, user, site.gated, samples.timed(site.gated, 1.85))
    text = check(site.visitor().get("/leaderboard/online_attention"))
    assert text.count('class="interval"') == 3, "two people and the gate between the axis' ends"
    assert 'aria-label="2.39× to 2.41×"' in text
    places = [text.index(f">{name}<") for name in ("solver0", "solver1", "Gate", "Baseline")]
    assert places == sorted(places)
    assert "How fast everyone is" not in text
    every = check(site.visitor().get("/leaderboard/online_attention?each=submission"))
    assert "3 accepted submissions" in every
    assert "How fast everyone is: median 1.90×, fastest 2.40×" in every
    found = check(site.visitor().get("/leaderboard/online_attention?who=SOLVER1"))
    assert "1 of 2 match" in found
    assert ">solver0<" not in found
    assert "Nobody matches" in check(site.visitor().get("/leaderboard/online_attention?who=nobody"))


def test_the_same_addresses_give_json_to_everyone_else(site: Site) -> None:
    client = site.visitor()
    for path in ("/stages", "/stages/online_softmax", "/leaderboard/online_softmax"):
        answer = client.get(path, headers={"accept": "application/json"})
        assert answer.headers["content-type"] == "application/json"
        assert "accept" in answer.headers["vary"].lower()


def test_a_link_downloads_a_board(site: Site) -> None:
    text = check(site.visitor().get("/leaderboard/online_softmax"))
    for name, kind in (("csv", "text/csv"), ("json", "application/json")):
        link = text.split(f'download="online_softmax.{name}"')[0].rsplit('href="', 1)[1].split('"')[0]
        answer = site.visitor().get("/leaderboard/online_softmax" + link.replace("&amp;", "&"))
        assert answer.headers["content-type"].startswith(kind)


def test_marks_come_from_the_calibration_of_the_model(site: Site) -> None:
    rows = [
        {"name": role, "role": role, "verdict": "accepted", "gradings": 3, "baseline_ms": 0.68, "user_ms": 0.68 / speedup,
         "speedup": speedup, "speedup_low": speedup, "speedup_high": speedup, "share_of_fp32_peak": speedup / 10}
        for role, speedup in (("starter", 1.01), ("solution", 2.5))
    ]  # fmt: skip
    table = {"gpu": "NVIDIA H200", "driver": "580", "measured_on": "2026-01-01", "stage_hash": "0" * 16, "rows": rows}
    folder = site.gated.folder / "calibration"
    folder.mkdir(exist_ok=True)
    (folder / "nvidia_h200.json").write_text(json.dumps(table))
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.gated, samples.timed(site.gated, 2.0))
    time.sleep(2.1)  # the catalogue looks at the folders every two seconds
    text = check(ada.get("/leaderboard/online_attention"))
    text = text.split("<tbody>")[1]
    places = [
        text.index(f">{name}<")
        for name in ("FP32 peak of the card", "The stage’s solution", "ada", "Gate", "The stage’s starter", "Baseline")
    ]
    assert places == sorted(places)
    assert "10.00×" in text
    assert "The stage’s solution" in check(ada.get(f"/submissions/{row.id}"))


def test_built_files_may_be_kept_for_ever(site: Site) -> None:
    text = site.visitor().get("/").text
    for word in ('rel="stylesheet" href="', 'type="module" src="'):
        if word not in text:
            pytest.skip("nothing was bundled: npm run build in web/")
        address = text.split(word)[1].split('"')[0]
        answer = site.visitor().get(address)
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-encoding"] in ("br", "gzip")


def test_a_page_without_the_editor_is_light(site: Site) -> None:
    """Below 100 KB in all: the document as it is sent, and what it loads at once, compressed."""
    client = site.visitor()
    page = client.get("/stages/online_softmax")
    if 'type="module"' not in page.text:
        pytest.skip("nothing was bundled: npm run build in web/")
    weight = len(page.content)
    for address in {
        part.split('"')[0] for word in (' src="/static/', ' href="/static/') for part in page.text.split(word)[1:]
    }:
        with client.stream("GET", f"/static/{address}") as answer:
            weight += sum(len(piece) for piece in answer.iter_raw())
    assert weight < 100_000


def test_only_pages_without_a_secret_are_packed(site: Site) -> None:
    """The length of a packed page that repeats its address tells about the token in it."""
    path = "/leaderboard/online_attention?who=solver"
    assert site.visitor().get(path).headers["content-encoding"] == "gzip"
    own = site.sign_in("ada")[1].get(path)
    assert 'name="csrf_token"' in own.text
    assert "content-encoding" not in own.headers


def test_speedups_are_shown_over_time(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        for minute, speedup in enumerate((2.2, 1.9, 1.1)):
            verdict = Verdict.ACCEPTED if speedup > 1.8 else Verdict.GATE_MISSED
            samples.submission(
                database, user, site.gated, samples.timed(site.gated, speedup, verdict), minutes_ago=minute
            )
        samples.submission(database, user, site.values, samples.accepted(site.values))
    text = check(ada.get("/me/submissions"))
    assert "3 timed submissions in the order they were made, the first 1.10×, the last 2.20×, the best 2.20×" in text
    assert text.count('class="dot') == 3
    assert 'class="dot' not in check(ada.get("/me/submissions?stage=online_softmax"))


def test_two_submissions_are_compared(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        old = samples.submission(
            database,
            user,
            site.gated,
            samples.timed(site.gated, 1.2, Verdict.GATE_MISSED),
            source=b"a\nb\n",
            minutes_ago=9,
        )
        new = samples.submission(database, user, site.gated, samples.timed(site.gated, 2.4), source=b"a\nc\n")
        other = samples.submission(database, user, site.values, samples.accepted(site.values))
    text = check(ada.get("/me/compare", params={"pick": [new.id, old.id]}))
    for part in ("Gate missed", "Accepted", "1.200×", "2.400×", "▲ better +100.0 %", "▲ better −50.0 %", "attend: registers",
                 '<span class="at"></span><span class="at">2</span>+ c</span>'):  # fmt: skip
        assert part in text, part
    assert "2 were chosen" not in check(ada.get("/me/compare", params={"pick": [new.id]}))
    assert "the other to" in check(ada.get("/me/compare", params={"pick": [new.id, other.id]}), 422)
    check(site.sign_in("bob")[1].get("/me/compare", params={"pick": [new.id, old.id]}), 404)


def test_everything_of_ones_own_is_downloaded(site: Site) -> None:
    user, ada = site.sign_in("ada")
    stranger, _ = site.sign_in("bob")
    with transaction() as database:
        row = samples.submission(
            database, user, site.values, samples.accepted(site.values), source=b"MINE = 1\n", filename="../x.py"
        )
        samples.submission(database, stranger, site.values, samples.accepted(site.values))
    answer = ada.get("/me/submissions.zip")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        folder = f"online_softmax/{row.created_at:%Y-%m-%d_%H%M}_{row.id}"
        assert sorted(packed.namelist()) == [f"{folder}/_x.py", f"{folder}/result-1.json"]
        assert packed.read(f"{folder}/_x.py") == b"MINE = 1\n"
        assert json.loads(packed.read(f"{folder}/result-1.json"))["verdict"] == "accepted"
    check(site.visitor().get("/me/submissions.zip"), 401)
