"""The files the bundler wrote, by their plain names. Without a bundle the pages work: plain styles, no script."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from kernelgate.settings import settings


def asset(name: str) -> str:
    """The address of `site.css`, `main.js` …; "" for a script that was not built."""
    built = _manifest(_manifest_path(), _written_at(_manifest_path())).get(name)
    if built:
        return f"/static/build/{built}"
    return f"/static/styles/{name}" if name.endswith(".css") else ""


def _manifest_path() -> Path:
    return settings().web_dir / "static" / "build" / "manifest.json"


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@lru_cache(maxsize=4)
def _manifest(path: Path, written_at: int) -> dict[str, str]:
    return {str(k): str(v) for k, v in json.loads(path.read_text()).items()} if written_at else {}
