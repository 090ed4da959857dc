"""The repository's documentation as pages: what a user of this service can look up without leaving it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dependencies import Viewer
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.pages.text.lesson import render_lesson
from api.problems import Refusal
from kernelgate.settings import ROOT

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
FOR = {
    "For students": ("submitting", "course", "grading", "cli", "api", "triton", "emulator", "measuring"),
    "For teachers and authors": ("courses", "stages", "stage-reference", "exploits"),
    "For operators": ("deploy", "settings", "sandbox", "threat-model"),
}
"""Documents by who looks them up, in the order to read them; the others are listed last."""
_TITLE = re.compile(r"\A\s*# (.+)\n")
_LESSON = re.compile(r"\]\(\.\./graders/(\w+)/lesson\.md\)")
"""A link to a lesson in the repository; here the stage's page has it."""


@cache
def documents() -> dict[str, tuple[str, str]]:
    """Name → (title, Markdown below it) of every document under docs/."""
    found = {}
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = _LESSON.sub(r"](/stages/\1)", path.read_text())
        title = _TITLE.match(text)
        found[path.stem] = (title[1] if title else path.stem, text[title.end() :] if title else text)
    return found


@router.get("/docs")
def contents(request: Request, viewer: Viewer) -> Response:  # noqa: ARG001 - the header shows the viewer
    known = documents()
    groups = {group: {name: known[name][0] for name in names if name in known} for group, names in FOR.items()}
    rest = {name: title for name, (title, _) in known.items() if not any(name in names for names in FOR.values())}
    groups["How the service works"] = rest
    return page(request, "docs.html", title="Documentation", name="", groups=groups, lesson=None)


@router.get("/docs/{name}")
def document(request: Request, viewer: Viewer, name: str) -> Response:  # noqa: ARG001 - the header shows the viewer
    name = Path(name).stem
    if name not in documents():
        raise Refusal("not_found", f"There is no document of that name; there are {', '.join(documents())}.")
    title, text = documents()[name]
    return page(request, "docs.html", title=title, name=name, found={}, lesson=render_lesson("", text, top=2))
