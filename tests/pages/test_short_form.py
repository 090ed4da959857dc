"""A stage in one file on its pages: what is derived is said, what is hidden or a draft is not shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelgate.models import Role
from kernelgate.settings import ROOT, settings
from tests.api.conftest import verify
from tests.pages.conftest import Site, check


@pytest.fixture
def folder(site: Site) -> Path:
    """The stage `histogram`, dropped into the folder of a running service, with a hidden case more."""
    del site
    made = Path(shutil.copytree(ROOT / "tests" / "stages" / "histogram", settings().graders_dir / "histogram"))
    text = (made / "stage.py").read_text()
    (made / "stage.py").write_text(text.replace("many     count=3001", "many     count=3001\nsecret count=4711 hidden"))
    verify(made)
    return made


def test_the_page_says_what_was_derived_and_nothing_hidden(site: Site, folder: Path) -> None:
    text = check(site.visitor().get(f"/stages/{folder.name}"))
    assert "What is allowed is derived for each tensor and case" in text
    assert "int32 [16], row-major; every value must be written" in text
    assert "count 3001" in text
    assert "4711" not in text
    assert "4711" not in site.visitor().get(f"/stages/{folder.name}", headers={"accept": "application/json"}).text


def test_a_draft_is_for_administrators_alone(site: Site, folder: Path) -> None:
    path = folder / "stage.py"
    path.write_text(path.read_text().replace('language = "cuda"', 'language, draft = "cuda", True'))
    verify(folder)
    _, ada = site.sign_in("ada")
    _, root = site.sign_in("root", Role.ADMIN)
    assert root.post("/admin/stages/reload").status_code in (200, 403)
    check(ada.get("/stages/histogram"), 404)
    assert "/stages/histogram" not in check(ada.get("/stages"))
    assert ada.get("/stages/histogram", headers={"accept": "application/json"}).status_code == 404
    assert "draft: students do not see it" in check(root.get("/admin/stages"))
    check(root.get("/admin/stages/histogram"))
