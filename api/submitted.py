"""Reading what is submitted, from JSON, from `curl -F` and from a browser's form: one reader, so one set of rules."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from api.body import FORMS, Upload, content_type, read_form, read_json, unsupported, validated
from api.problems import Refusal
from api.schemas import SubmitBody, SubmitForm
from api.sent import Sent


async def read_submission(request: Request, via: str) -> tuple[Sent, float | None]:
    """What was sent, and its `wait`."""
    kind = content_type(request)
    if kind == "application/json":
        body = validated(SubmitBody, await read_json(request))
        return Sent(
            body.stage, _encoded(body.source), body.filename, gpu=body.gpu, via=via, run=body.run, inputs=body.inputs
        ), body.wait
    if kind in FORMS:
        return await _read_form(request, via)
    raise unsupported(request, ("multipart/form-data", "application/json"))


async def _read_form(request: Request, via: str) -> tuple[Sent, float | None]:
    """A browser's form has an editor and a file to choose: a chosen file counts, else the text."""
    fields: dict[str, Any] = {**await read_form(request)}
    upload, text = fields.pop("file", None) or None, fields.pop("source", None)
    chosen = isinstance(upload, Upload) and bool(upload.filename or upload.content or text is None)
    filename = fields.pop("filename", None) if text is not None and not chosen else None
    form = validated(SubmitForm, {name: value for name, value in fields.items() if value != "" or name == "stage"})
    stated: dict[str, Any] = {"gpu": form.gpu, "via": via, "run": form.run, "inputs": form.inputs}
    if isinstance(upload, Upload) and chosen:
        others = tuple((each.filename, each.content) for each in upload.others)
        return Sent(form.stage, upload.content, upload.filename, others=others, **stated), form.wait
    if isinstance(text, str) and (upload is None or isinstance(upload, Upload)):
        # HTML forms send every line end as CRLF.
        return Sent(form.stage, _encoded(text.replace("\r\n", "\n")), filename, **stated), form.wait
    raise Refusal(
        "invalid_field",
        "The field `file` is missing or is no file.",
        field="file",
        value=upload,
        accepted="a file, as in: curl -F stage=… -F file=@name",
    )


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise Refusal(
            "not_utf8",
            f"Character {error.start} (U+{code:04X}) is half of a surrogate pair.",
            field="source",
            accepted="UTF-8 text",
        ) from error
