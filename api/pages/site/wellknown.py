"""Addresses that browsers and crawlers ask for without having been told of them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, RedirectResponse, Response

files = APIRouter(include_in_schema=False)
ROBOTS = "User-agent: *\nDisallow: /submissions/\nDisallow: /me\nDisallow: /admin\nDisallow: /invite/\n"


@files.get("/robots.txt")
def robots() -> Response:
    return PlainTextResponse(ROBOTS, headers={"Cache-Control": "public, max-age=86400"})


@files.get("/favicon.ico")
def favicon() -> Response:
    return RedirectResponse("/static/favicon.svg", 308, headers={"Cache-Control": "public, max-age=86400"})
