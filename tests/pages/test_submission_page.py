"""A submission's page in each of its states, and that nothing a submitter wrote leaves it unescaped or unbounded."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
import struct
import zlib

import pytest

from api.pages.drawings import errormap, weights
from api.pages.drawings.speed import ladder
from kernelgate.db import transaction
from kernelgate.faster import Bound
from kernelgate.models import Role
from kernelgate.protocol import ErrorMap, Faster, Recovered, Table
from kernelgate.verdicts import State, Verdict
from tests.pages import samples
from tests.pages.conftest import Site, check

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'\u202egnp.sj"


def test_it_waits_then_runs(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.values, state=State.QUEUED)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "Queued" in text
    assert "Next in the queue" in text
    assert '<noscript><meta http-equiv="refresh"' in text
    assert f'data-events="/submissions/{row.id}/events"' in text
    with transaction() as database:
        row = database.merge(row)
        row.state, row.attempt = State.RUNNING, 1
        samples.event(database, row, "state", state="running", attempt=1)
        samples.event(database, row, "phase", phase="load", state="started")
        samples.event(database, row, "phase", phase="load", state="ended", ms=41.0)
        samples.event(database, row, "phase", phase="cases", state="started")
        samples.event(database, row, "case", index=0, total=3, name="rectangular", state="right", ms=3.0)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "1 of 3" in text
    assert '<li class="past" data-phase="load"' in text
    assert '<li class="now" data-phase="cases"' in text
    assert '<li class="case right" data-case="rectangular"' in text


def test_a_wrong_answer_teaches(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.values, samples.wrong_from_row(site.values))
    text = check(ada.get(f"/submissions/{row.id}"))
    for part in ("Wrong answer", "The old normalizer is not rescaled", "[row 16, dim 0]", "every row from 16 on", "1.57128906",
                 "0.78562915",
                 "Wrong: row 16 to 36, dim 0 to 7; 168 of 296 cells, 8 of them NaN or infinite", "VERDICT"):  # fmt: skip
        assert part in text, part
    picture = ada.get(f"/submissions/{row.id}/error-map.png")
    assert picture.headers["content-type"] == "image/png"
    width, height = struct.unpack(">II", picture.content[16:24])
    assert (width, height) == (8, 37)
    start = picture.content.index(b"IDAT")
    length = struct.unpack(">I", picture.content[start - 4 : start])[0]
    lines = zlib.decompress(picture.content[start + 4 : start + 4 + length])
    assert set(lines[: 9 * 16]) == {0}, "rows 0 to 15 are within the tolerance"
    assert set(lines[9 * 30 + 1 : 9 * 31]) == {255}, "row 30 is NaN"


def test_recovered_weights_stand_beside_the_true_ones(site: Site) -> None:
    user, ada = site.sign_in("ada")
    cells = [base64.b64encode(bytes(each)).decode() for each in ((254, 0, 127, 127), (0, 0, 254, 255))]
    found = Recovered(
        case="tiles", title="2 rows × 2 keys", said=("Row t sees the keys 0 to t - 1.",), text=("@· | ··",), rows=2, columns=2,
        want=cells[0], got=cells[1], ms=3.5,
    )  # fmt: skip
    with transaction() as database:
        wrong = samples.wrong_from_row(site.values).model_copy(update={"recovered": found, "possible": ()})
        row = samples.submission(database, user, site.values, wrong)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "Row t sees the keys 0 to t - 1." in text
    assert '<path d="M0 0h1v1h-1z" fill="currentColor" fill-opacity="1.0"/>' in text, "the true map's first cell"
    assert '<path d="M1 1h1v1h-1z" fill="#7d55f0" fill-opacity="1.0"/>' in text, "a weight that is none"
    assert weights.maps(found.model_copy(update={"got": "AAAA"})) is None
    said_alone = found.model_copy(update={"rows": 0, "columns": 0, "got": "", "want": "", "text": ()})
    assert weights.maps(said_alone) is None


def test_an_error_names_its_line(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(
            database, user, site.values, samples.failed_at_line(site.values, 7), source=samples.STARTER.encode()
        )
    assert f'/submissions/{row.id}/source#L7" data-line="7">line 7' in check(ada.get(f"/submissions/{row.id}"))
    assert '<span class="line marked" id="L7">' in check(ada.get(f"/submissions/{row.id}/source"))
    assert "The two are the same" in check(ada.get(f"/submissions/{row.id}/source?against=starter"))


def test_every_compiler_error_stands_at_its_line(site: Site) -> None:
    user, ada = site.sign_in("ada")
    log = (
        'attention.cu(2): error: identifier "row_maximum" is undefined\n'
        "/scratch/attention.cu:1:5: error: expected ‘;’ before ‘}’ token\n"
        "attention.h(2): error: not of this file\nattention.cu(2): warning #177-D: a variable was declared\n"
        '4 errors detected in the compilation of "attention.cu".\n'
    )
    broken = samples.result(site.gated, Verdict.COMPILE_ERROR, "compiler", "It does not compile.", log=log, cases=())
    with transaction() as database:
        row = samples.submission(
            database, user, site.gated, broken, source=b"void f() { return }\nint x = row_maximum;\n"
        )
    text = check(ada.get(f"/submissions/{row.id}"))
    assert text.index("source#L2") < text.index("source#L1"), "the first error is looked at first"
    listing = check(ada.get(f"/submissions/{row.id}/source"))
    for number, message in ((1, "expected ‘;’ before ‘}’ token"), (2, "identifier &#34;row_maximum&#34; is undefined")):
        assert f'<span class="unseen">About line {number}: </span>▲ {message}' in listing
    edited = check(ada.get(f"/stages/online_attention?from={row.id}"))
    found = json.loads(html.unescape(edited.split('data-faults="')[1].split('"')[0]))
    assert [line for line, _ in found] == [2, 1]
    assert f'<option value="{row.id}">' in edited, "an earlier submission can be compared with"


def test_a_measured_one_shows_its_interval(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.gated, samples.timed(site.gated, 2.41))
    text = check(ada.get(f"/submissions/{row.id}"))
    for part in ("Accepted", "2.41×", "95 %: 2.40× to 2.42×; gate 1.80×", "0.3208 ms", '<path class="user"', "42 %", "none",
                 "33.0 KiB", "SM clock MHz"):  # fmt: skip
        assert part in text, part
    rungs = [text.index(f'<th scope="row">{name}</th>') for name in ("Baseline", "Gate", "Yours")]
    assert rungs == sorted(rungs)
    assert "FP32 peak" not in text, "nobody measured the share of the peak"


def test_the_ladder_ends_at_the_cards_peak(site: Site) -> None:
    measured = samples.timed(site.gated, 2.0).timing
    assert measured is not None
    facts = {"share_of_fp32_peak": 0.25, "gflop_per_s": 16_000.0}
    found = ladder(measured.model_copy(update={"facts": facts}))
    assert [(rung.title, rung.speedup) for rung in found.rungs][-1] == ("FP32 peak of the card", 8.0)
    assert [round(rung.share or 0, 3) for rung in found.rungs] == [0.125, 0.225, 0.25, 1.0]
    assert found.peak == 64_000.0
    assert found.rungs[-1].ms == measured.user_ms / 4


def test_a_measurement_is_shown_while_it_converges(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        row = samples.submission(database, user, site.gated, state=State.RUNNING)
        row.attempt = 1
        samples.event(database, row, "state", state="running", attempt=1)
        samples.event(database, row, "phase", phase="measure", state="started")
        samples.event(database, row, "measure", pairs=10, speedup=1.9, low=1.6, high=2.2)
    assert "the gate is still inside the interval of 1.80×" in check(ada.get(f"/submissions/{row.id}"))
    with transaction() as database:
        samples.event(database, database.merge(row), "measure", pairs=30, speedup=1.9, low=1.85, high=1.95)
        samples.event(database, database.merge(row), "measure", pairs=31, speedup="NaN", low="NaN", high="NaN")
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "after 30 pairs, 95 % between 1.85× and 1.95×" in text
    assert "clear above the gate of 1.80×" in text


@pytest.mark.parametrize(("backend", "says"), [("emulator", "An emulated run"), ("interpreter", "An interpreted run")])
def test_a_run_without_a_gpu_says_what_it_proves(site: Site, backend: str, says: str) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        graded = samples.result(site.gated, Verdict.CORRECT, backend=backend)
        row = samples.submission(database, user, site.gated, graded)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert says in text
    assert "It cannot say" in text
    assert "waits for a GPU" in text


def test_borders_of_tiles_stand_where_the_tiles_end() -> None:
    """Cells of 6 columns do not divide tiles of 16, and the last cell reaches beyond a tensor of 512."""
    found = ErrorMap(rows=33, columns=86, row_axis="token", column_axis="column", row_step=1, column_step=6,
                     cells=base64.b64encode(bytes(32 * 86) + bytes([9]) * 86).decode())  # fmt: skip
    drawn = errormap.picture(found)
    assert (drawn.tile_rows, drawn.tile_columns) == (16, 16)
    assert drawn.borders_across == [(16.0, False), (32.0, False)]
    assert drawn.borders_down[:4] == [(2.6667, False), (5.3333, False), (8.0, False), (10.6667, True)]
    words = errormap.summary(found, (33, 512))
    assert words is not None
    assert (words.rows, words.columns) == ("32", "0 to 511")


def test_a_right_one_is_told_its_next_step_with_links_to_the_lines(site: Site) -> None:
    user, ada = site.sign_in("ada")
    faster = Faster(bound=Bound.UNCOALESCED, sentence="Line 3: <b>32</b> sectors.", step="Turn the loop.", lines=(3,))
    with transaction() as database:
        right = samples.result(site.values, Verdict.ACCEPTED, faster=faster)
        row = samples.submission(database, user, site.values, right)
    for path in (f"/submissions/{row.id}", f"/submissions/{row.id}/answer"):
        text = ada.get(path).text
        for part in ("How to get faster", "&lt;b&gt;32&lt;/b&gt; sectors.", "Turn the loop.", f"{row.id}/source#L3"):
            assert part in text, part
    assert ada.get(f"/submissions/{row.id}", headers={"Accept": "application/json"}).json()["result"]["faster"][
        "lines"
    ] == [3]


def test_tables_are_shown_and_downloaded(site: Site) -> None:
    user, ada = site.sign_in("ada")
    table = Table(title="T", columns=("size", "=cmd()"), rows=((1, 2.5e-7), (3, "@sum")))
    with transaction() as database:
        row = samples.submission(
            database, user, site.values, samples.result(site.values, Verdict.ACCEPTED, tables=(table,))
        )
    assert f'href="/submissions/{row.id}/tables/0.csv"' in check(ada.get(f"/submissions/{row.id}"))
    answer = ada.get(f"/submissions/{row.id}/tables/0.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert list(csv.reader(io.StringIO(answer.text))) == [["size", "'=cmd()"], ["1", "2.5e-07"], ["3", "'@sum"]]
    check(ada.get(f"/submissions/{row.id}/tables/1.csv"), 404)


def test_others_see_nothing_of_it(site: Site) -> None:
    user, _ = site.sign_in("ada")
    _, bob = site.sign_in("bob")
    _, teacher = site.sign_in("teacher", Role.INSTRUCTOR)
    with transaction() as database:
        row = samples.submission(database, user, site.values, samples.wrong_from_row(site.values), source=b"MINE = 1\n")
    for path in ("", "/source", "/file", "/error-map.png"):
        assert bob.get(f"/submissions/{row.id}{path}").status_code == 404
        assert teacher.get(f"/submissions/{row.id}{path}").status_code == 200


def test_nothing_a_submitter_writes_is_markup(site: Site) -> None:
    user, ada = site.sign_in("ada")
    _, root = site.sign_in("root", Role.ADMIN)
    table = Table(title=EVIL, columns=(EVIL,), rows=((EVIL,),))
    with transaction() as database:
        found = samples.wrong_from_row(site.values)
        assert found.wrong is not None
        assert found.wrong.map is not None
        evil_map = found.wrong.map.model_copy(update={"row_axis": EVIL, "column_axis": EVIL})
        evil = found.model_copy(
            update={
                "message": EVIL,
                "output": EVIL * 1000,
                "log": EVIL,
                "tables": (table,),
                "machine": {EVIL: EVIL},
                "wrong": found.wrong.model_copy(
                    update={"pattern": EVIL, "tensor": EVIL, "axes": (EVIL, EVIL), "map": evil_map}
                ),
                "cases": tuple(case.model_copy(update={"title": EVIL, "group": EVIL}) for case in found.cases),
            }
        )
        row = samples.submission(database, user, site.values, evil, source=EVIL.encode(), filename=EVIL[:90])
    pages = {
        ada: (f"/submissions/{row.id}", f"/submissions/{row.id}/source", f"/submissions/{row.id}/source?against=starter",
              f"/stages/online_softmax?from={row.id}", "/me/submissions"),
        root: ("/admin/submissions", f"/submissions/{row.id}", "/admin/stages/online_softmax"),
    }  # fmt: skip
    for client, paths in pages.items():
        for path in paths:
            text = check(client.get(path))
            assert "<script>alert" not in text
            assert "<img src=x" not in text
            assert len(text) < 300_000
    assert "\u202e" not in ada.get(f"/submissions/{row.id}").text
    download = ada.get(f"/submissions/{row.id}/file")
    assert download.headers["content-disposition"].startswith("attachment")
    assert "<" not in download.headers["content-disposition"]


def test_a_problem_repeats_what_was_sent_as_text(site: Site) -> None:
    for path in (f"/stages/{EVIL[:40]}", f"/leaderboard/online_softmax?gpu={EVIL[:40]}", f"/sign-in?next={EVIL}"):
        assert "<script>alert" not in site.visitor().get(path).text


def test_a_race_is_headed_as_a_race_and_leads_to_both_lines(site: Site) -> None:
    message = "Race on shared memory in line 26. The other access is a write: line 33."
    user, ada = site.sign_in("ada")
    with transaction() as database:
        found = samples.result(site.gated, Verdict.WRONG_ANSWER, "race", message, cases=())
        row = samples.submission(database, user, site.gated, found)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "Two threads use one address without order." in text
    assert "At least one value differs" not in text
    for number in (26, 33):
        assert f'href="/submissions/{row.id}/source#L{number}"' in text


def test_a_compilers_last_line_stands_first(site: Site) -> None:
    error = "AttributeError: module 'triton.language' has no attribute 'exp3'"
    log = "def kernel(x):\n" + "    y = x\n" * 14 + error + "\n"
    user, ada = site.sign_in("ada")
    with transaction() as database:
        found = samples.result(site.values, Verdict.COMPILE_ERROR, "kernel_error", log, log=log, cases=())
        row = samples.submission(database, user, site.values, found)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "has no attribute &#39;exp3&#39;" in text.partition('id="log-title"')[0]


def test_what_needs_a_gpu_is_not_counted_as_not_right(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        found = samples.result(site.values, Verdict.CORRECT, "speed_not_judged")
        last = found.cases[-1].model_copy(update={"state": "not_run", "tensors": (), "ms": None})
        row = samples.submission(
            database, user, site.values, found.model_copy(update={"cases": (*found.cases[:-1], last)})
        )
    text = check(ada.get(f"/submissions/{row.id}"))
    assert f'{len(found.cases) - 1}<span class="quiet"> / {len(found.cases) - 1}</span>' in text
    assert "1 more need a GPU" in text


def test_groups_of_cases_stand_in_the_order_they_run(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        found = samples.result(site.values, Verdict.ACCEPTED)
        groups = ("Trace", "Algebra", "trace")
        cases = tuple(
            case.model_copy(update={"group": group}) for case, group in zip(found.cases, groups, strict=False)
        )
        row = samples.submission(database, user, site.values, found.model_copy(update={"cases": cases}))
    text = check(ada.get(f"/submissions/{row.id}"))
    assert re.findall(r'class="group" href="[^"]*">(\w+)', text) == list(groups[: len(cases)])
