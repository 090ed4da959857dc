"""The files of web/static. What the bundler named by its content may be kept for ever, and is sent compressed where it was."""

from __future__ import annotations

import re
from functools import lru_cache
from os import PathLike, stat_result
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_NAMED_BY_CONTENT = re.compile(r"build/[a-z]+-[A-Z0-9]{8}\.(js|css)")
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_KEPT_BYTES = 65_536
"""A page waits for these files, and to hand one to a thread takes longer than to send it: small ones are kept in memory."""


class Static(StaticFiles):
    """Static files with their lifetimes; `file.js.br` and `file.js.gz` beside a file are sent in its place."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        named = _NAMED_BY_CONTENT.fullmatch(path)
        if named and scope["method"] == "GET":
            kept = self._kept(path, Headers(scope=scope).get("accept-encoding", ""))
            if kept is not None:
                return Response(kept[0], headers={**kept[1], **_FOR_EVER}, media_type=_KINDS[named[1]])
        response = await super().get_response(path, scope)
        response.headers.update(_FOR_EVER if named else {"Cache-Control": "public, max-age=300"})
        return response

    def _kept(self, path: str, accepted: str) -> tuple[bytes, dict[str, str]] | None:
        """The file's bytes and the headers that say how they are packed; None for what is not kept."""
        for name, ending in _ENCODINGS:
            if name in accepted:
                packed = _small(Path(str(self.directory), f"{path}{ending}"))
                if packed is not None:
                    return packed, {"Content-Encoding": name, "Vary": "Accept-Encoding"}
        return None

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        accepted = Headers(scope=scope).get("accept-encoding", "")
        for name, ending in _ENCODINGS:
            packed = Path(f"{full_path}{ending}")
            if name in accepted and packed.is_file():
                kind = _KINDS["css" if str(full_path).endswith(".css") else "js"]
                return FileResponse(
                    packed, media_type=kind, headers={"Content-Encoding": name, "Vary": "Accept-Encoding"}
                )
        return super().file_response(full_path, stat_result, scope, status_code)


_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


@lru_cache(maxsize=32)
def _small(path: Path) -> bytes | None:
    """The content of a file that its name changes with; None if it is large or absent."""
    try:
        return path.read_bytes() if path.stat().st_size <= _KEPT_BYTES else None
    except FileNotFoundError:
        return None
