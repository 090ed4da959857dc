"""Signing in with the provider: leaving for it, coming back, and choosing a handle or the account to link.

Leaving is a link and not a form: the page's policy keeps forms, and where they lead, within this service.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from api.auth import set_cookie
from api.body import read_form
from api.dependencies import Viewer, same_site
from api.negotiation import HtmlRoute
from api.own_credentials import descent
from api.pages.account import door
from api.pages.site.environment import origin
from api.problems import Refusal
from api.provider.flows import CALLBACK, LIFE, Choice, come_back, leave, link_account, lost, make_account, pending
from api.sign_in import Opened, local_page
from kernelgate.db import transaction
from kernelgate.settings import settings

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
CHOOSE = "/sign-in/provider/choose"
_LONG = 200


def _cookie_name() -> str:
    return "__Host-kernelgate-flow" if settings().cookie_secure else "kernelgate_flow"


def _cookie(request: Request) -> str:
    return request.cookies.get(_cookie_name(), "")[:_LONG]


@router.get("/sign-in/provider", dependencies=[Depends(same_site)])
def go(request: Request, viewer: Viewer) -> Response:
    """`next`, and what it began with: an `invite` or a `recovery` link."""
    asked = {name: request.query_params.get(name, "")[:_LONG] for name in ("invite", "recovery")}
    left = leave(request, origin(request), viewer, onward=request.query_params.get("next"), **asked)
    response = RedirectResponse(left.address, 303)
    response.set_cookie(
        _cookie_name(),
        left.cookie,
        int(LIFE.total_seconds()),
        path="/",
        httponly=True,
        samesite="lax",
        secure=settings().cookie_secure,
    )
    return response


@router.get(CALLBACK)
def back(request: Request, viewer: Viewer) -> Response:
    """The code in the address is used up when this answers, and no page has it as its address."""
    came = come_back(request, origin(request), viewer, _cookie(request))
    return RedirectResponse(CHOOSE, 303) if isinstance(came, Choice) else _inside(*came)


def _inside(opened: Opened, onward: str) -> Response:
    response = RedirectResponse(local_page(onward), 303)
    response.delete_cookie(_cookie_name(), path="/", httponly=True, samesite="lax", secure=settings().cookie_secure)
    set_cookie(response, opened.cookie)
    return response


@router.get(CHOOSE)
def choose_page(request: Request, viewer: Viewer) -> Response:  # noqa: ARG001 - the header shows the viewer
    return _choose(request)


def _choose(request: Request, *, problem: Refusal | None = None, handle: str = "") -> Response:
    choice = pending(_cookie(request))
    if choice is None:
        raise lost()
    suggested = re.sub(r"[^A-Za-z0-9_.-]+", "", choice.claims.name.split("@")[0]).lstrip("_.-")
    return door(
        request, "link" if choice.linking else "choose", problem=problem, handle=handle or suggested[:39], choice=choice
    )


@router.post(CHOOSE, dependencies=[Depends(same_site)])
async def choose(request: Request, viewer: Viewer) -> Response:
    """A handle for a new account, or the word that this identity is to be linked."""
    handle = str((await read_form(request)).get("handle", ""))[:100]
    if handle:
        try:
            return _inside(*await run_in_threadpool(make_account, request, _cookie(request), handle))
        except Refusal as refusal:
            if refusal.code not in ("handle_taken", "invalid_field"):
                raise
            return await run_in_threadpool(_choose, request, problem=refusal, handle=handle)

    def link() -> tuple[Opened, str]:
        token_id = None
        if viewer is not None:
            with transaction() as database:
                token_id = descent(database, viewer)
        return link_account(request, _cookie(request), viewer, token_id)

    return _inside(*await run_in_threadpool(link))
