"""What is refused at the door: a file that no worker needs to see to know that it cannot be graded.

Broken Python or CUDA is not refused here: it is graded, and gets the verdict `compile_error` with the line.
"""

from __future__ import annotations

import re

from api.problems import Refusal
from kernelgate.settings import settings
from kernelgate.stages import Stage

NAME_LIMIT = 100
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f/\\\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def size_limit(stage: Stage) -> int:
    """Bytes a source of this stage may have."""
    return min(settings().source_limit, stage.spec.limits.source_kb * 1024)


def check_filename(stage: Stage, name: str | None) -> str:
    """The name to store; the stage's own when none was sent. Raises Refusal for another ending or something that is no name."""
    if not name:
        return stage.spec.file
    ending = "." + stage.spec.file.rsplit(".", 1)[1]
    accepted = f"a plain file name ending in {ending}, e.g. {stage.spec.file}"
    if len(name) > NAME_LIMIT or not _NAME.fullmatch(name) or name.startswith("."):
        raise Refusal("wrong_filename", "That is not a plain file name.", field="file", value=name, accepted=accepted)
    if not name.lower().endswith(ending):
        raise Refusal(
            "wrong_filename", f"{stage.name} takes {ending} files.", field="file", value=name, accepted=accepted
        )
    return name


def check_source(stage: Stage, source: bytes) -> None:
    """Raises Refusal for a source that is too large, empty, binary or not UTF-8."""
    limit = size_limit(stage)
    if len(source) > limit:
        raise Refusal(
            "source_too_large",
            f"The source has {len(source)} bytes; {stage.name} takes at most {limit}.",
            field="file",
            value=f"{len(source)} bytes",
            accepted=f"{limit} bytes",
        )
    if not source.strip():
        raise Refusal(
            "empty_source",
            f"The source has {len(source)} bytes and nothing in them.",
            field="file",
            accepted=f"a source like {stage.spec.file}",
        )
    found = _BINARY.search(source)
    if found is not None:
        detail = f"Byte {found.start()} is 0x{found.group().hex()}, which no source file contains."
        raise Refusal("binary_source", detail, field="file", accepted="UTF-8 text")
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = source[error.start : error.start + 1].hex()
        raise Refusal(
            "not_utf8", f"Byte {error.start} (0x{bad}) is not UTF-8.", field="file", accepted="UTF-8 text"
        ) from error
