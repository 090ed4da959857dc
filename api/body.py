"""Reading what a client sends: JSON and forms, each bounded in size, depth and time, with errors that say where.

`BodyLimit` counts bytes as they arrive, so a body that is too large is refused before it is held, with or without a
Content-Length. `payload` turns a JSON object or a form into one pydantic model; both are described in the OpenAPI document.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Refusal, invalid, problem_response, shown
from kernelgate.several_files import MOST

Model = TypeVar("Model", bound=BaseModel)

JSON_DEPTH = 16
BODY_SECONDS = 30.0
SMALL_BODY = 64 * 1024
CSRF_FIELD = "csrf_token"
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


class BodyLimit:
    """ASGI middleware: at most `limit(scope)` bytes of body, else 413 while the rest is still on its way.

    Addresses with a NUL are refused here too, before anything looks at them.
    """

    def __init__(self, app: ASGIApp, limit: Callable[[Scope], int]) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            return await problem_response(_nul())(scope, receive, send)
        limit = self.limit(scope)
        stated = Headers(scope=scope).get("content-length", "")
        if stated.isdigit() and int(stated) > limit:
            return await problem_response(_too_large(limit, stated))(scope, receive, send)
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b"")) if message["type"] == "http.request" else 0
            if total > limit:
                raise _too_large(limit, f"more than {limit}")
            return message

        return await self.app(scope, counted, send)


def _nul() -> Refusal:
    """No name, id or search has a NUL, and Postgres refuses to be asked about one."""
    return Refusal(
        "invalid_field", "The address contains the character NUL.", field="path", accepted="text without NUL"
    )


def _too_large(limit: int, value: str) -> Refusal:
    detail = f"The body has {value[:20]} bytes; at most {limit} are read here."
    # The rest of the body is not read, so the connection cannot carry another request.
    return Refusal(
        "body_too_large", detail, field="body", value=value, accepted=f"{limit} bytes", headers={"Connection": "close"}
    )


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def _in_time(reading: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await reading
    except TimeoutError:
        raise Refusal(
            "slow_body", f"The body was not complete after {BODY_SECONDS:g} seconds.", headers={"Connection": "close"}
        ) from None


async def read_json(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Raises Refusal for anything else, with the line and column where it goes wrong."""
    raw: bytes = await _in_time(request.body())
    return parse_json(raw)


def parse_json(raw: bytes) -> dict[str, Any]:
    """Strict JSON (RFC 8259): UTF-8, no NaN, no key twice, at most JSON_DEPTH deep; the outermost value is an object."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8", raw[error.start : error.start + 1].hex()) from error
    _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        near = text[max(error.pos - 20, 0) : error.pos + 20]
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}", near) from error
    except ValueError as error:
        raise _malformed(str(error), None) from error
    if not isinstance(value, dict):
        raise _malformed(f"the outermost value is {type(value).__name__}, not an object", text[:40])
    return value


def _malformed(what: str, value: object) -> Refusal:
    return Refusal("malformed_json", f"Not JSON: {what}.", field="body", value=value, accepted="a JSON object in UTF-8")


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def _check_depth(text: str) -> None:
    """Refuses nesting before the parser recurses into it: a few kilobytes of `[` would exhaust its stack."""
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > JSON_DEPTH:
            raise _malformed(f"nested more than {JSON_DEPTH} deep", None)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {shown(key)!r} stands twice in one object")
        found[key] = value
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


@dataclass(frozen=True)
class Upload:
    """A file of a form, read whole: the limit on the body bounds it. others: further files in the same field."""

    filename: str
    content: bytes
    others: tuple[Upload, ...] = ()


async def read_form(request: Request) -> dict[str, str | Upload]:
    """The fields of a form, each of which stands once but for files; the anti-forgery field is left out. Raises Refusal."""
    fields = _each_once(await form_items(request))
    fields.pop(CSRF_FIELD, None)
    return fields


async def form_items(request: Request) -> list[tuple[str, str | Upload]]:
    """The form as it was sent: at most 40 fields and 16 files. Parsed once a request. Raises Refusal."""
    if not hasattr(request.state, "form_items"):
        _check_charset(request)
        request.state.form_items = await _parsed(request)
    return cast(list[tuple[str, str | Upload]], request.state.form_items)


async def _parsed(request: Request) -> list[tuple[str, str | Upload]]:
    try:
        form: FormData = await _in_time(request.form(max_files=MOST, max_fields=40, max_part_size=2 << 20))
    except HTTPException as error:
        said = shown(error.detail)
        raise Refusal(
            "malformed_form", f"The form cannot be read: {said}", field="body", accepted=" or ".join(FORMS)
        ) from error
    except (UnicodeError, ValueError, AssertionError) as error:
        raise Refusal(
            "malformed_form", "The form cannot be read: its encoding is broken.", field="body", accepted="UTF-8"
        ) from error
    try:
        return [
            (name, value if isinstance(value, str) else Upload(value.filename or "", await value.read()))
            for name, value in form.multi_items()
        ]
    finally:
        await form.close()


def _check_charset(request: Request) -> None:
    """Refuses a `charset=` that is not UTF-8: a form that says utf-7 would mean other text than it shows."""
    found = re.search(r"""charset\s*=\s*["']?([^"';\s]*)""", request.headers.get("content-type", ""), re.IGNORECASE)
    if found is None:
        return
    try:
        name = codecs.lookup(found.group(1)).name
    except LookupError:
        name = ""
    if name not in ("utf-8", "ascii"):
        raise Refusal(
            "malformed_form",
            "The charset of the form is not UTF-8.",
            field="header.content-type",
            value=found.group(1),
            accepted="charset=utf-8, or none",
        )


def _each_once(items: Iterable[tuple[str, str | Upload]]) -> dict[str, str | Upload]:
    fields: dict[str, str | Upload] = {}
    for name, value in items:
        before = fields.get(name)
        if isinstance(before, Upload) and isinstance(value, Upload):
            fields[name] = replace(before, others=(*before.others, value))
            continue
        if name in fields:
            raise Refusal(
                "malformed_form",
                f"The field {shown(name)!r} was sent twice.",
                field=shown(name),
                accepted="each field once",
            )
        fields[name] = value
    return fields


async def read_fields(request: Request) -> dict[str, Any]:
    """A JSON object or a form's text fields, whichever was sent; an empty body without a type is an empty object."""
    kind = content_type(request)
    if kind in FORMS:
        return dict(await read_form(request))
    if kind == "application/json":
        return await read_json(request)
    if not kind and not await _in_time(request.body()):
        return {}
    raise unsupported(request, ("application/json", *FORMS))


def unsupported(request: Request, accepted: Iterable[str]) -> Refusal:
    return Refusal(
        "unsupported_body",
        "The Content-Type is not one that is read here.",
        field="header.content-type",
        value=request.headers.get("content-type", ""),
        accepted=", ".join(accepted),
    )


def validated(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """The fields as `model`. Raises Refusal that names each wrong field."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise invalid(error.errors()) from error


def payload(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency: the body as `model`, from JSON or from a form."""

    async def read(request: Request) -> Model:
        return validated(model, await read_fields(request))

    return read


def described(model: type[BaseModel], *, example: Mapping[str, Any]) -> dict[str, Any]:
    """The `openapi_extra=` of a route that reads `payload(model)`."""
    schema = inlined(model.model_json_schema())
    return {
        "requestBody": {
            "required": bool(schema.get("required")),
            "content": {
                "application/json": {"schema": schema, "example": dict(example)},
                "application/x-www-form-urlencoded": {"schema": schema},
            },
        }
    }


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema with its `$defs` put where they are used: an operation of an OpenAPI document has no `$defs`."""
    definitions = schema.pop("$defs", {})

    def resolve(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                rest = {key: resolve(value) for key, value in node.items() if key != "$ref"}
                return {**resolve(definitions[node["$ref"].rsplit("/", 1)[1]]), **rest}
            return {key: resolve(value) for key, value in node.items()}
        return [resolve(item) for item in node] if isinstance(node, list) else node

    resolved: dict[str, Any] = resolve(schema)
    return resolved
