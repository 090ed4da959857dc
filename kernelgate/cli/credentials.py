"""Which server the command line talks to, and with which token: the environment first, then what `login` stored."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.cli.exits import Exit, stop

URL_VARIABLE = "KERNELGATE_URL"
TOKEN_VARIABLE = "KERNELGATE_TOKEN"  # noqa: S105 - the variable's name
DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Credentials:
    """`token` is "" when nobody is signed in; `origin` says where they come from."""

    url: str
    token: str
    origin: str


def path() -> Path:
    """The file that `login` writes, under the user's configuration folder, readable by the user alone."""
    return Path(click.get_app_dir("kernelgate")) / "credentials.json"


def load() -> Credentials:
    """The environment's URL and token, or those stored. A stored token is only for the server it was stored with."""
    stored = _stored()
    url = os.environ.get(URL_VARIABLE, "") or stored.get("url", "") or DEFAULT_URL
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token:
        return Credentials(url.rstrip("/"), token, TOKEN_VARIABLE)
    if stored.get("url", "").rstrip("/") == url.rstrip("/"):
        return Credentials(url.rstrip("/"), stored.get("token", ""), str(path()))
    return Credentials(url.rstrip("/"), "", "nowhere")


def _stored() -> dict[str, str]:
    try:
        found = json.loads(path().read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        stop(Exit.FAILED, f"{path()} cannot be read: {error}; remove it and sign in again with `kernelgate login`")
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def store(url: str, token: str) -> Path:
    """Writes the file with mode 0600 from its first byte on, and replaces an old one in one step."""
    target = path()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"url": url.rstrip("/"), "token": token}, file)
    temporary.replace(target)
    return target


def forget() -> bool:
    """Removes what was stored. False when nothing was."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    return True
