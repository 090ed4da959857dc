"""Names that a stage's provided files define, for the editor: constants with their values, functions with their signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MOST = 80
_DEFINED = (
    re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+([^\n/]{1,60})", re.M),
    re.compile(
        r"^[ \t]*(?:static |inline |const |constexpr )+[\w:]+[ \t]+([A-Za-z_]\w*)[ \t]*=[ \t]*([^;\n]{1,60});", re.M
    ),
    re.compile(r"^([A-Z][A-Z0-9_]*)(?:[ \t]*:[ \t]*[\w\[\]. ]+)?[ \t]*=[ \t]*([^\n#]{1,60})", re.M),
)
_FUNCTION = re.compile(r"^(?:async )?def[ \t]+([A-Za-z_]\w*)(\([^)]{0,200}\)(?:[ \t]*->[ \t]*[^:\n]{1,60})?)", re.M)


def provided_names(files: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(name, signature, what is said of it) for names of at most _MOST lines; what is private to a file is left out."""
    found: dict[str, tuple[str, str, str]] = {}
    for path, text in sorted(files.items()):
        for pattern in _DEFINED:
            for name, value in pattern.findall(text):
                found.setdefault(name, (name, f"{name} = {value.strip()}", f"a constant of {path}"))
        for name, signature in _FUNCTION.findall(text):
            found.setdefault(name, (name, name + " ".join(signature.split()), f"of {path}"))
    return [each for name, each in found.items() if not name.startswith("_")][:_MOST]
