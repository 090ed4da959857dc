"""The folder of one installation: `postgres/`, `broker/`, `sockets/`, `logs/` and the lock that keeps it to one owner.

Unix socket paths have at most 107 bytes. Where the folder's own path is too long for that, the sockets move to a private
folder under the system's temporary directory, found again by a hash of the folder's path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from embedded.errors import EmbeddedError

SOCKET_PATH_BYTES = 107
LONGEST_SOCKET = "/postgres/.s.PGSQL.5432.lock"


class DataDir:
    """Paths under `root`, made on demand. Holds the lock from `acquire` to `release` or the process's end."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self._lock: int | None = None

    def create(self) -> None:
        """Makes the folder. Others may pass through it (Postgres runs as another user under root) but not list it."""
        if not self.root.is_dir():
            try:
                self.root.mkdir(parents=True)
                self.root.chmod(0o711)
            except OSError as error:
                raise EmbeddedError(
                    f"data folder {self.root}: {error.strerror}; name a folder you may write to in KERNELGATE_DATA_DIR"
                ) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise EmbeddedError(
                f"data folder {self.root}: not writable for uid {os.geteuid()}; "
                "name another one in KERNELGATE_DATA_DIR or run as its owner"
            )

    def folder(self, name: str) -> Path:
        """A sub-folder that only its owner can enter."""
        path = self.root / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def log(self, name: str) -> Path:
        return self.folder("logs") / f"{name}.log"

    def sockets(self) -> Path:
        """The folder of the sockets' folders, short enough for the longest of them."""
        inside = self.root / "sockets"
        if len(os.fsencode(inside)) + len(LONGEST_SOCKET) <= SOCKET_PATH_BYTES:
            inside.mkdir(mode=0o711, exist_ok=True)
            return inside
        return self._short_sockets()

    def _short_sockets(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        outside = Path(tempfile.gettempdir()) / f"kg-{os.geteuid()}-{digest}"
        outside.mkdir(mode=0o711, exist_ok=True)
        # /tmp is everyone's: a folder of that name made by another account would hand our sockets to them.
        found = outside.lstat()
        if outside.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise EmbeddedError(f"{outside} belongs to uid {found.st_uid} or is writable by others; remove it")
        if len(os.fsencode(outside)) + len(LONGEST_SOCKET) > SOCKET_PATH_BYTES:
            raise EmbeddedError(
                f"{outside} is too long for a socket ({SOCKET_PATH_BYTES} bytes); set TMPDIR to a shorter one"
            )
        return outside

    def acquire(self) -> None:
        """Takes the folder for this process. Raises EmbeddedError naming the process that has it.

        A lock of the kernel and not a pid file: it is gone when its holder is, kill -9 included.
        """
        if self._lock is not None:
            return
        self.create()
        path = self.root / "lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise EmbeddedError(
                f"data folder {self.root} is in use by process {holder}; stop that one, "
                "or give this one its own folder in KERNELGATE_DATA_DIR"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._lock = handle

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
