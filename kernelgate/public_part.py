"""What a student may have of a stage: enough to judge a file on a machine of one's own, and nothing that gives a solution away.

A stage.py is handed out without its edits (they quote the solution), the answers of its list and its hidden cases. Where the
starter is not the baseline, the baseline stays here too, and no speed is judged elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from kernelgate import case_lines, python_text
from kernelgate.stage_file import FILE
from kernelgate.stage_folders import DRIVER
from kernelgate.stages import Stage

KEPT_BACK = ("edits", "done_when", "calibrated", "draft")
TIMED_ONLY = ("gate", "ranking", "measured")
"""What a stage without a baseline cannot say."""
FOLDERS = ("starter", "provided", "figures")


def public_files(stage: Stage) -> dict[str, bytes]:
    """Files of a stage folder that `kernelgate check` judges by, by name; without a stage.py, only what is to be read."""
    spec = stage.spec
    files = {name: body for name, body in stage.files.items() if name.split("/")[0] in (*FOLDERS, "lesson.md")}
    if stage.form is None:
        return files
    baseline = f"baseline{spec.suffix}"
    timed = baseline in stage.files and stage.files[baseline] == stage.files[f"starter/{spec.file}"]
    if timed:
        files[baseline] = stage.files[baseline]
    if DRIVER in stage.files:
        files[DRIVER] = stage.files[DRIVER]
    body = public_source(stage.text(FILE), timed=timed)
    files[FILE] = f"{body}\npulled = True\n".encode()
    return files


def public_source(text: str, *, timed: bool) -> str:
    """A stage.py without what is kept back. timed: whether a baseline goes with it."""
    left_out = KEPT_BACK if timed else (*KEPT_BACK, *TIMED_ONLY)
    lines = text.splitlines()
    kept: list[str] = []
    done = 0
    for first, last, replacement in _changes(python_text.module(text), left_out, timed):
        kept += lines[done : first - 1] + replacement
        done = last
    return "\n".join([*kept, *lines[done:]]).rstrip() + "\n"


def _changes(tree: ast.Module, left_out: Collection[str], timed: bool) -> Iterator[tuple[int, int, list[str]]]:
    """Runs of lines, and what stands in their place."""
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        names = {each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name)}
        end = node.end_lineno or node.lineno
        if "cases" in names:
            yield node.lineno, end, _cases(str(ast.literal_eval(node.value)), timed)
        elif names & set(left_out):
            yield node.lineno, end, _without(node, left_out)


def _without(node: ast.Assign, left_out: Collection[str]) -> list[str]:
    """`gate, work = 2, "n"` without the gate."""
    target, value = node.targets[0], node.value
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return []
    pairs = zip(target.elts, value.elts, strict=True)
    return [f"{ast.unparse(name)} = {ast.unparse(each)}" for name, each in pairs if ast.unparse(name) not in left_out]


def _cases(text: str, timed: bool) -> list[str]:
    left = case_lines.public(text, timed=timed)
    if any('"""' in line or "\\" in line for line in left):
        return [f"cases = {chr(10).join(left)!r}"]
    return ['cases = """', *left, '"""']
