"""The capstone on a machine without a GPU, through the front door: POST to a running service, graded by its worker.

A wrong value goes the same way in tests/browser/test_cuda.py.
"""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from kernelgate.settings import ROOT
from tests.conftest import Service
from worker import backends
from worker.emulator.toolchain import Toolchain

FOLDER = ROOT / "graders" / "online_attention"
STAGE = "online_attention"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def client(service: Service, compiler: Toolchain) -> Any:
    del compiler  # built before the first submission waits for it
    if backends.missing().get(backends.Backend.GPU) is None:
        pytest.skip("this machine has a GPU: the service grades on that")
    with httpx.Client(base_url=service.url, timeout=240) as opened:
        opened.headers["Authorization"] = f"Bearer {service.token('no-gpu')}"
        yield opened


def graded(client: httpx.Client, name: str) -> dict[str, Any]:
    sent = client.post(
        "/submit", data={"stage": STAGE, "wait": "60"}, files={"file": ("attention.cu", (FOLDER / name).read_bytes())}
    )
    assert sent.status_code in (httpx.codes.OK, httpx.codes.ACCEPTED), sent.text
    found = sent.json()
    while found["state"] not in (
        "done",
        "cancelled",
    ):
        time.sleep(0.5)
        found = client.get(f"/submissions/{found['id']}").json()
    return dict(found)


def test_the_solution_is_correct_its_speed_unjudged_and_on_no_board(client: httpx.Client) -> None:
    found = graded(client, "solution/attention.cu")
    result = found["result"]
    assert (result["verdict"], result["reason"]) == ("correct", "speed_not_judged"), result["message"]
    states = [case["state"] for case in result["cases"]]
    assert set(states) == {"right", "not_run"}, "three drawn cases need a GPU"
    assert states.count("right") == 20
    assert result["timing"] is None
    assert result["backend"] == "emulator"
    assert result["machine"]["speed"] == "emulated: speed not judged on this machine"
    shown = client.get(f"/submissions/{found['id']}", headers={"Accept": "text/plain"}).text
    assert "emulated: speed not judged on this machine" in shown
    assert found["id"] not in [row["submission"] for row in client.get(f"/leaderboard/{STAGE}").json()["rows"]]


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        (
            "wrong_answer/racing_tile.cu",
            "race",
            "races with another thread's access: a __syncwarp() or __syncthreads() is missing",
        ),
        ("runtime_error/reads_past_the_end.cu", "illegal_address", "which is no device memory"),
    ],
)
def test_a_wrong_file_is_told_what_is_wrong(client: httpx.Client, name: str, reason: str, words: str) -> None:
    result = graded(client, f"submissions/{name}")["result"]
    assert (result["verdict"], result["reason"]) == (name.split("/")[0], reason), result["message"]
    assert words in result["message"]
    assert "line " in result["message"]
    assert "thread (" in result["message"]
