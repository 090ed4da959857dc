"""Shipped submissions through the front door: POST to a running service, graded by its worker, read back like anybody would.

`stage verify` grades every shipped file (tests/worker/stages/test_verify.py); here one of each verdict takes the whole way.
"""

from __future__ import annotations

import httpx
import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Example
from kernelgate.verdicts import Verdict
from tests.conftest import Service

STAGE = load_stage(ROOT / "graders" / "online_softmax")
AT_THE_DOOR = {"empty.py", "only_blank_lines.py", "latin_1.bin", "machine_code.bin"}


def one_of_each() -> dict[Verdict, Example]:
    """The first example of each verdict that reaches a worker: empty and binary files are refused before."""
    chosen: dict[Verdict, Example] = {}
    for example in STAGE.examples():
        if example.path.name not in AT_THE_DOOR:
            chosen.setdefault(example.verdict, example)
    return chosen


def text(example: Example) -> bytes:
    """As the stage has it: some files are derived and lie in no folder."""
    return STAGE.files[example.path.relative_to(STAGE.folder).as_posix()]


def test_every_verdict_that_an_ungated_stage_can_give_has_an_example() -> None:
    elsewhere = {Verdict.CORRECT, Verdict.GATE_MISSED, Verdict.JUDGE_ERROR}
    assert set(one_of_each()) == set(Verdict) - elsewhere


@pytest.mark.parametrize("verdict", one_of_each())
def test_a_shipped_submission_gets_its_verdict(service: Service, verdict: Verdict) -> None:
    example = one_of_each()[verdict]
    with httpx.Client(base_url=service.url, timeout=90) as client:
        client.headers["Authorization"] = f"Bearer {service.token(f'sender-{verdict}'.replace('_', '-'))}"
        sent = client.post(
            "/submit",
            data={"stage": STAGE.name, "wait": "60"},
            files={"file": (STAGE.spec.file, text(example))},
        )
        assert sent.status_code == httpx.codes.OK, sent.text
        result = sent.json()["result"]
        assert (result["verdict"], result["reason"]) == (verdict, example.reason or result["reason"])
        evidence = client.get(f"/submissions/{sent.json()['id']}", headers={"Accept": "text/plain"})
    assert evidence.text.startswith("VERDICT")
    assert str(verdict) in evidence.text.splitlines()[0]


def test_whoever_waits_for_text_gets_the_verdict_in_it(service: Service) -> None:
    example = one_of_each()[Verdict.CONTRACT_VIOLATION]
    answer = httpx.post(
        f"{service.url}/submit",
        data={"stage": STAGE.name, "wait": "60"},
        files={"file": (STAGE.spec.file, text(example))},
        headers={"Accept": "text/plain", "Authorization": f"Bearer {service.token('sender-of-text')}"},
        timeout=90,
    )
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.splitlines()[0].startswith("ID ")
    assert str(example.verdict) in answer.text.splitlines()[1]


@pytest.mark.parametrize("name", sorted(AT_THE_DOOR))
def test_what_is_no_text_is_refused_at_the_door_and_said_why(service: Service, name: str) -> None:
    body = (STAGE.folder / "submissions" / "compile_error" / name).read_bytes()
    answer = httpx.post(
        f"{service.url}/submit",
        data={"stage": STAGE.name},
        files={"file": (STAGE.spec.file, body)},
        headers={"Authorization": f"Bearer {service.token('door-' + name.split('.')[0].replace('_', '-'))}"},
        timeout=30,
    )
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == "file"
