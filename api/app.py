"""The application: what `kernelgate serve` runs. `create_app()` makes one; nothing happens when this module is imported.

A request passes, from the outside in: headers and measurement, the limit on its body, the routes. Pages stand before the
API's routes at the same addresses and answer only those who prefer HTML (see negotiation.HtmlRoute).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.types import Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from api.body import SMALL_BODY, BodyLimit
from api.catalog import Catalog
from api.doorbell import Doorbell
from api.events import Hub
from api.headers import Headers
from api.limits import Streams
from api.metrics import Metrics
from api.pages import Static, problem_page
from api.pages import router as pages
from api.problems import Problem, Refusal, documented, handle
from api.routes import (
    admin,
    admin_grading,
    contests,
    course_exports,
    course_grading,
    course_marks,
    course_people,
    courses,
    health,
    leaderboard,
    me,
    session,
    stages,
    submissions,
    submit,
    talking,
    webhooks,
)
from api.webhooks.courier import Courier
from kernelgate import __version__
from kernelgate.settings import settings

_THREADS = 20
"""Requests that talk to Postgres at once; below the pool's 24 connections, so none waits for one."""

DESCRIPTION = """
Grades GPU kernels. Submit a file with `POST /submit`, follow it under `/submissions/{id}/events`, read its verdict under
`/submissions/{id}`. Errors are RFC 9457 problem documents. Sign in with `Authorization: Bearer kg_…`.
"""

TAGS = [
    {"name": "submissions", "description": "Files in, verdicts out."},
    {"name": "stages", "description": "The exercises and their leaderboards."},
    {"name": "account", "description": "Signing in, one's own submissions and tokens."},
    {
        "name": "courses",
        "description": "Terms: people, stages with times, grid and points. Changes need the scope `submit` and a seat that "
        "allows them: a course's instructors change it, its assistants judge again, hide, extend, freeze and announce.",
    },
    {"name": "admin", "description": "For administrators: a session, or a token with the scope `admin`."},
    {"name": "health", "description": "For machines that watch."},
]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    app.state.hub.start()
    app.state.doorbell.start()
    app.state.courier.start()
    yield
    await anyio.to_thread.run_sync(app.state.courier.stop)
    await app.state.hub.stop()
    await anyio.to_thread.run_sync(app.state.doorbell.stop)


def create_app() -> FastAPI:
    """The whole application over the process's settings."""
    app = FastAPI(
        title="Kernelgate",
        version=__version__,
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.catalog = Catalog(settings().graders_dir)
    app.state.streams = Streams()
    app.state.hub = Hub()
    app.state.doorbell = Doorbell()
    app.state.courier = Courier()
    app.state.metrics = Metrics(lambda: app.state.streams.total)
    app.state.problem_page = problem_page
    app.add_middleware(BodyLimit, limit=body_limit)
    app.add_middleware(Headers, metrics=app.state.metrics)
    # Outermost: everything behind it sees the visitor's address. Of a list of addresses the last that is no proxy counts,
    # for whatever stands before it the visitor wrote himself.
    app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=[each.strip() for each in settings().proxies.split(",")])
    for error in (Refusal, RequestValidationError, HTTPException, DBAPIError, PoolTimeoutError):
        app.add_exception_handler(error, handle)
    app.include_router(pages)
    for module in (
        submit,
        submissions,
        stages,
        leaderboard,
        session,
        me,
        courses,
        course_people,
        course_grading,
        course_marks,
        course_exports,
        contests,
        talking,
        webhooks,
        admin_grading,
        admin,
        health,
    ):
        app.include_router(module.router)
    app.mount("/static", Static(directory=settings().web_dir / "static", check_dir=False), name="static")
    app.openapi = partial(openapi, app)  # type: ignore[method-assign]
    return app


def body_limit(scope: Scope) -> int:
    """Bytes a request's body may have: a source may arrive as JSON, which spends up to six bytes on one of them."""
    return 6 * settings().source_limit + SMALL_BODY if scope["path"] == "/submit" else SMALL_BODY


def _name_refused_fields(document: dict[str, Any]) -> None:
    """Puts our problem document where the framework describes its own form of a refused parameter, which is never sent."""
    for operation in (each for path in document["paths"].values() for each in path.values()):
        if "application/json" in operation["responses"].get("422", {}).get("content", {}):
            operation["responses"]["422"] = documented("invalid_field")[422]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: the routes', with the problem document's schema and the two ways to sign in."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        parts = document.setdefault("components", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        parts.setdefault("schemas", {}).update({**problem.pop("$defs", {}), "Problem": problem})
        _name_refused_fields(document)
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "An API token, `kg_…`."},
            "session": {"type": "apiKey", "in": "cookie", "name": "kernelgate", "description": "A signed-in browser."},
        }
        document["security"] = [{}, {"token": []}, {"session": []}]
        app.openapi_schema = document
    return app.openapi_schema
