"""The languages that stages are written in. A new one is a row here: stages, pages and the editor read nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Language:
    """title: for people. suffix: of the submitted file. lexer: pygments' name, for a stage author's code.

    words: whose keywords and comments submitted source is coloured by, and the editor's mode.
    endings: of further files, where a stage takes several. comment: what a comment begins with.
    """

    title: str
    suffix: str
    lexer: str
    words: Literal["python", "cpp"]
    endings: tuple[str, ...] = (".py",)
    comment: str = "#"


LANGUAGES = {
    "pytorch": Language("PyTorch", ".py", "python", "python"),
    "triton": Language("Triton", ".py", "python", "python"),
    "cuda": Language("CUDA C++", ".cu", "cuda", "cpp", (".cuh", ".h", ".cu"), "//"),
}
