"""Which form of an answer a client wants: the same address gives a page to a browser and JSON to everyone else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match
from starlette.types import Scope

HTML = "text/html"
JSON = "application/json"
TEXT = "text/plain"


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """The media ranges of an Accept header with their quality; what cannot be read counts as not sent."""
    for part in accept.split(",")[:40]:
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = min(max(float(parameter[2:]), 0.0), 1.0)
                except ValueError:
                    quality = 0.0
        if "/" in name:
            yield name.lower(), quality


def preferred(accept: str, offered: Sequence[str]) -> str:
    """The best of `offered` (the server's favourite first) for an Accept header (RFC 9110, 12.5.1).

    A type that nobody offers, or no header at all, gives the first: an answer in another form beats a 406.
    """

    def quality(offer: str) -> float:
        family = offer.split("/")[0] + "/*"
        found = dict(_ranges(accept))
        return next((found[name] for name in (offer, family, "*/*") if name in found), 0.0)

    return max(offered, key=quality) if accept else offered[0]


def prefers_html(scope: Scope) -> bool:
    """Whether a browser asks: HTML stands above JSON and plain text in the Accept header."""
    return preferred(Headers(scope=scope).get("accept", ""), (JSON, TEXT, HTML)) == HTML


class HtmlRoute(APIRoute):
    """A page. It answers only those who prefer HTML; for others the API's route at the same address answers.

    `?format=` asks for a file by a link, which cannot send an Accept header of its own.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and (not prefers_html(scope) or b"format" in _parameters(scope)):
            return Match.NONE, {}
        return super().matches(scope)


def _parameters(scope: Scope) -> list[bytes]:
    return [part.split(b"=")[0] for part in scope["query_string"].split(b"&") if not part.endswith(b"=")]


def see_other(request: Request, path: str) -> Response | None:
    """After a form was sent by a browser: a redirect to the page that shows what came of it; None for API clients."""
    return RedirectResponse(path, 303) if prefers_html(request.scope) else None
