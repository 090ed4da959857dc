"""Signing in and out with a browser, signing up, accepting an invite."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.auth import clear_cookie, set_cookie
from api.body import described, payload
from api.dependencies import same_site, viewer
from api.negotiation import see_other
from api.problems import Refusal, documented
from api.schemas import NewAccountBody, SignedIn, SignedUp, SignInBody
from api.sign_in import Opened, accept_invite, local_page, sign_in, sign_in_by_password, sign_out, sign_up

router = APIRouter(tags=["account"])
_REFUSALS = documented("malformed_json", "cross_site", "invalid_field", "too_many_sign_ins")


def _answer(request: Request, response: Response, opened: Opened, page: str, *, new: bool = True) -> Any:
    redirect = see_other(request, page)
    set_cookie(redirect or response, opened.cookie)
    if redirect is not None:
        return redirect
    body = {"handle": opened.handle, "role": opened.role, "csrf_token": opened.csrf}
    return SignedUp.model_validate({**body, "token": opened.token}) if new else SignedIn.model_validate(body)


@router.post(
    "/sign-in",
    summary="Open a browser session with a token or a password",
    response_model=SignedIn,
    dependencies=[Depends(same_site)],
    openapi_extra=described(SignInBody, example={"token": "kg_…"}),
    responses={
        **_REFUSALS,
        **documented(
            "unknown_token",
            "expired_token",
            "revoked_token",
            "wrong_password",
            "missing_scope",
            "account_disabled",
            "no_passwords",
        ),
    },
)
async def post_sign_in(
    request: Request, response: Response, body: Annotated[SignInBody, Depends(payload(SignInBody))]
) -> Any:
    """Sets the session's cookie. Changes made with it carry `csrf_token` in the header `X-CSRF-Token`."""
    if body.token is not None:
        opened = await run_in_threadpool(sign_in, request, body.token)
    elif body.handle is not None:
        opened = await run_in_threadpool(sign_in_by_password, request, body.handle, body.password or "")
    else:
        raise Refusal(
            "invalid_field", "Nothing to sign in with.", field="token", accepted="token, or handle and password"
        )
    return _answer(request, response, opened, local_page(body.next), new=False)


@router.post(
    "/sign-up",
    summary="Make an account",
    status_code=201,
    response_model=SignedUp,
    dependencies=[Depends(same_site)],
    openapi_extra=described(NewAccountBody, example={"handle": "ada"}),
    responses={**_REFUSALS, **documented("signup_closed", "no_passwords", "handle_taken", "too_many_sign_ups")},
)
async def post_sign_up(
    request: Request, response: Response, body: Annotated[NewAccountBody, Depends(payload(NewAccountBody))]
) -> Any:
    """Where sign-up is open: an account and a browser session; without a password, also its first token."""
    return _answer(
        request, response, await run_in_threadpool(sign_up, request, body.handle, body.password), "/me/tokens"
    )


@router.post(
    "/invite/{secret}",
    summary="Accept an invite",
    status_code=201,
    response_model=SignedUp,
    dependencies=[Depends(same_site)],
    openapi_extra=described(NewAccountBody, example={"handle": "ada"}),
    responses={**_REFUSALS, **documented("unusable_invite", "no_passwords", "handle_taken")},
)
async def post_invite(
    request: Request,
    response: Response,
    secret: Annotated[str, Path(max_length=200, description="The last part of the invite's link.")],
    body: Annotated[NewAccountBody, Depends(payload(NewAccountBody))],
) -> Any:
    """An account with the invite's role and a browser session; without a password, also its first token."""
    return _answer(
        request,
        response,
        await run_in_threadpool(accept_invite, request, secret, body.handle, body.password),
        "/me/tokens",
    )


@router.post(
    "/sign-out",
    summary="End the browser session",
    status_code=204,
    response_class=Response,
    dependencies=[Depends(viewer)],
    responses=documented("csrf_failed", "cross_site"),
)
def post_sign_out(request: Request) -> Response:
    """Ends it on the server too: the cookie is worth nothing afterwards."""
    sign_out(request)
    response = see_other(request, "/") or Response(status_code=204)
    clear_cookie(response)
    return response
