"""The pages over a real database on a real socket, with two stages of their own and browsers without script: httpx clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from api.app import create_app
from kernelgate.accounts import create_token, create_user
from kernelgate.db import engine, transaction
from kernelgate.models import Role, User
from kernelgate.settings import settings
from kernelgate.stages import Stage
from tests.api.conftest import running
from tests.pages import samples

ACCEPT = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@dataclass
class Site:
    """The running pages. `visitor` is signed out; `sign_in` gives the account of a handle and a client signed in as it."""

    url: str
    stages: dict[str, Stage]
    stack: ExitStack

    @property
    def values(self) -> Stage:
        return self.stages["online_softmax"]

    @property
    def gated(self) -> Stage:
        return self.stages["online_attention"]

    def visitor(self) -> httpx.Client:
        return self.stack.enter_context(
            httpx.Client(base_url=self.url, headers=ACCEPT, follow_redirects=True, timeout=30)
        )

    def sign_in(self, handle: str, role: Role = Role.SUBMITTER) -> tuple[User, httpx.Client]:
        with transaction() as database:
            user = create_user(database, handle, role)
            _, secret = create_token(database, user, name="first", days=1)
        client = self.visitor()
        assert client.post("/sign-in", data={"token": secret}).status_code == 200
        return user, client


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str) -> dict[str, Stage]:  # noqa: ARG001
    """A stage judged by values and one with a gate, verified, with a worker alive."""
    folder = tmp_path / "graders"
    monkeypatch.setenv("KERNELGATE_GRADERS_DIR", str(folder))
    monkeypatch.setenv("KERNELGATE_OPEN_SIGNUP", "true")
    settings.cache_clear()
    found = samples.write_stages(folder)
    with transaction() as rows:
        samples.verify(rows, found)
        samples.worker(rows)
    return found


@pytest.fixture
def site(stages: dict[str, Stage]) -> Iterator[Site]:
    with running(create_app()) as url, ExitStack() as stack:
        yield Site(url, stages, stack)
    engine().dispose()


class Inline(HTMLParser):
    """Collects what a strict policy would block: inline scripts and styles, event handlers, `javascript:` addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        if (tag == "script" and not values.get("src")) or tag == "style":
            self.found.append(f"<{tag}> without an address")
        for name, value in attrs:
            if name == "style" or name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append(f"<{tag} {name}={value!r}>")


def check(response: httpx.Response, status: int = 200) -> str:
    """The body of a page that keeps the rules of every page; fails with what it breaks."""
    assert response.status_code == status, response.text[:2000]
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    page = Inline()
    page.feed(response.text)
    assert page.found == []
    names = [tag for tag, _ in page.tags]
    assert names.count("h1") == 1
    assert names.count("main") == 1
    identifiers = [values["id"] for _, values in page.tags if values.get("id")]
    assert sorted(set(identifiers)) == sorted(identifiers), "an id stands twice"
    for tag, values in page.tags:
        if tag == "form" and (values.get("method") or "get") == "post":
            assert values.get("action", "").startswith("/")
    return response.text


def csrf(text: str) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', text)
    assert found, "the page has no anti-forgery field"
    return found[1]
