"""What a client sent to be graded; several files, by repeated `-F file=` or as a zip archive, become one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from api.problems import Refusal
from api.source import check_source, size_limit
from kernelgate import several_files
from kernelgate.several_files import FilesError
from kernelgate.stages import Stage

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Sent:
    """What a client sent to be graded. others: further files, with their names."""

    stage: str
    source: bytes
    filename: str | None
    gpu: str | None = None
    idempotency_key: str | None = None
    via: str = "api"
    run: str | None = None
    inputs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    others: tuple[tuple[str, bytes], ...] = ()


def one_text(stage: Stage, sent: Sent) -> Sent:
    """What was sent with all its files in `source`. Raises Refusal for files that the stage does not take."""
    try:
        files = _files(stage, sent)
        whole = (
            sent if files is None else replace(sent, source=_joined(stage, files), filename=stage.spec.file, others=())
        )
        if stage.spec.several:
            found = several_files.parts(whole.source.decode("utf-8", "replace"), stage.spec.file)
            several_files.check(found, stage.spec.language, stage.provided)
    except FilesError as error:
        raise Refusal("wrong_filename", str(error), field="file", accepted=_accepted(stage)) from error
    return whole


def _files(stage: Stage, sent: Sent) -> list[tuple[str, bytes]] | None:
    """Files to be put together, by name; None for one that is a source as it is."""
    zipped = not sent.others and sent.source.startswith(_ZIP) and (sent.filename or "").lower().endswith(".zip")
    if not zipped and not sent.others:
        return None
    if not stage.spec.several:
        what = "a zip archive was sent" if zipped else f"{len(sent.others) + 1} were sent"
        raise FilesError(f"{stage.name} takes one file; {what}.")
    if zipped:
        return list(several_files.unzipped(sent.source, size_limit(stage)).items())
    return [(sent.filename or stage.spec.file, sent.source), *sent.others]


def _joined(stage: Stage, files: list[tuple[str, bytes]]) -> bytes:
    names = [name for name, _ in files]
    for name, body in files:
        if names.count(name) > 1:
            raise FilesError(f"{name[:80]!r} was sent twice; every file stands once.")
        if body.strip():
            check_source(stage, body)
    texts = {name: body.decode("utf-8") for name, body in files}
    return several_files.joined(texts, stage.spec.file, stage.spec.language).encode()


def _accepted(stage: Stage) -> str:
    name = stage.spec.file
    return f"{name} and files that it includes or imports, or a zip archive of them" if stage.spec.several else name
