"""A real API server on a real socket, over the test's own database and the session's broker, with a stage of its own.

The stage's folder is written here, so that these tests do not depend on the exercises that ship. No worker runs: where a test
needs a graded submission, `Graded` writes the rows a worker would, and says so.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from api.app import create_app
from kernelgate.accounts import create_token, create_user, find_user
from kernelgate.db import engine, notify, transaction
from kernelgate.lifecycle import columns_of
from kernelgate.models import EventRow, ResultRow, Role, Scope, StageVersion, Submission, WorkerRow, now
from kernelgate.protocol import EventKind, NamedMistake, Result, Timing, WrongTensor
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend
from kernelgate.verdicts import State, Verdict

HONEST = "def double(x):\n    return x + x\n"

STAGE = """
title = "Double"
summary = "Double a vector."
path = "test"
order = {order}
language = "pytorch"
file = "double.py"
backends = [{backends}]
ranking = "{ranking}"
sources = "{sources}"
{gate}

[seam]
name = "double"
signature = "double(x)"
contract = {{ x = "[N]" }}

[limits]
source_kb = 4

[tolerance.float32]
absolute = 1e-6
relative = 1e-6

[tensors.y]
title = "y"

[[cases]]
name = "small"
title = "small"
group = "T0"

[[mistakes]]
name = "tripled"
title = "Tripled"
hint = "Twice, not three times."

[[done_when]]
text = "What is twice 21?"
answer = "42"

[evidence]
baseline_ms = "DOUBLE BASELINE MS"
"""


def write_stage(
    graders: Path, name: str, *, order: int = 1, backends: str = '"torch"', ranking: str = "first_accepted",
    sources: str = "owner", gate: float | None = None,
) -> Path:  # fmt: skip
    """A stage folder with every kind of file there is."""
    folder = graders / name
    files = {
        "stage.toml": STAGE.format(
            order=order,
            backends=backends,
            ranking=ranking,
            sources=sources,
            gate=f"[gate]\nspeedup = {gate}" if gate else "",
        ),
        "lesson.md": "# Double\n\nTwice $x$.\n",
        "grader.py": "SECRET = 'grader'\n",
        "driver.py": "SECRET = 'driver'\n",
        "starter/double.py": "def double(x):\n    return x\n",
        "solution/double.py": "SECRET = 'solution'\n",
        "provided/shapes.py": "N = 3\n",
        "submissions/accepted/honest.py": HONEST,
        **({"baseline.py": HONEST} if gate else {}),
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def graders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str) -> Path:  # noqa: ARG001
    """The folder of stages, with `double` in it."""
    folder = tmp_path / "graders"
    folder.mkdir()
    write_stage(folder, "double")
    monkeypatch.setenv("KERNELGATE_GRADERS_DIR", str(folder))
    settings.cache_clear()
    verify(folder / "double")
    return folder


def verify(folder: Path, *, verified: bool = True) -> None:
    """The row a worker writes when the stage's verification passed or failed."""
    stage = load_stage(folder)
    with transaction() as session:
        session.merge(StageVersion(stage=stage.name, hash=stage.hash, verified=verified, report={"by": "fixture"}))


@contextmanager
def running(app: Any) -> Iterator[str]:
    """An application served on a free port of this machine."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=65536,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended while it started"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        app.state.hub.end_streams()
        server.should_exit = True
        thread.join(timeout=15)
        listener.close()
        assert not thread.is_alive(), "the server did not end"


@dataclass
class Api:
    """A running API. `client` is signed out; `as_` gives clients with tokens."""

    url: str
    graders: Path
    stack: ExitStack
    app: Any
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.open()

    def open(self, **headers: str) -> httpx.Client:
        return self.stack.enter_context(httpx.Client(base_url=self.url, headers=headers, timeout=30))

    def token(
        self, handle: str, role: Role = Role.SUBMITTER, scopes: list[Scope] | None = None, days: float = 1
    ) -> str:
        with transaction() as session:
            user = find_user(session, handle) or create_user(session, handle, role)
            return create_token(session, user, scopes=scopes, days=days)[1]

    def as_(self, handle: str, role: Role = Role.SUBMITTER, scopes: list[Scope] | None = None) -> httpx.Client:
        return self.open(Authorization=f"Bearer {self.token(handle, role, scopes)}")

    def submit(self, client: httpx.Client, source: str = HONEST, **fields: str) -> dict[str, Any]:
        answer = client.post("/submit", data={"stage": "double", **fields}, files={"file": ("double.py", source)})
        assert answer.status_code == 202, answer.text
        body: dict[str, Any] = answer.json()
        return body


@pytest.fixture
def api(graders: Path) -> Iterator[Api]:
    """The API over an empty database with the stage `double`, open for submissions."""
    app = create_app()
    with running(app) as url, ExitStack() as stack:
        yield Api(url, graders, stack, app)
    engine().dispose()


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets settings by name, for this test; ask for it before `api` when the application reads them as it starts."""

    def set_them(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"KERNELGATE_{name.upper()}", str(value))
        settings.cache_clear()

    return set_them


def result_of(verdict: Verdict, *, speedup: tuple[float, float, float] | None = None, **changes: Any) -> Result:
    """A made-up result, as a worker would store it."""
    timing = None
    if speedup is not None:
        value, low, high = speedup
        timing = Timing(
            baseline_ms=value, user_ms=1.0, speedup=value, speedup_low=low, speedup_high=high, gate=1.8,
            baseline_samples_ms=(value,), user_samples_ms=(1.0,),
        )  # fmt: skip
    wrong = None
    if verdict is Verdict.WRONG_ANSWER:
        wrong = WrongTensor(
            case="small", tensor="y", index=(1,), axes=("row",), got=float("nan"), want=2.0, error=float("nan"),
            tolerance=1e-6, wrong=2, total=3, pattern="every row from 1 on",
        )  # fmt: skip
    fields: dict[str, Any] = {
        "verdict": verdict, "reason": "passed" if verdict.passes else "wrong_value", "message": "A sentence.",
        "stage": "double", "stage_hash": "0" * 16, "backend": Backend.TORCH, "seed": "00", "timing": timing, "wrong": wrong,
        "mistake": NamedMistake(name="tripled", title="Tripled", hint="Twice.") if wrong else None,
    }  # fmt: skip
    return Result.model_validate({**fields, **changes})


class Graded:
    """Writes what a worker would write. Fixture data: no code was run for it."""

    @staticmethod
    def finish(submission_id: str, result: Result, *, gpu: str | None = None, at: datetime | None = None) -> None:
        timing = result.timing
        with transaction() as session:
            row = session.get_one(Submission, submission_id)
            row.state = State.DONE
            for name, value in {**columns_of(result), "gpu_model": gpu}.items():
                setattr(row, name, value)
            row.claimed_at, row.finished_at = row.created_at, at or now()
            if at is not None:
                row.created_at = at
            session.add(
                ResultRow(
                    submission_id=row.id,
                    round=row.round,
                    attempt=1,
                    worker="fixture",
                    verdict=result.verdict,
                    reason=result.reason,
                    stage_hash=result.stage_hash,
                    speedup=row.speedup,
                    speedup_low=timing.speedup_low if timing else None,
                    speedup_high=timing.speedup_high if timing else None,
                    body=result.stored(),
                    created_at=at or now(),
                )
            )
            Graded._event(session, row, EventKind.STATE, {"state": "done", "attempt": 1})
            Graded._event(session, row, EventKind.RESULT, {"verdict": result.verdict, "reason": result.reason})

    @staticmethod
    def _event(session: Any, row: Submission, kind: EventKind, data: dict[str, Any]) -> None:
        session.add(EventRow(submission_id=row.id, round=row.round, attempt=row.attempt, kind=kind, data=data))
        notify(session, row.id)

    @staticmethod
    def event(submission_id: str, kind: EventKind, data: dict[str, Any]) -> None:
        with transaction() as session:
            Graded._event(session, session.get_one(Submission, submission_id), kind, data)

    @staticmethod
    def run(submission_id: str) -> None:
        """As if a worker had claimed it."""
        with transaction() as session:
            row = session.get_one(Submission, submission_id)
            row.state, row.attempt, row.claimed_at = State.RUNNING, 1, now()
            row.lease_owner, row.lease_until = "fixture", now() + timedelta(minutes=1)
            Graded._event(session, row, EventKind.STATE, {"state": "running", "attempt": 1})


def add_worker(
    name: str = "w1",
    *,
    queues: tuple[str, ...] = ("cpu",),
    gpu: str | None = None,
    age_s: float = 0,
    unwell: str | None = None,
) -> None:
    """A worker's row; `age_s` is how long ago it last reported, `unwell` why it takes no work."""
    seen = now() - timedelta(seconds=age_s)
    backends = ["gpu"] if gpu else ["torch"]
    with transaction() as session:
        session.add(
            WorkerRow(
                name=name,
                queues=list(queues),
                backends=backends,
                gpu_model=gpu,
                healthy=unwell is None,
                health={"card": unwell} if unwell else {},
                started_at=seen,
                heartbeat_at=seen,
            )
        )


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of an answer that must be one, complete."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["code"] == code, body
    assert body["type"] == f"urn:kernelgate:problem:{code}"
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert body["next_step"]
    return body
