"""Bodies of a submission that are no request: malformed JSON, odd forms, too large, too slow."""

from __future__ import annotations

import json
import socket

import pytest

from tests.api.conftest import HONEST, Api, problem

MALFORMED = {
    b"": "Expecting value at line 1, column 1",
    b'{"stage": "double",\n "source" "x"}': "at line 2, column 11",
    b"[1]": "the outermost value is list",
    b'{"stage": "a", "stage": "b"}': "stands twice",
    b'{"wait": NaN}': "NaN is not JSON",
    b'{"stage": "\xff"}': "byte 11 is not UTF-8",
    b"[" * 100_000: "nested more than 16 deep",
    b'{"a":' * 20 + b"1" + b"}" * 20: "nested more than 16 deep",
    b'{"wait": 1' + b"0" * 5000 + b"}": "",
}


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_json_is_refused_with_its_place(api: Api, body: bytes) -> None:
    answer = api.as_("ada").post("/submit", content=body, headers={"Content-Type": "application/json"})
    assert MALFORMED[body] in problem(answer, 400, "malformed_json")["detail"]


def test_brackets_inside_strings_are_no_nesting(api: Api) -> None:
    source = HONEST + "# " + "[{" * 50 + '\\"' + "\n"
    assert api.as_("ada").post("/submit", json={"stage": "double", "source": source}).status_code == 202


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"stage": "double"}, "source"),
        ({"source": HONEST}, "stage"),
        ({"stage": "double", "source": HONEST, "soruce": "x"}, "soruce"),
        ({"stage": "double", "source": HONEST, "wait": "soon"}, "wait"),
        ({"stage": "double", "source": HONEST, "wait": -1}, "wait"),
        ({"stage": "double", "source": ["x"]}, "source"),
        ({"stage": None, "source": HONEST}, "stage"),
        ({"stage": "a\x00b", "source": HONEST}, "stage"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(api: Api, body: dict[str, object], field: str) -> None:
    answer = api.as_("ada").post("/submit", json=body)
    found = problem(answer, 422, "invalid_field")["errors"][0]
    assert found["field"] == field
    assert found["problem"]


def test_half_a_surrogate_pair_is_refused(api: Api) -> None:
    sent = json.dumps({"stage": "double", "source": "x"}).replace('"x"', '"# \\ud800"')
    answer = api.as_("ada").post("/submit", content=sent, headers={"Content-Type": "application/json"})
    assert "U+D800" in problem(answer, 422, "not_utf8")["detail"]


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/octet-stream", "nonsense"])
def test_another_type_of_body_is_refused(api: Api, kind: str) -> None:
    answer = api.as_("ada").post("/submit", content=b"x", headers={"Content-Type": kind})
    assert "multipart/form-data" in problem(answer, 415, "unsupported_body")["errors"][0]["accepted"]


def multipart(*parts: bytes, boundary: bytes = b"XX") -> bytes:
    return b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts) + b"--" + boundary + b"--\r\n"


STAGE_PART = b'Content-Disposition: form-data; name="stage"\r\n\r\ndouble'
FILE_PART = b'Content-Disposition: form-data; name="file"; filename="double.py"\r\n\r\n' + HONEST.encode()

ODD_FORMS = {
    "no boundary": ("multipart/form-data", multipart(STAGE_PART, FILE_PART), 400, "malformed_form"),
    "other boundary": ("multipart/form-data; boundary=YY", multipart(STAGE_PART, FILE_PART), 400, "malformed_form"),
    "twice": ("multipart/form-data; boundary=XX", multipart(STAGE_PART, STAGE_PART, FILE_PART), 400, "malformed_form"),
    "two files": (
        "multipart/form-data; boundary=XX",
        multipart(STAGE_PART, FILE_PART, FILE_PART),
        422,
        "wrong_filename",
    ),
    "many files": ("multipart/form-data; boundary=XX", multipart(STAGE_PART, *[FILE_PART] * 17), 400, "malformed_form"),
    "a file and a text": (
        "multipart/form-data; boundary=XX",
        multipart(STAGE_PART, FILE_PART, b'Content-Disposition: form-data; name="file"\r\n\r\nx'),
        400,
        "malformed_form",
    ),
    "nameless": (
        "multipart/form-data; boundary=XX",
        multipart(b"Content-Disposition: form-data\r\n\r\nx"),
        400,
        "malformed_form",
    ),
    "many fields": (
        "multipart/form-data; boundary=XX",
        multipart(*(b'Content-Disposition: form-data; name="f%d"\r\n\r\nx' % n for n in range(60))),
        400,
        "malformed_form",
    ),
    "utf-7": (
        "multipart/form-data; charset=utf-7; boundary=XX",
        multipart(STAGE_PART, FILE_PART),
        400,
        "malformed_form",
    ),
    "unknown field": (
        "multipart/form-data; boundary=XX",
        multipart(STAGE_PART, FILE_PART, b'Content-Disposition: form-data; name="verdict"\r\n\r\naccepted'),
        422,
        "invalid_field",
    ),
    "file as text": (
        "multipart/form-data; boundary=XX",
        multipart(STAGE_PART, b'Content-Disposition: form-data; name="file"\r\n\r\nx'),
        422,
        "invalid_field",
    ),
    "no file": ("multipart/form-data; boundary=XX", multipart(STAGE_PART), 422, "invalid_field"),
    "no stage": ("multipart/form-data; boundary=XX", multipart(FILE_PART), 422, "invalid_field"),
}


@pytest.mark.parametrize("name", ODD_FORMS)
def test_an_odd_form_is_refused(api: Api, name: str) -> None:
    kind, body, status, code = ODD_FORMS[name]
    answer = api.as_("ada").post("/submit", content=body, headers={"Content-Type": kind})
    problem(answer, status, code)


def test_a_body_that_says_it_is_huge_is_refused_unread(api: Api) -> None:
    with _raw(api, b"Content-Length: 1000000000\r\n") as connection:
        head = _whole(connection)
    assert head.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in head
    assert b"body_too_large" in head


def test_a_body_that_does_not_say_is_refused_while_it_streams(api: Api) -> None:
    """Chunked, endless: the answer comes after the limit and long before the end, which there is not."""
    with _raw(api, b"Transfer-Encoding: chunked\r\n") as connection:
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        sent = 0
        try:
            while sent < 64 << 20:
                connection.sendall(chunk)
                sent += 65536
                connection.settimeout(0.001)
                try:
                    head = connection.recv(65536)
                    break
                except TimeoutError:
                    connection.settimeout(10)
        except (BrokenPipeError, ConnectionResetError):
            head = connection.recv(65536)
    assert head.startswith(b"HTTP/1.1 413")
    assert sent < 16 << 20


def _whole(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    answer = b""
    while chunk := connection.recv(65536):
        answer += chunk
    return answer


def _raw(api: Api, header: bytes) -> socket.socket:
    host, port = api.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    token = api.token("ada").encode()
    connection.sendall(
        b"POST /submit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "
        + token
        + b"\r\n"
        + header
        + b"\r\n"
    )
    return connection


def test_a_body_that_never_comes_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.body.BODY_SECONDS", 0.5)
    with _raw(api, b"Content-Length: 100\r\n") as connection:
        head = _whole(connection)
    assert head.startswith(b"HTTP/1.1 408")
    assert b"slow_body" in head
