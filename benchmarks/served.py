"""A service of its own, filled before it answers: what the benchmarks of pages measure."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from embedded import schema
from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.postgres import Postgres
from embedded.process import Child
from kernelgate.settings import Settings, environment
from tests.conftest import free_port, take_stages_as_proven, wait_until_ready

Filled = TypeVar("Filled")


@contextmanager
def served(fill: Callable[[Settings, str], Filled]) -> Iterator[tuple[str, Filled]]:
    """The address of an API over its own Postgres and broker in a temporary folder, and what `fill` returned.

    fill: is called with the settings and the folder of Postgres's socket; every stage is taken as proven by then.
    """
    with tempfile.TemporaryDirectory(prefix="kgb-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o711)
        data = DataDir(root)
        postgres, broker = Postgres(data, durable=False), Broker(data, durable=False)
        servers = (postgres, broker)
        for server in servers:
            server.start()
        schema.upgrade(postgres.url("postgres"))
        (root / "data").mkdir()
        values = Settings(
            database_url=postgres.url("postgres"), broker_url=broker.url, data_dir=root / "data", port=free_port()
        )
        take_stages_as_proven(values)
        filled = fill(values, str(postgres.socket_folder))
        child = Child(
            "serve", [sys.executable, "-m", "kernelgate", "serve"], log=root / "serve.log", env=environment(values)
        )
        url = f"http://127.0.0.1:{values.port}"
        try:
            child.start()
            wait_until_ready(url, [child])
            yield url, filled
        finally:
            child.stop()
            for server in reversed(servers):
                server.stop()
