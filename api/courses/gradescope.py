"""What counts, as Gradescope's autograders write it: results.json of one person in a stage, and of everybody as a ZIP file.

The form is that of its autograder specification: `score` for the whole, a test for each case, a leaderboard for the speedup.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.csv_exports import points_csv
from api.courses.kept import Standing, standing
from api.courses.points import Mark
from api.courses.seats import Seat
from kernelgate.evidence import evidence
from kernelgate.models import ResultRow
from kernelgate.protocol import CaseReport, Result
from kernelgate.stages import Stage
from kernelgate.text import plain

_MOST_OUTPUT = 20_000
_PACKED: dict[int, tuple[Standing, bytes]] = {}
_MOST_PACKED = 8


def results_json(mark: Mark, result: Result | None, stage: Stage | None) -> dict[str, Any]:
    """Of what counts; without anything that counts, a score of the points alone."""
    found: dict[str, Any] = {"score": round(mark.points, 4), "visibility": "visible", "stdout_visibility": "hidden"}
    notes = [f"Points given by hand: {mark.override}."] if mark.override is not None else []
    notes += [f"{mark.late} days late."] if mark.late else []
    notes += [f"Paid with {mark.days} late days."] if mark.days else []
    if result is None:
        said = " ".join(notes) or "Nothing that counts was submitted."
        return {**found, "output": said, "output_format": "text", "tests": []}
    shown = plain(evidence(result, stage.spec.evidence if stage is not None else None), _MOST_OUTPUT)
    found |= {
        "output": "\n".join([*notes, shown]),
        "output_format": "text",
        "execution_time": round(sum(result.phases.values()) / 1000, 3),
        "extra_data": {"submission": mark.attempt, "verdict": str(result.verdict), "stage_hash": result.stage_hash},
        "tests": [_test(number, case) for number, case in enumerate(result.cases, 1)],
    }
    if result.timing is not None:
        found["leaderboard"] = [{"name": "Speedup", "value": round(result.timing.speedup, 4), "order": "desc"}]
    return found


def _test(number: int, case: CaseReport) -> dict[str, Any]:
    found = {"number": str(number), "name": case.title, "output_format": "text", "visibility": "visible"}
    if case.state == "not_run":
        return {**found, "output": "Not run."}
    return {**found, "output": "", "status": "passed" if case.state == "right" else "failed"}


def of_person(database: Session, by: Seat, user: int, stage: str, stages: Mapping[str, Stage]) -> dict[str, Any]:
    """Of one person in one stage of the course."""
    whole = standing(database, by.course, stages)
    mark = whole.marks.get((user, stage), Mark(0.0))
    bodies = _bodies(database, whole.rounds, [mark])
    return results_json(mark, bodies.get(mark.attempt or ""), stages.get(stage))


def archive(database: Session, by: Seat, stages: Mapping[str, Stage]) -> bytes:
    """STAGE/HANDLE/results.json of everybody, and points.csv, which says whose e-mail address is whose.

    Thousands of results are read for it: it is kept for as long as the standing that it was packed of.
    """
    whole = standing(database, by.course, stages)
    kept = _PACKED.get(by.course.id)
    if kept is not None and kept[0] is whole:
        return kept[1]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as files:
        files.writestr("points.csv", points_csv(whole.grid))
        for name, found in _files(database, whole, stages):
            files.writestr(name, json.dumps(found))
    while len(_PACKED) >= _MOST_PACKED:
        _PACKED.pop(next(iter(_PACKED)), None)
    _PACKED[by.course.id] = (whole, packed.getvalue())
    return packed.getvalue()


def _files(database: Session, whole: Standing, stages: Mapping[str, Stage]) -> Iterator[tuple[str, dict[str, Any]]]:
    for stage in whole.grid.stages:
        bodies = _bodies(database, whole.rounds, [whole.marks[each.id, stage] for each in whole.people])
        for each in whole.people:
            mark = whole.marks[each.id, stage]
            result = bodies.get(mark.attempt or "")
            yield f"{_safe(stage)}/{each.handle}/results.json", results_json(mark, result, stages.get(stage))


def _safe(stage: str) -> str:
    """A stage's name as a folder's: one that was removed may have been called anything."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", stage)


def _bodies(database: Session, rounds: Mapping[str, int], counted: Iterable[Mark]) -> dict[str, Result]:
    """By submission, the judging that counts."""
    wanted = {name: rounds[name] for mark in counted if (name := mark.attempt) and name in rounds}
    rows = database.execute(
        select(ResultRow.submission_id, ResultRow.round, ResultRow.body)
        .where(ResultRow.submission_id.in_([*wanted]))
        .order_by(ResultRow.round)
    )
    bodies: dict[str, dict[str, Any]] = {}
    for name, number, body in rows:
        if number <= wanted[name] or name not in bodies:
            bodies[name] = body
    return {name: Result.model_validate(body) for name, body in bodies.items()}
