"""Stages: what a submitter learns of them, and what stays hidden."""

from __future__ import annotations

import json

import pytest

from api.schemas import StageView
from kernelgate.models import Role
from tests.api.conftest import Api, add_worker, problem, verify, write_stage


def test_the_list_says_which_stages_are_open_and_why_others_are_not(api: Api) -> None:
    write_stage(api.graders, "unseen", order=2)
    api.app.state.catalog.reload()
    found = {stage["name"]: stage for stage in api.client.get("/stages").json()}
    assert list(found) == ["double", "unseen"]
    assert (found["double"]["open"], found["double"]["closed_because"]) == (True, None)
    assert found["unseen"]["open"] is False
    assert "No worker has verified" in found["unseen"]["closed_because"]


def test_a_stage_tells_its_contract_and_not_its_answers(api: Api) -> None:
    answer = api.client.get("/stages/double")
    body = answer.json()
    assert StageView.model_validate(body)
    assert body["seam"]["contract"] == {"x": "[N]"}
    assert body["tolerance"]["float32"]["absolute"] == 1e-6
    assert body["mistakes"][0]["hint"] == "Twice, not three times."
    assert body["limits"]["source_kb"] == 4
    assert body["files"] == ["provided/shapes.py", "starter/double.py"]
    assert "42" not in answer.text


def test_a_stage_tells_what_its_own_files_measure(api: Api) -> None:
    assert api.client.get("/stages/double").json()["calibrations"] == []
    row = {"name": "solution", "role": "solution", "verdict": "accepted", "gradings": 3, "baseline_ms": 2.0}
    row |= {"user_ms": 1.0, "speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}
    table = {"gpu": "NVIDIA L4", "driver": "CUDA 13.0", "measured_on": "2026-01-02", "stage_hash": "0" * 16}
    folder = api.graders / "double" / "calibration"
    folder.mkdir()
    (folder / "nvidia_l4.json").write_text(json.dumps({**table, "rows": [row]}))
    (folder / "nvidia_t4.json").write_text("{}")
    api.app.state.catalog.reload()
    body = api.client.get("/stages/double").json()
    assert [found["gpu"] for found in body["calibrations"]] == ["NVIDIA L4"]
    assert body["calibrations"][0]["rows"][0]["speedup"] == 2.0
    assert body["open"], "a calibration makes no new version of a stage"


def test_the_lesson_is_markdown(api: Api) -> None:
    answer = api.client.get("/stages/double/lesson")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith("# Double")


def test_starter_and_provided_files_are_downloads(api: Api) -> None:
    answer = api.client.get("/stages/double/files/starter/double.py")
    assert answer.headers["content-disposition"] == 'attachment; filename="double.py"'
    assert "return x" in answer.text
    assert api.client.get("/stages/double/files/provided/shapes.py").text == "N = 3\n"


@pytest.mark.parametrize(
    "path",
    [
        "solution/double.py",
        "grader.py",
        "driver.py",
        "stage.toml",
        "submissions/accepted/honest.py",
        "provided/../grader.py",
        "starter/..%2f..%2fgrader.py",
        "starter/%2e%2e/solution/double.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "starter/double.py%00",
        "",
    ],
)
def test_nothing_else_of_a_stage_is_served(api: Api, path: str) -> None:
    import socket

    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:  # a client would tidy the path
        request = f"GET /stages/double/files/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 422")), answer
    assert b"SECRET" not in answer


def test_an_unknown_stage_names_those_like_it(api: Api) -> None:
    body = problem(api.client.get("/stages/doubl"), 404, "unknown_stage")
    assert body["errors"][0]["accepted"] == "double"
    problem(api.client.get("/stages/nothing/lesson"), 404, "unknown_stage")


def test_a_changed_folder_is_seen_without_a_restart(api: Api) -> None:
    admin = api.as_("root", Role.ADMIN)
    write_stage(api.graders, "second", order=2)
    (api.graders / "broken").mkdir()
    body = admin.post("/admin/stages/reload").json()
    assert [stage["name"] for stage in body["stages"]] == ["double", "second"]
    assert "stage.toml is missing" in body["broken"]["broken"]
    assert body["stages"][0]["report"] == {"by": "fixture"}
    problem(api.client.get("/stages/broken"), 409, "stage_unverified")


def test_closing_a_stage_refuses_submissions_until_it_opens(api: Api) -> None:
    admin, ada = api.as_("root", Role.ADMIN), api.as_("ada")
    assert admin.post("/admin/stages/double", json={"enabled": False}).json()["open"] is False
    sent = {"stage": "double", "source": "x = 1"}
    assert "closed by an administrator" in problem(ada.post("/submit", json=sent), 409, "stage_closed")["detail"]
    admin.post("/admin/stages/double", json={"enabled": True})
    assert ada.post("/submit", json=sent).status_code == 202
    problem(admin.post("/admin/stages/nothing", json={"enabled": True}), 404, "unknown_stage")


def gpu_stage(api: Api, backends: str) -> None:
    verify(write_stage(api.graders, "fast", backends=backends))
    api.app.state.catalog.reload()


def test_a_gpu_stage_goes_to_a_live_gpus_queue_and_else_to_the_cpu(api: Api) -> None:
    gpu_stage(api, '"gpu", "emulator"')
    ada = api.as_("ada")
    sent = {"stage": "fast", "source": "x = 1"}
    add_worker("dead", queues=("gpu-nvidia-a100",), gpu="NVIDIA A100", age_s=3600)
    assert ada.post("/submit", json=sent).json()["queue"] == "cpu"
    add_worker("alive", queues=("gpu-nvidia-h200",), gpu="NVIDIA H200")
    assert ada.post("/submit", json=sent).json()["queue"] == "gpu-nvidia-h200"


def test_a_wished_gpu_is_given_or_refused(api: Api) -> None:
    gpu_stage(api, '"gpu"')
    ada = api.as_("ada")
    sent = {"stage": "fast", "source": "x = 1"}
    assert "no worker with one is alive" in problem(ada.post("/submit", json=sent), 409, "stage_closed")["detail"]
    for model in ("H200", "A100"):
        add_worker(model, queues=(f"gpu-nvidia-{model.lower()}",), gpu=f"NVIDIA {model}")
    assert ada.post("/submit", json={**sent, "gpu": "nvidia a100"}).json()["queue"] == "gpu-nvidia-a100"
    assert ada.post("/submit", json=sent).json()["queue"] == "gpu-nvidia-h200", "the shorter queue"
    body = problem(ada.post("/submit", json={**sent, "gpu": "TPU"}), 422, "invalid_field")
    assert body["errors"][0]["accepted"] == "NVIDIA A100, NVIDIA H200"
    answer = ada.post("/submit", json={"stage": "double", "source": "x = 1", "gpu": "NVIDIA H200"})
    assert problem(answer, 422, "invalid_field")["errors"][0]["field"] == "gpu"
