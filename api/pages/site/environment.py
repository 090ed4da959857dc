"""The template environment: everything is escaped, an unknown name is an error, and numbers look the same on every page."""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from api.auth import Identity
from api.body import CSRF_FIELD
from api.courses.announcing import notices
from api.pages.site.assets import asset
from api.problems import Refusal
from kernelgate.evidence import number
from kernelgate.languages import LANGUAGES
from kernelgate.models import Role
from kernelgate.settings import settings
from kernelgate.text import line, plain
from kernelgate.verdicts import ABOUT, State, Verdict


@lru_cache(maxsize=1)
def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(settings().web_dir / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        line=line,
        plain=plain,
        exact=number,
        duration=duration,
        title_word=title_word,
        short=short,
        times=times,
        bytes=size,
        when=when,
        ago=ago,
    )
    found.globals.update(
        asset=asset, languages=LANGUAGES, CSRF_FIELD=CSRF_FIELD, ABOUT=ABOUT, Verdict=Verdict, State=State, Role=Role
    )
    return found


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """The page that `template` makes of `context`. Pages are of one viewer and one moment, so nothing may keep them.

    Packed for those who are signed out: a page of somebody carries their anti-forgery token, and the length of a packed page
    that also repeats what its address says gives such a secret away (BREACH, 2013).
    """
    viewer: Identity | None = getattr(request.state, "identity", None)
    body = (
        environment()
        .get_template(template)
        .render(
            viewer=viewer,
            here=request.url.path,
            settings=settings(),
            origin=origin(request),
            notices=notices(viewer.user_id, request.url.path) if viewer else [],
            **context,
        )
    )
    headers = {"Cache-Control": "no-store", "Vary": "Accept, Cookie, Accept-Encoding"}
    if viewer is None and request.method == "GET" and "gzip" in request.headers.get("accept-encoding", ""):
        return HTMLResponse(gzip.compress(body.encode(), 4, mtime=0), status, {**headers, "Content-Encoding": "gzip"})
    return HTMLResponse(body, status, headers)


def origin(request: Request) -> str:
    """The address people type, without a slash at its end: for `curl` lines and invite links."""
    return settings().public_url.rstrip("/") or str(request.base_url).rstrip("/")


def query(request: Request, **changes: object) -> str:
    """The query string of this page with `changes`; None drops a key."""
    kept: Mapping[str, Any] = {**request.query_params, **changes}
    return str(
        request.url.include_query_params()
        .replace(query="")
        .include_query_params(**{key: value for key, value in kept.items() if value not in (None, "")})
        .query
    )


def duration(ms: float | None) -> str:
    """Milliseconds as a person reads them."""
    if ms is None or not math.isfinite(ms):
        return "–"
    if ms < 10:
        return f"{ms:.2f} ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def short(value: object) -> str:
    """A number in a table: four significant digits; words stay words, bounded."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return line(str(value), 120)
    if isinstance(value, int) or not 1e-3 <= abs(value) < 1e7:
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:,.0f}"


def title_word(text: str) -> str:
    """The first letter in capitals, the rest as it is."""
    return text[:1].upper() + text[1:]


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def size(count: int) -> str:
    return f"{count} bytes" if count < 1024 else f"{count / 1024:.1f} KiB"


def when(moment: datetime | None) -> Markup:
    """A `<time>` in UTC, which the script rewrites in the viewer's zone."""
    return Markup("–") if moment is None else _time(moment, "", _minute(moment))


def ago(moment: datetime | None) -> Markup:
    """A `<time>` as "3 min ago", true in every zone; a script keeps it so, and names the moment when it is pointed at."""
    return Markup("–") if moment is None else _time(moment, f' data-ago title="{_minute(moment)}"', _since(moment))


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _since(moment: datetime) -> str:
    seconds = (datetime.now(UTC) - moment).total_seconds()
    if abs(seconds) > _LONG_AGO_S:
        return _minute(moment)
    for unit, size in _UNITS:
        count = round(abs(seconds) / size)
        if abs(seconds) >= size:
            words = f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}"
            return f"{words} ago" if seconds > 0 else f"in {words}"
    return "just now" if seconds >= 0 else "in a moment"


_LONG_AGO_S = 14 * 86_400
_UNITS = (("day", 86_400), ("h", 3_600), ("min", 60))


def _time(moment: datetime, marks: str, words: str) -> Markup:
    """`marks` and `words` are made here, of digits and our own words: nothing in them needs escaping."""
    utc = moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Markup(f'<time datetime="{utc}"{marks}>{words}</time>')  # noqa: S704


def wait_words(problem: Refusal) -> str:
    """What Retry-After says, in words; "" when it says nothing."""
    seconds = problem.headers.get("Retry-After", "")
    return duration(math.ceil(float(seconds)) * 1000.0) if seconds.isdigit() else ""
