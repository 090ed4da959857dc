"""What of the host the sandbox's interpreter needs: found by asking it once."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .outcome import SandboxError

QUESTION = """
import json, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({"prefixes": [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix],
    "site": [paths["purelib"], paths["platlib"]], "version": list(sys.version_info[:3])}))
"""
OLDEST = (3, 11)


@dataclass(frozen=True)
class Interpreter:
    """python: the command. site: its folders of packages. visible: (real path, shown path) of all that it is made of."""

    python: str
    site: tuple[str, ...]
    visible: tuple[tuple[str, str], ...]


def inspect(python: Path) -> Interpreter:
    """Asks an interpreter about itself. Raises SandboxError when it does not run or is older than 3.11."""
    try:
        asked = subprocess.run(
            [python, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=60, check=True, cwd="/"
        )
        answer = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        raise SandboxError(
            f"the sandbox's interpreter {python} does not run: {detail[-500:].strip()}; set KERNELGATE_RUNNER_PYTHON "
            "to a Python of at least 3.11"
        ) from error
    if tuple(answer["version"]) < OLDEST:
        raise SandboxError(
            f"the sandbox's interpreter {python} is Python {answer['version']}; at least 3.11 is accepted"
        )
    command = os.path.abspath(python)
    shown = [*answer["prefixes"], *answer["site"], *_links(command)]
    return Interpreter(command, tuple(dict.fromkeys(answer["site"])), tuple(visible(shown)))


def visible(paths: list[str]) -> list[tuple[str, str]]:
    """Pairs for paths that must be seen where they are and, where they are reached through links, at their real place too."""
    pairs: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real == "/" or not os.path.exists(real):
            continue
        pairs[real] = real
        pairs[os.path.abspath(path)] = real
    return [(source, target) for target, source in sorted(pairs.items(), key=lambda pair: pair[0].count("/"))]


def _links(path: str) -> list[str]:
    """The chain of links that a command is reached through."""
    chain = [path]
    while os.path.islink(chain[-1]) and len(chain) < 40:
        chain.append(os.path.join(os.path.dirname(chain[-1]), os.readlink(chain[-1])))
    return chain
