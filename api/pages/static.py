"""The files of web/static. What the bundler named by its content may be kept for ever, and is sent compressed where it was."""

from __future__ import annotations

import re
from os import PathLike, stat_result
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_NAMED_BY_CONTENT = re.compile(r"build/[a-z]+-[A-Z0-9]{8}\.(js|css)")
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


class Static(StaticFiles):
    """Static files with their lifetimes; `file.js.br` and `file.js.gz` beside a file are sent in its place."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if _NAMED_BY_CONTENT.fullmatch(path):
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        else:
            response.headers["Cache-Control"] = "public, max-age=300"
        return response

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        accepted = Headers(scope=scope).get("accept-encoding", "")
        for name, ending in _ENCODINGS:
            packed = Path(f"{full_path}{ending}")
            if name in accepted and packed.is_file():
                kind = (
                    "text/css; charset=utf-8" if str(full_path).endswith(".css") else "text/javascript; charset=utf-8"
                )
                return FileResponse(
                    packed, media_type=kind, headers={"Content-Encoding": name, "Vary": "Accept-Encoding"}
                )
        return super().file_response(full_path, stat_result, scope, status_code)
