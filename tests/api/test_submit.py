"""Submitting: the two forms of a request, and what is refused at the door."""

from __future__ import annotations

from tests.api.conftest import HONEST, Api


def test_multipart_gives_202_with_id_and_addresses(api: Api) -> None:
    client = api.as_("ada")
    answer = client.post("/submit", data={"stage": "double"}, files={"file": ("double.py", HONEST)})
    body = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == body["urls"]["submission"]
    assert body["state"] == "queued"
    assert body["queue"] == "cpu"
    assert client.get(body["urls"]["submission"]).json()["id"] == body["id"]
    assert client.get(body["urls"]["source"]).text == HONEST
