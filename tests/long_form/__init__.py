"""A stage in the long form (stage.toml, grader.py, driver.py), which the short form has replaced for new stages."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent


def long_form(name: str, into: Path) -> Path:
    """Copies the stage `scaling` to `into/name`, renamed throughout."""
    folder = into / name
    shutil.copytree(HERE / "scaling", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            path.write_text(path.read_text().replace("scaling", name))
            if "scaling" in path.name:
                path.rename(path.with_name(path.name.replace("scaling", name)))
    return folder
