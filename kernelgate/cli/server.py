"""Talking to the server: requests with the stored token, its refusals as messages, its event stream with reconnects."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from kernelgate import __version__
from kernelgate.cli.credentials import Credentials, load
from kernelgate.cli.exits import Exit, stop
from kernelgate.text import line, plain

_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_SILENCE_S = 45.0
"""The server sends a heartbeat every 15 s; a stream silent for three of them is broken."""
_RECONNECTS = 5


class Server:
    """One server. Every method ends the command with a message when the server cannot be reached or refuses."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        headers = {"User-Agent": f"kernelgate/{__version__}", "Accept": "application/json"}
        if credentials.token:
            headers["Authorization"] = f"Bearer {credentials.token}"
        try:
            self._http = httpx.Client(base_url=credentials.url, headers=headers, timeout=_TIMEOUT)
            if self._http.base_url.scheme not in ("http", "https") or not self._http.base_url.host:
                raise ValueError("it is http:// or https:// and a host")
        except (httpx.InvalidURL, ValueError, UnicodeError) as error:
            stop(Exit.USAGE, f"{line(credentials.url)} is not the address of a server: {error}")

    def close(self) -> None:
        self._http.close()

    def json(self, method: str, path: str, **arguments: Any) -> Any:
        """The answer's JSON."""
        answer = self.answer(method, path, **arguments)
        try:
            return answer.json()
        except ValueError:
            stop(
                Exit.NETWORK, f"{self.credentials.url} answered something that is not JSON: is it a Kernelgate server?"
            )

    def text(self, path: str, accept: str) -> str:
        """The answer's text, without anything that steers a terminal."""
        return plain(self.answer("GET", path, headers={"Accept": accept}).text, 1 << 20)

    def answer(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            stop(Exit.NETWORK, f"{self.credentials.url} cannot be reached: {error or type(error).__name__}")
        if not answer.is_success:
            self._refused(answer)
        return answer

    def _refused(self, answer: httpx.Response) -> None:
        message = refusal(answer)
        if answer.status_code in (401, 403):
            hint = "" if self.credentials.token else "; sign in with `kernelgate login`"
            stop(Exit.SIGN_IN, message + hint)
        if answer.status_code >= 500:
            stop(Exit.NETWORK, message)
        stop(Exit.REFUSED, message)

    def events(self, submission_id: str) -> Iterator[dict[str, Any]]:
        """Events as they happen, until the submission is finished. Falls back to asking once a second.

        Raises nothing: a stream that breaks is taken up again after the last event, and when that fails five times in a row
        only the states are reported.
        """
        last, failures = 0, 0
        while failures < _RECONNECTS:
            try:
                for event in self._stream(submission_id, last):
                    last, failures = int(event["id"]), 0
                    yield event
                return
            except (httpx.HTTPError, _StreamRefusedError, ValueError, KeyError):
                failures += 1
                time.sleep(min(0.2 * 2**failures, 2.0))
        yield from self._poll(submission_id)

    def _stream(self, submission_id: str, last: int) -> Iterator[dict[str, Any]]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
        timeout = httpx.Timeout(10.0, read=_SILENCE_S)
        with self._http.stream(
            "GET", f"/submissions/{submission_id}/events", headers=headers, timeout=timeout
        ) as answer:
            if answer.status_code == httpx.codes.NO_CONTENT:
                return
            if answer.status_code != httpx.codes.OK:
                raise _StreamRefusedError
            yield from parse_events(answer.iter_lines())

    def _poll(self, submission_id: str) -> Iterator[dict[str, Any]]:
        state = ""
        while state not in ("done", "cancelled"):
            body = self.json("GET", f"/submissions/{submission_id}")
            if body["state"] != state:
                state = body["state"]
                yield {"id": 0, "kind": "state", "data": {"state": state, "attempt": body["attempt"]}}
            time.sleep(1.0)


class _StreamRefusedError(Exception):
    """The server gave no stream; perhaps too many are open."""


@contextmanager
def server() -> Iterator[Server]:
    """The server that the credentials name."""
    opened = Server(load())
    try:
        yield opened
    finally:
        opened.close()


def parse_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The JSON data of each event in a text/event-stream. Raises ValueError when it is no JSON object."""
    data: list[str] = []
    for text in lines:
        if text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif not text and data:
            event = json.loads("\n".join(data))
            if not isinstance(event, dict):
                raise ValueError("an event that is no object")
            yield event
            data = []


def refusal(answer: httpx.Response) -> str:
    """A problem document as lines for a terminal."""
    try:
        body = answer.json()
        detail, errors = str(body["detail"]), list(body.get("errors", []))
    except (ValueError, KeyError, TypeError):
        return f"the server answered {answer.status_code} {answer.reason_phrase}"
    lines = [line(detail, 1000)]
    for error in errors[:10]:
        parts = [f"{line(str(error.get('field')))}"]
        parts += [f"sent: {line(str(error['value']))}"] if error.get("value") else []
        parts += [f"accepted: {line(str(error['accepted']), 500)}"] if error.get("accepted") else []
        lines.append("  " + "; ".join(parts))
    if body.get("next_step"):
        lines.append("  " + line(str(body["next_step"])))
    return "\n".join(lines)
