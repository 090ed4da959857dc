"""Under which account Postgres runs: it refuses to run as root and as a user id without a name.

An ordinary user runs it as it is. Root drops to the account `postgres` or `nobody`, where that account can reach both the
binaries and the data; where it cannot (an installation under a 0700 `/root`, whose mode is none of our business), and for
a user id without a passwd entry, Postgres gets a user namespace in which the same user is called `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import EmbeddedError

NOBODY = 65534


@dataclass(frozen=True)
class Identity:
    """`prefix` goes before every Postgres command; `uid` and `gid` own its files as the rest of the system sees them."""

    prefix: tuple[str, ...]
    uid: int
    gid: int
    words: str

    def own(self, folder: Path) -> None:
        """Hands a folder to the account."""
        found = folder.stat()
        if (found.st_uid, found.st_gid) != (self.uid, self.gid):
            os.chown(folder, self.uid, self.gid)


def choose_identity(program: Path, data: Path) -> Identity:
    """The account for `program` (an absolute path) over the folder `data`, which exists. Raises EmbeddedError.

    Data that was written under one account stays with it, so an owner other than root decides alone.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        if _has_name(uid):
            return Identity((), uid, gid, f"uid {uid}")
        return _in_namespace(program, data, uid, gid, f"uid {uid} has no passwd entry")
    owner = data.stat()
    if any(data.iterdir()):
        if owner.st_uid == 0:
            return _in_namespace(program, data, uid, gid, "the data belongs to root")
        return _dropped(owner.st_uid, owner.st_gid)
    return _first_that_reaches(program, data)


def _first_that_reaches(program: Path, data: Path) -> Identity:
    for name in ("postgres", "nobody"):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        candidate = _dropped(account.pw_uid, account.pw_gid)
        candidate.own(data)
        if _works(candidate, program, data):
            return candidate
    os.chown(data, 0, 0)
    return _in_namespace(program, data, 0, 0, "no other account reaches the binaries and the data folder")


def _dropped(uid: int, gid: int) -> Identity:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EmbeddedError(
            "Postgres refuses to run as root and `setpriv` (util-linux) is missing; run as an ordinary user"
        )
    return Identity((setpriv, f"--reuid={uid}", f"--regid={gid}", "--clear-groups"), uid, gid, f"uid {uid}")


def _in_namespace(program: Path, data: Path, uid: int, gid: int, why: str) -> Identity:
    unshare = shutil.which("unshare")
    if unshare is not None:
        prefix = (unshare, "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
        found = Identity(prefix, uid, gid, f"uid {uid} as nobody of a user namespace")
        if _works(found, program, data):
            return found
    raise EmbeddedError(
        f"Postgres cannot run here: {why}, and this host has no user namespace for it (`unshare --user` failed). Run as "
        "an ordinary user with a passwd entry, put the installation and KERNELGATE_DATA_DIR where the account `nobody` "
        "can reach them, or point KERNELGATE_DATABASE_URL at a Postgres of your own and run `kernelgate migrate`"
    )


def _works(identity: Identity, program: Path, data: Path) -> bool:
    probe = ["/bin/sh", "-c", '"$0" --version >/dev/null && test -w "$1" && test -x "$1"', str(program), str(data)]
    return subprocess.run([*identity.prefix, *probe], capture_output=True, cwd="/", check=False).returncode == 0


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
