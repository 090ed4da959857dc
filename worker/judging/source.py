"""What a submitted file must be before anything looks into it: text, not empty, not too long."""

from __future__ import annotations

from kernelgate import several_files
from kernelgate.reasons import Reason
from kernelgate.several_files import FilesError
from kernelgate.stages import Stage
from worker.judging.failures import Failure


def read_source(stage: Stage, source: bytes) -> str:
    """The text of a submission. Raises Failure with `compile_error` and the reason."""
    limit = stage.spec.limits.source_kb * 1024
    if len(source) > limit:
        raise Failure(Reason.TOO_LONG, f"The file has {len(source)} bytes; {stage.spec.file} may have at most {limit}.")
    if b"\0" in source:
        at = source.index(b"\0")
        raise Failure(
            Reason.BINARY_FILE, f"The file has a NUL byte at offset {at}; submit {stage.spec.file} as UTF-8 text."
        )
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte 0x{source[error.start]:02x} at offset {error.start}"
        raise Failure(Reason.NOT_UTF8, f"The file is not UTF-8: {what}; save {stage.spec.file} as UTF-8.") from None
    if not text.strip():
        raise Failure(Reason.EMPTY_FILE, f"The file is empty; start from the stage's {stage.spec.file}.")
    return text


def files_of(stage: Stage, text: str) -> tuple[str, dict[str, str]]:
    """The file that the stage names, and by name those beside it. Raises Failure with `compile_error`."""
    if not stage.spec.several:
        return text, {}
    found = several_files.parts(text, stage.spec.file)
    try:
        several_files.check(found, stage.spec.language, stage.provided)
    except FilesError as error:
        raise Failure(Reason.WRONG_FILES, str(error)) from None
    return found[0].text, {part.name: part.text for part in found[1:]}
