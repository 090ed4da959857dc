"""The settings as a page: `docs/settings.md` is this module's output, so it cannot say anything the code does not."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import get_args

from pydantic.fields import FieldInfo

from kernelgate.settings import ROOT, Settings

HEAD = """# Settings

Each setting is an environment variable. `kernelgate settings` shows the values in force; this page is written by
`kernelgate settings --markdown` from the descriptions in `kernelgate/settings.py`.

"""


def variable(name: str) -> str:
    return f"KERNELGATE_{name.upper()}"


def markdown() -> str:
    """The page: variable, default, meaning."""
    rows = [
        f"| `{variable(name)}` | {_default(field)} | {field.description}{_range(field)} |\n"
        for name, field in Settings.model_fields.items()
    ]
    return HEAD + "| variable | default | meaning |\n|---|---|---|\n" + "".join(rows)


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, Path):
        if value == Path(sys.executable):
            return "the interpreter that runs Kernelgate"
        shown = value.relative_to(ROOT).as_posix()
        return f"`{shown}` beside the code"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value.value if isinstance(value, Enum) else value}`" if value != "" else "empty"


def _range(field: FieldInfo) -> str:
    words = {"Ge": "at least", "Gt": "more than", "Le": "at most", "Lt": "less than"}
    bounds = [
        f"{words[type(bound).__name__]} {getattr(bound, type(bound).__name__.lower())}"
        for bound in field.metadata
        if type(bound).__name__ in words
    ]
    choices = get_args(field.annotation)
    if choices:
        bounds.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    return f" ({'; '.join(bounds)})" if bounds else ""


def in_force(values: Settings) -> str:
    """One line a setting: the value, and whether it was stated or is the default. Passwords in URLs are left out."""
    lines = []
    for name in Settings.model_fields:
        value = str(getattr(values, name))
        origin = "stated" if name in values.model_fields_set else "default"
        lines.append(f"{variable(name)}={_without_password(value)}  ({origin})")
    return "\n".join(lines)


def _without_password(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    credentials, at, host = rest.rpartition("@")
    if not separator or not at:
        return value
    user, colon, _ = credentials.partition(":")
    return f"{scheme}://{user}{':***' if colon else ''}@{host}"
