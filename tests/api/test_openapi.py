"""The OpenAPI document is complete, and so are the documentation and the tests of every problem."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from api.app import create_app
from api.problems import KINDS
from api.reference import api_page
from kernelgate.settings import ROOT
from tests.api.conftest import Api, problem

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app().openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, entry in document["paths"].items():
        for method in METHODS & set(entry):
            yield f"{method.upper()} {path}", entry[method]


def test_every_operation_says_what_it_is_for(document: dict[str, Any]) -> None:
    found = dict(operations(document))
    assert len(found) > 35
    tags = {tag["name"] for tag in document["tags"]}
    for name, operation in found.items():
        assert operation["summary"], name
        assert operation["description"], name
        assert set(operation["tags"]) <= tags, name


def test_every_answer_has_a_schema_or_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status in ("204", "303"):
                continue
            assert answer.get("content"), f"{name} {status}"
            for kind, content in answer["content"].items():
                assert content.get("schema") or content.get("example"), f"{name} {status} {kind}"


def test_every_refusal_of_an_operation_is_a_problem_with_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, answer in operation["responses"].items():
            if int(status) < 400 or (name == "GET /readyz" and status == "503"):
                continue
            content = answer["content"].get("application/problem+json")
            assert content, f"{name} {status}: {answer}"
            assert content["examples"], f"{name} {status}"


def test_every_body_has_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        body = operation.get("requestBody")
        if body is not None:
            assert body["content"]["application/json"]["example"], name
            assert "$defs" not in str(body), name


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    for reference in set(re.findall(r"#/components/schemas/([A-Za-z0-9_-]+)", str(document))):
        assert reference in document["components"]["schemas"]


def test_every_kind_of_problem_is_documented_for_an_operation(document: dict[str, Any]) -> None:
    everywhere = {"internal_error", "not_found", "method_not_allowed"}
    of_pages = {
        "identity_taken", "last_credential", "no_account", "no_provider", "own_sign_in_first", "provider_failed",
        "sign_in_lost", "unusable_recovery",
    }  # fmt: skip
    named = {
        code
        for _, operation in operations(document)
        for answer in operation["responses"].values()
        for code in answer.get("content", {}).get("application/problem+json", {}).get("examples", {})
    }
    assert set(KINDS) - named - everywhere == of_pages


def test_an_address_that_leads_nowhere_is_not_found(api: Api) -> None:
    problem(api.client.get("/nowhere"), 404, "not_found")


@cache
def checked_words() -> set[str]:
    """What tests of the API assert, hand to `problem` or keep in a table of cases: not what merely stands in their text."""
    words = set()
    for path in (ROOT / "tests" / "api").glob("test_*.py"):
        tree = ast.parse(path.read_text())
        places = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        for node in ast.walk(tree):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", ""))
            if isinstance(node, ast.Assert) or called in ("problem", "parametrize"):
                places.append(node)
        words |= {each.value for node in places for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return {word.decode(errors="replace") if isinstance(word, bytes) else str(word) for word in words}


@pytest.mark.parametrize("code", KINDS)
def test_every_kind_of_problem_has_a_test(code: str) -> None:
    assert code in checked_words()


def test_the_api_page_is_what_the_code_says() -> None:
    assert (ROOT / "docs" / "api.md").read_text() == api_page(), "write it again: python -m api.reference > docs/api.md"


def test_the_document_is_served(api: Api) -> None:
    body = api.client.get("/openapi.json").json()
    assert body["info"]["title"] == "Kernelgate"
    assert api.client.get("/docs").status_code == 404, "its page would load scripts from elsewhere"
