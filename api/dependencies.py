"""What routes ask for: who is calling, with which right, and the parts of the application that live as long as it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from api.auth import Identity, challenge, check_same_site, identify_safely
from api.catalog import Catalog
from api.doorbell import Doorbell
from api.events import Hub
from api.limits import Streams
from api.problems import Refusal
from kernelgate.accounts import scopes_of
from kernelgate.models import Scope


async def same_site(request: Request) -> None:
    check_same_site(request)


async def viewer(request: Request) -> Identity | None:
    """Whoever asks; None for a stranger. Raises Refusal for a token that may not even read."""
    identity = await identify_safely(request)
    return None if identity is None else _with_scope(_within(request, identity), Scope.READ)


def requires(scope: Scope) -> Callable[[Request], Awaitable[Identity]]:
    """A dependency: a signed-in caller whose token and account have `scope`."""

    async def signed_in(request: Request) -> Identity:
        identity = await identify_safely(request)
        if identity is None:
            raise challenge("not_signed_in", "This needs a token or a browser session.")
        return _with_scope(_within(request, identity), scope)

    return signed_in


def _within(request: Request, identity: Identity) -> Identity:
    """Raises Refusal for a token of one course anywhere else: what is not that course's own address is not for it."""
    if identity.course is not None and request.path_params.get("course") != identity.course:
        raise Refusal(
            "missing_scope",
            f"The token is good for the course {identity.course} alone.",
            field="header.authorization",
            accepted=f"a token that is not confined, or an address under /courses/{identity.course}",
        )
    return identity


def _with_scope(identity: Identity, scope: Scope) -> Identity:
    if identity.may(scope):  # no role below admin may have the scope admin
        return identity
    if scope in identity.scopes or (identity.via == "session" and scope not in scopes_of(identity.role)):
        raise Refusal("missing_role", f"This needs an administrator; {identity.handle} is {identity.role!s}.")
    has = ", ".join(sorted(identity.scopes)) or "none"
    whose = "the token that the session was opened with" if identity.via == "session" else "the token"
    raise Refusal(
        "missing_scope",
        f"This needs the scope {scope!s}; {whose} has: {has}.",
        field="header.authorization",
        accepted=f"a token with the scope {scope!s}",
        headers={"WWW-Authenticate": f'Bearer realm="kernelgate", error="insufficient_scope", scope="{scope!s}"'},
    )


def catalog(request: Request) -> Catalog:
    return cast(Catalog, request.app.state.catalog)


def doorbell(request: Request) -> Doorbell:
    return cast(Doorbell, request.app.state.doorbell)


def hub(request: Request) -> Hub:
    return cast(Hub, request.app.state.hub)


def streams(request: Request) -> Streams:
    return cast(Streams, request.app.state.streams)


Viewer = Annotated[Identity | None, Depends(viewer)]
Reader = Annotated[Identity, Depends(requires(Scope.READ))]
Submitter = Annotated[Identity, Depends(requires(Scope.SUBMIT))]
Admin = Annotated[Identity, Depends(requires(Scope.ADMIN))]
StageCatalog = Annotated[Catalog, Depends(catalog)]
Bell = Annotated[Doorbell, Depends(doorbell)]
EventHub = Annotated[Hub, Depends(hub)]
OpenStreams = Annotated[Streams, Depends(streams)]
SubmissionId = Annotated[
    str,
    Path(
        description="The submission's id: 16 hex digits, or the first 8 and more.",
        max_length=64,
        examples=["9f2c4e61a07b3d58"],
    ),
]
Handle = Annotated[str, Path(max_length=64, description="The account's handle.", examples=["ada"])]
StageName = Annotated[str, Path(description="The stage's name.", max_length=64, examples=["online_softmax"])]
CourseName = Annotated[str, Path(description="The course's name.", max_length=64, examples=["gpu-2027"])]
