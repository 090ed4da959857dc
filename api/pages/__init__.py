"""HTML pages, at the addresses of the API's routes they show."""

from __future__ import annotations

from fastapi import APIRouter

from api.negotiation import HtmlRoute

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
problem_page = None
