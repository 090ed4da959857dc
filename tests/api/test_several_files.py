"""Submissions of several files: repeated `-F file=` and zip archives, and what of them is refused at the door."""

from __future__ import annotations

import io
import zipfile

import pytest

from tests.api.conftest import Api, problem, verify


def several(api: Api) -> None:
    toml = api.graders / "double" / "stage.toml"
    toml.write_text("several = true\n" + toml.read_text())
    verify(api.graders / "double")
    api.app.state.catalog.reload()


USES = "from halves import twice\n\n\ndef double(x):\n    return twice(x)\n"
HALVES = "def twice(x):\n    return x + x\n"
WHOLE = f"{USES}#@file halves.py\n{HALVES}"


def zipped(**files: str) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return body.getvalue()


def test_several_files_become_one_text(api: Api) -> None:
    several(api)
    client = api.as_("ada")
    repeated = [("file", ("double.py", USES)), ("file", ("halves.py", HALVES))]
    archive = {"file": ("all.zip", zipped(**{"mine/double.py": USES, "mine/halves.py": HALVES}))}
    for files in (repeated, archive):
        made = client.post("/submit", data={"stage": "double"}, files=files)
        assert made.status_code == 202, made.text
        assert made.json()["filename"] == "double.py"
        assert client.get(made.json()["urls"]["source"]).text == WHOLE


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([("double.py", USES), ("double.py", USES)], "was sent twice"),
        ([("other.py", USES), ("halves.py", HALVES)], "No file is called double.py"),
        ([("double.py", USES), ("torch.py", HALVES)], "stand in for the module torch"),
        ([("double.py", USES), ("shapes.py", HALVES)], "provided by the stage"),
        ([("all.zip", zipped(**{"double.py": USES, "../../etc/x.py": HALVES, "b/x.py": HALVES}))], "stands twice"),
        ([("all.zip", zipped(**{"double.py": "#" * 3_000_000}))], "larger than the stage accepts"),
        ([("all.zip", b"PK\x03\x04 and no more")], "cannot be read"),
        ([("all.zip", zipped(**{f"a{n}.py": "" for n in range(20)}))], "20 files"),
    ],
)
def test_files_that_cannot_be_are_refused(api: Api, files: list[tuple[str, str | bytes]], words: str) -> None:
    several(api)
    answer = api.as_("ada").post("/submit", data={"stage": "double"}, files=[("file", each) for each in files])
    assert words in problem(answer, 422, "wrong_filename")["detail"]


def test_a_stage_of_one_file_takes_no_second(api: Api) -> None:
    files = [("file", ("double.py", USES)), ("file", ("halves.py", HALVES))]
    answer = api.as_("ada").post("/submit", data={"stage": "double"}, files=files)
    assert "takes one file; 2 were sent" in problem(answer, 422, "wrong_filename")["detail"]
