"""docs/api.md: the routes, verdicts and problems, written from the code, so the page cannot say anything the code does not.

`python -m api.reference > docs/api.md` writes it; a test fails when it lags behind.
"""

from __future__ import annotations

import sys
from typing import Any

from api.app import TAGS, create_app
from api.problems import KINDS
from kernelgate.protocol import EventKind
from kernelgate.verdicts import ABOUT, Phase, State

GUIDE = """# The HTTP API

This page is written by `python -m api.reference` from the code. The OpenAPI document, with the schema and an example of every
body, answer and problem, is served under `/openapi.json`.

## In one minute

Make a token under `/me/tokens` (or with `kernelgate token create`), and:

```sh
curl -H "Authorization: Bearer $KERNELGATE_TOKEN" \\
     -F stage=online_softmax -F file=@online_softmax.py -F wait=60 http://127.0.0.1:8000/submit
```

The answer is the finished submission (200) when the verdict came within `wait` seconds, else (202) its addresses.
JSON does the same: `{"stage": "online_softmax", "source": "…", "wait": 60}`. Then:

```sh
curl -H "Authorization: Bearer $KERNELGATE_TOKEN" -H "Accept: text/plain" http://127.0.0.1:8000/submissions/ID
curl -N -H "Authorization: Bearer $KERNELGATE_TOKEN" http://127.0.0.1:8000/submissions/ID/events
```

## Forms of an answer

The same address answers in several forms, by the `Accept` header: JSON to everyone who asks for nothing else, a page to
browsers, the evidence block as `text/plain` for a submission, CSV as `text/csv` for a leaderboard. Numbers that JSON does not
have are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`. Times are in UTC, ISO 8601.

Routes that change something read JSON or, as HTML forms send them, `application/x-www-form-urlencoded` fields. Unknown fields
are refused. A browser's form is answered with a redirect to the page that shows what came of it.

## Signing in

- **Token**: `Authorization: Bearer kg_…`. A token has the scopes `read`, `submit`, `admin` or some of them, and an
  end. A token made with a token has no scope and no day that the maker's lacks, and is revoked with it. Only its hash is
  stored. How many an account may have, and make in an hour, are [settings](settings.md).
- **Browser session**: `POST /sign-in` with `handle` and `password`, or with a token that may read, sets an `HttpOnly` cookie;
  signing in with a provider is for browsers alone. The session is what it was opened with, in another form, and ends with it:
  one of a token may do what the token may and makes what the token could make; one of a person may do what the account might
  when it began, and the tokens made in it are the person's own.
  Every change made with the cookie carries the session's anti-forgery value, as header `X-CSRF-Token` or form field
  `csrf_token`; `GET /me` tells it. Requests that another site caused are refused.

## Running one case

With `run=first`, or `run=` and the name of a case that is neither measured nor needs a GPU, `POST /submit` runs that case and
nothing else: `curl … -F stage=online_softmax -F file=@online_softmax.py -F run=hand_update -F wait=20`. The answer's
`result.values` are the case's numbers (inputs, what came out, what should have) where its arrays are small, and `result.output`
what was printed. `inputs` puts values of your own in the place of floating-point inputs, `{"scores": [[0, 1.5]]}`, as many as
the input has. A run is no attempt: it passes nothing, stands in no list and on no board, is seen by its owner, instructors and
administrators alone, has limits of its own, and is forgotten a day after it ended.

## Submitting the same thing once

With `Idempotency-Key: <1 to 128 printable characters>` a repeated request gives the submission that the first one
made. The same key with another stage, file or name is refused.

## Who sees a submission

Its owner, instructors and administrators; others only where the stage says that its sources are shown to `everyone`, or to
`solvers`, and the submission is not hidden. To everyone else it does not exist: 404, as for an id that never was.

## Results that are held

A time that cannot be is stored and does not count: `held` says why, in a sentence. The submission stands on no board and is
shown to its owner, instructors and administrators alone. An administrator decides under `/admin/held`: *release* lets it
count, ranked by when it was submitted; *dismiss* keeps it hidden. Both are in the audit log.

## Limits

Pending submissions, submissions within 60 minutes, runs likewise and failed sign-ins are counted in Postgres and hold across
processes and parallel requests; open event streams are counted in each process. Beyond a limit comes 429 with
`Retry-After`. What the service itself breaks (`judge_error`) does not count. The numbers are [settings](settings.md).

## Live events

`GET /submissions/{id}/events` is a stream of server-sent events: first those stored, then each as it happens, until
the submission is finished. Each has an `id`; a client that lost the connection sends the last one as `Last-Event-ID`
and misses nothing (browsers do it by themselves). When nothing is left to come, the answer is 204, which tells a
browser not to connect again. A comment every 15 seconds shows that the connection lives. The data of each event is
JSON, `{"id": …, "kind": …, "at": …, "data": {…}}`:
"""


def api_page() -> str:
    """The whole page."""
    document = create_app().openapi()
    return "\n".join(
        [
            GUIDE,
            *_events(),
            *_words(),
            "## Routes\n",
            *(line for tag in TAGS for line in _routes(document, tag)),
            *_problems(),
        ]
    )


_EVENTS = {
    EventKind.STATE: '`{"state": …, "attempt": n}`, with a `note` when it went back to the queue',
    EventKind.PHASE: '`{"phase": …, "state": "started" or "ended", "ms": …}`',
    EventKind.CASE: '`{"index": i, "total": n, "name": …, "state": "right", "wrong" or "failed", "ms": …}`, counted from 0',
    EventKind.MEASURE: '`{"pairs": n, "speedup": …, "low": …, "high": …}`, while a measurement converges',
    EventKind.RESULT: '`{"verdict": …, "reason": …, "message": …}`',
}

_PHASES = {
    Phase.COMPILE: "the source becomes device code or a program",
    Phase.RECORD: "the submission's host code runs once a case, without a GPU, and its launches are recorded",
    Phase.LOAD: "the submission is loaded and its contract looked at",
    Phase.CASES: "every case runs",
    Phase.MEASURE: "baseline and submission are timed in turn",
    Phase.JUDGE: "values are compared with the reference, on the trusted side",
}

_STATES = {
    State.QUEUED: "waiting for a worker",
    State.RUNNING: "a worker has it",
    State.DONE: "it has a verdict",
    State.CANCELLED: "it was called off and has none",
}


def _events() -> list[str]:
    rows = [f"| `{kind}` | {_EVENTS[kind]} |" for kind in EventKind]
    return ["| kind | data |", "|---|---|", *rows, ""]


def _words() -> list[str]:
    states = [f"| `{state}` | {_STATES[state]} |" for state in State]
    phases = [f"| `{phase}` | {_PHASES[phase]} |" for phase in Phase]
    verdicts = [f"| `{verdict}` | {about.title} | {about.meaning} |" for verdict, about in ABOUT.items()]
    return [
        "## Verdicts\n", "| verdict | title | meaning |", "|---|---|---|", *verdicts, "",
        "## States\n", "| state | meaning |", "|---|---|", *states, "",
        "## Phases\n", "| phase | what happens |", "|---|---|", *phases, "",
    ]  # fmt: skip


def _routes(document: dict[str, Any], tag: dict[str, str]) -> list[str]:
    lines = [f"### {tag['name'].capitalize()}\n", tag["description"], ""]
    for path, entry in document["paths"].items():
        for method, operation in entry.items():
            if tag["name"] not in operation["tags"]:
                continue
            answers = ", ".join(sorted(status for status in operation["responses"]))
            text = " ".join(operation["description"].split())
            lines += [f"- **`{method.upper()} {path}`**: {operation['summary']}. {text} Answers: {answers}."]
    return [*lines, ""]


def _problems() -> list[str]:
    rows = [f"| `{code}` | {kind.status} | {kind.title} | {kind.next_step} |" for code, kind in KINDS.items()]
    return [
        "## Problems\n",
        "A refusal is an RFC 9457 document of type `application/problem+json`: `type` (`urn:kernelgate:problem:` and the",
        "code), `title`, `status`, `detail` (what happened), `code`, `next_step`, and `errors`, which names each wrong",
        "`field` with its `value`, the `problem` and what is `accepted`.\n",
        "| code | status | title | next step |", "|---|---|---|---|", *rows, "",
    ]  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(api_page())
