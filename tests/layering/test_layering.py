"""The arrows between the folders, and the few other rules of the code's shape that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.settings import ROOT

CODE = (
    "kernelgate",
    "api",
    "worker",
    "embedded",
    "migrations",
    "graders",
    "kernels",
    "sandboxed",
    "tests",
    "benchmarks",
)
DUMPING_GROUNDS = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
LONGEST_MODULE = 500
LONGEST_TEST = 700
"""Of a test, and of a stage.py, most of which is texts, cases and wrong files."""
REGISTRY_HOSTS = re.compile(
    r"(?<![\w.])(?:" + "|".join(("pypi", "npmjs", "pythonhosted", "debian")) + r")\.(?:org|com|io)(?![\w])"
)
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|home/[a-z]\w*|Users/\w+|opt/(?:wheels|pypi))(?=/)")


def tracked() -> list[Path]:
    """The files of the repository, or of the source folder where that is no checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: nothing says which files are the product's")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def modules(*folders: str) -> Iterator[Path]:
    """Our own Python files; what stages ship as submissions is wrong on purpose."""
    for folder in folders or CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not {"node_modules", "submissions"} & set(path.relative_to(ROOT).parts[:-1]):
                yield path


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports when it runs, wherever in it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def test_the_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [4-9]\d* kept, 0 broken", done.stdout), done.stdout


def test_no_module_is_a_dumping_ground() -> None:
    named = [
        path
        for path in modules()
        if DUMPING_GROUNDS & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    ]
    assert named == []


def test_no_module_outgrows_one_reading() -> None:
    lines = {path.relative_to(ROOT): path.read_text().count("\n") for path in modules()}
    long = {
        str(path): count
        for path, count in lines.items()
        if count > (LONGEST_TEST if path.parts[0] == "tests" or path.name == "stage.py" else LONGEST_MODULE)
    }
    assert long == {}, "split them by reason to change"


def test_revisions_import_alembic_and_sqlalchemy_only() -> None:
    """A revision that imported the models would change its meaning with every later commit."""
    revisions = list((ROOT / "migrations" / "versions").glob("*.py"))
    assert revisions
    for path in revisions:
        assert imported(path) <= {"__future__", "alembic", "sqlalchemy"}, path.name


def test_migrations_use_nothing_of_ours_but_the_vocabulary() -> None:
    for path in modules("migrations"):
        assert not imported(path) & {"api", "worker", "embedded"}, path.name


def test_trusted_kernels_and_stages_load_by_path() -> None:
    """As a package, `kernels` would shadow the one on PyPI that machine-learning libraries probe for."""
    for folder in (ROOT / "kernels", ROOT / "sandboxed", ROOT / "graders", *(ROOT / "graders").iterdir()):
        assert not (folder / "__init__.py").exists(), folder


def test_trusted_kernels_and_stages_import_nothing_of_a_service() -> None:
    for path in modules("kernels", "sandboxed", "graders"):
        assert not imported(path) & {"api", "worker", "embedded", "celery", "fastapi"}, path


def test_no_stage_imports_another() -> None:
    stages = {folder.name for folder in (ROOT / "graders").iterdir() if folder.is_dir()}
    for path in modules("graders"):
        # Its own name is also that of the file which is submitted to it.
        others = stages - {path.relative_to(ROOT / "graders").parts[0]}
        assert not imported(path) & others, path


def test_tracked_files_name_no_machine_and_no_registry() -> None:
    found = []
    for path in tracked():
        if path.suffix in {".png", ".jpg", ".woff2", ".ico", ".bin"} or path.name == "package-lock.json":
            continue
        text = path.read_bytes().decode(errors="replace")
        name = path.relative_to(ROOT)
        found += [f"{name}: {hit.group()}" for rule in (REGISTRY_HOSTS, MACHINE_PATHS) for hit in rule.finditer(text)]
    assert found == []


def test_every_package_folder_is_in_the_wheel() -> None:
    """A folder without `__init__.py` would be found in a checkout and be missing from an installation."""
    for folder in ("kernelgate", "api", "worker", "embedded"):
        for path in modules(folder):
            assert (path.parent / "__init__.py").exists(), f"{path.parent} has no __init__.py"
