"""What counts, as Gradescope's autograders write it: results.json of one person in a stage, and of everybody as a ZIP file.

The form is that of its autograder specification: `score` for the whole, a test for each case, a leaderboard for the speedup.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.attempts import Term, term
from api.courses.csv_exports import points_csv
from api.courses.grid import grid
from api.courses.points import Mark, marks
from api.courses.seats import Seat
from kernelgate.evidence import evidence
from kernelgate.models import CourseStage, ResultRow
from kernelgate.protocol import CaseReport, Result
from kernelgate.stages import Stage
from kernelgate.text import plain

_MOST_OUTPUT = 20_000


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
    whole = term(database, by.course)
    mark = marks(whole, stages).get((user, stage), Mark(0.0))
    bodies = _bodies(database, _counted(whole, stage, {user: mark}))
    return results_json(mark, bodies.get(mark.attempt or ""), stages.get(stage))


def archive(database: Session, by: Seat, stages: Mapping[str, Stage]) -> bytes:
    """STAGE/HANDLE/results.json of everybody, and points.csv, which says whose e-mail address is whose."""
    whole = term(database, by.course)
    earned = marks(whole, stages)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("points.csv", points_csv(grid(database, whole, stages)))
        for name, found in _files(database, whole, earned, stages):
            files.writestr(name, json.dumps(found, indent=1))
    return packed.getvalue()


def _files(
    database: Session, whole: Term, earned: Mapping[tuple[int, str], Mark], stages: Mapping[str, Stage]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for rules in whole.rules:
        of_stage = {person.id: earned[person.id, rules.stage] for person in whole.people}
        bodies = _bodies(database, _counted(whole, rules.stage, of_stage))
        for person in whole.people:
            mark = of_stage[person.id]
            result = bodies.get(mark.attempt or "")
            yield f"{_safe(rules)}/{person.handle}/results.json", results_json(mark, result, stages.get(rules.stage))


def _safe(rules: CourseStage) -> str:
    """A stage's name as a folder's: one that was removed may have been called anything."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", rules.stage)


def _counted(whole: Term, stage: str, of_stage: Mapping[int, Mark]) -> dict[str, int]:
    """Submission → the round that counts of it."""
    wanted = {mark.attempt for mark in of_stage.values() if mark.attempt}
    return {
        each.id: each.fixed.round
        for person in whole.people
        for each in whole.attempts.get((person.id, stage), ())
        if each.id in wanted and each.fixed is not None
    }


def _bodies(database: Session, counted: Mapping[str, int]) -> dict[str, Result]:
    rows = database.execute(
        select(ResultRow.submission_id, ResultRow.round, ResultRow.body)
        .where(ResultRow.submission_id.in_([*counted]))
        .order_by(ResultRow.round)
    )
    found: dict[str, Result] = {}
    for name, number, body in rows:
        if number <= counted[name] or name not in found:
            found[name] = Result.model_validate(body)
    return found
