"""Proves a running service: submits a stage's shipped solution over HTTP, as anyone would, and waits for the verdict.

The submission belongs to an account of its own, is hidden as soon as it exists, and is deleted afterwards: it must show on
no leaderboard, and nobody may read the solution through it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from sqlalchemy import delete, update

from embedded.errors import EmbeddedError
from kernelgate.accounts import create_token, create_user, find_user
from kernelgate.db import transaction
from kernelgate.models import Submission, Token
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Verdict

HANDLE = "kernelgate-sample"
PATIENCE_S = 180.0
LOOK_S = 0.05


@dataclass(frozen=True)
class Proof:
    """How the sample went. `seconds`: from POST to the verdict; `evidence`: the plain-text result."""

    stage: str
    verdict: Verdict
    seconds: float
    evidence: str

    @property
    def good(self) -> bool:
        return self.verdict.passes


def choose_sample(stages: dict[str, Stage]) -> Stage | None:
    """The first stage that any machine can grade."""
    return next((stage for stage in stages.values() if Backend.TORCH in stage.spec.backends), None)


def grade_sample(url: str, stage: Stage) -> Proof:
    """Submits the solution of `stage` to the service at `url`. Raises EmbeddedError when no verdict comes."""
    with _account() as token, httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as client:
        started = time.monotonic()
        answer = client.post(
            "/submit",
            json={
                "stage": stage.name,
                "source": stage.text(f"solution/{stage.spec.file}"),
                "filename": stage.spec.file,
            },
            timeout=30,
        )
        if not answer.is_success:
            raise EmbeddedError(f"the sample was not taken: {answer.status_code} {answer.text[:1000]}")
        submission = str(answer.json()["id"])
        with transaction() as session:
            session.execute(update(Submission).where(Submission.id == submission).values(hidden=True))
        verdict = _wait(client, submission)
        seconds = time.monotonic() - started
        evidence = client.get(f"/submissions/{submission}", headers={"Accept": "text/plain"}, timeout=30).text
    return Proof(stage.name, verdict, seconds, evidence)


def _wait(client: httpx.Client, submission: str) -> Verdict:
    deadline = time.monotonic() + PATIENCE_S
    state = "unknown"
    while time.monotonic() < deadline:
        body = client.get(f"/submissions/{submission}", headers={"Accept": "application/json"}, timeout=30).json()
        if body.get("verdict"):
            return Verdict(body["verdict"])
        state = str(body.get("state"))
        time.sleep(LOOK_S)
    raise EmbeddedError(f"the sample is still {state!r} after {PATIENCE_S:.0f} s; see the worker's log")


@contextmanager
def _account() -> Iterator[str]:
    """A short-lived token of the sample's account; what the account submitted is gone before and after."""
    with transaction() as session:
        user = find_user(session, HANDLE) or create_user(session, HANDLE)
        session.execute(delete(Submission).where(Submission.user_id == user.id))
        session.execute(delete(Token).where(Token.user_id == user.id))
        _, secret = create_token(session, user, name="sample", days=0.05)
        user_id = user.id
    try:
        yield secret
    finally:
        with transaction() as session:
            session.execute(delete(Submission).where(Submission.user_id == user_id))
            session.execute(delete(Token).where(Token.user_id == user_id))
