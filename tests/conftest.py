"""What every test may ask for: a real Postgres, a real broker, an empty database, the whole service running.

The servers start once a test session, on unix sockets in a folder of their own, and end with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import httpx
import psycopg
import pytest
import redis
from psycopg import sql
from sqlalchemy import create_engine, pool
from sqlalchemy.orm import Session
from xdist.scheduler import LoadScopeScheduling

from embedded import schema
from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.postgres import Postgres
from embedded.process import Child
from kernelgate import db
from kernelgate.accounts import create_token, create_user
from kernelgate.models import Role, StageVersion
from kernelgate.settings import ROOT, Settings, environment, settings
from kernelgate.stage_folders import load_stages

if TYPE_CHECKING:
    from worker.sandbox import Sandbox

TEMPLATE = "kernelgate_template"
LONGEST_FIRST = (
    "tests/exploits/test_corpus.py",
    "tests/exploits/test_fuzz.py",
    "tests/graders/test_promises.py",
    "tests/browser",
    "tests/worker/emulator/ptx/test_public.py",
    "tests/worker/emulator/test_backend.py",
    "tests/worker/emulator",
    "tests/embedded",
)
"""What several test processes begin with, so that none of them is left with it at the end."""
ATTACKED, SERVED = "the attacked service", "the service"
SHARING = {
    "tests/exploits/test_corpus.py": ATTACKED,
    "tests/exploits/test_fuzz.py": ATTACKED,
    "tests/browser/": SERVED,
    "tests/cli/test_service.py": SERVED,
    "tests/exploits/test_web.py": SERVED,
    "tests/front_door/": SERVED,
    "tests/worker/emulator/test_service.py": SERVED,
}
"""Files that share a service, and stay in one process: each start of one takes 15 s of processor time."""
APART = (
    "tests/graders/test_promises.py",
    "tests/worker/emulator/ptx/test_public.py",
    "tests/worker/emulator/test_backend.py",
)
"""Files whose tests are long, and share nothing that is slow to make: each test may run in any process."""
_numbers = count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes test, the longest first (`make test`)."""
    if hasattr(config, "workerinput"):
        items.sort(
            key=lambda item: next((at for at, long in enumerate(LONGEST_FIRST) if item.nodeid.startswith(long)), 99)
        )


class ByFile(LoadScopeScheduling):
    """What stays together in one process: a file, files that share a service, or one test alone."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        shared = next((service for start, service in SHARING.items() if file.startswith(start)), file)
        return nodeid if file in APART else shared


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """In place of xdist's marks for groups, which pytest 9.2 does not let it put behind a test's name."""
    return ByFile(config, log)


@pytest.fixture(scope="session")
def data_dir() -> Iterator[DataDir]:
    """The folder of the test session's servers; short, for a socket's path has at most 107 bytes."""
    root = Path(tempfile.mkdtemp(prefix="kgt-"))
    root.chmod(0o711)
    yield DataDir(root)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def own_settings(data_dir: DataDir) -> Iterator[None]:
    """Keeps whatever this machine states or runs (a `make up` in another terminal) out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("KERNELGATE_")]:
            patch.delenv(name)
        patch.setenv("KERNELGATE_DATA_DIR", str(data_dir.root / "tests"))
        # The kernel counts processes by user id: sandboxes of a second test process beside this one need one of their own.
        patch.setenv("KERNELGATE_SANDBOX_UID", str(64123 + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])))
        patch.setenv("KERNELGATE_WORKER_SLOTS", "1")  # what is tested runs on machines of any size
        patch.setenv("KERNELGATE_BUILD_CACHE", str(ROOT / ".cache"))  # shared by all test processes, and kept
        patch.setenv("SSL_CERT_FILE", str(one_authority(data_dir.root / "authority.pem")))
        forget_settings()
        yield


def one_authority(path: Path) -> Path:
    """For clients that ask nobody over TLS: each would read all that this machine trusts, for a tenth of a second."""
    end = "-----END CERTIFICATE-----\n"
    path.write_text(Path(certifi.where()).read_text().partition(end)[0] + end)
    path.chmod(0o644)
    return path


def heeding_signals() -> None:
    """For a process that a test sends signals to (`preexec_fn`): what our own parent ignores, a child would ignore as well.

    A shell ignores SIGINT for what it puts into the background, and `nohup` ignores SIGHUP.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def sandbox(own_settings: None) -> Iterator[Sandbox]:
    """One for all tests that grade in a process: its warm interpreter takes seconds to import torch."""
    from worker.backends import open_sandbox  # this import takes seconds, which most test files need not spend

    del own_settings
    with open_sandbox() as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres(data_dir: DataDir) -> Iterator[Postgres]:
    server = Postgres(data_dir, durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def broker(data_dir: DataDir) -> Iterator[Broker]:
    server = Broker(data_dir, durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    """URL of the maintenance database of a running Postgres; tests make databases of their own beside it."""
    return postgres.url("postgres")


@pytest.fixture(scope="session")
def broker_url(broker: Broker) -> str:
    """URL of a running Redis-protocol broker."""
    return broker.url


def administer(postgres: Postgres, statement: str, database: str) -> None:
    with psycopg.connect(
        host=str(postgres.socket_folder), user="kernelgate", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(database)))


@pytest.fixture(scope="session")
def migrated_template(postgres: Postgres) -> str:
    """A database at the newest revision that nobody writes to: copying it takes 40 ms, migrating takes 400."""
    administer(postgres, "CREATE DATABASE {}", TEMPLATE)
    schema.upgrade(postgres.url(TEMPLATE))
    return TEMPLATE


@pytest.fixture
def empty_database(postgres: Postgres) -> Iterator[str]:
    """URL of a database without any table."""
    name = f"empty_{next(_numbers)}"
    administer(postgres, "CREATE DATABASE {}", name)
    yield postgres.url(name)
    administer(postgres, "DROP DATABASE {} WITH (FORCE)", name)


EMPTIED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET session_replication_role = replica;  -- whatever refers to what
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
            IF pg_relation_size(name::regclass) > 1000000 THEN EXECUTE format('TRUNCATE %I CASCADE', name);
            ELSE EXECUTE format('DELETE FROM %I', name); END IF;
        END LOOP;
        FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
            PERFORM setval(name::regclass, 1, false);
        END LOOP;
    END $$;
"""
"""Leaves of a database what its migrations made. Takes a tenth of the processor time of another copy."""


class OneDatabase:
    """The database that the tests of a process use one after another; each finds it empty."""

    def __init__(self, postgres: Postgres, template: str) -> None:
        self.url = postgres.url("one")
        self._postgres = postgres
        self._template = template
        self._made = False

    def empty(self) -> None:
        if not self._made:
            administer(self._postgres, f"CREATE DATABASE {{}} TEMPLATE {self._template}", "one")
            self._made = True
            return
        with psycopg.connect(
            host=str(self._postgres.socket_folder), user="kernelgate", dbname="one", autocommit=True
        ) as connection:
            connection.execute(EMPTIED)

    def drop(self) -> None:
        administer(self._postgres, "DROP DATABASE {} WITH (FORCE)", "one")
        self._made = False


@pytest.fixture(scope="session")
def one_database(postgres: Postgres, migrated_template: str) -> OneDatabase:
    return OneDatabase(postgres, migrated_template)


@pytest.fixture
def changed_schema(one_database: OneDatabase) -> Iterator[None]:
    """For a test that changes more of the database than its rows."""
    yield
    one_database.drop()


@pytest.fixture
def database(broker: Broker, one_database: OneDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of a migrated, empty database; the settings and the pool of this process point at it.

    The broker is emptied too. The environment carries the settings, so child processes use the same services.
    """
    one_database.empty()
    redis.Redis(unix_socket_path=str(broker.socket)).flushall()
    monkeypatch.setenv("KERNELGATE_DATABASE_URL", one_database.url)
    monkeypatch.setenv("KERNELGATE_BROKER_URL", broker.url)
    forget_settings()
    yield one_database.url
    forget_settings()


def forget_settings() -> None:
    """Drops what this process cached of the settings and its database connections."""
    if db.engine.cache_info().currsize:
        db.engine().dispose()
        db.engine.cache_clear()
    settings.cache_clear()


@dataclass(frozen=True)
class Service:
    """The whole product: an API process and a worker process over their own database.

    url: where it listens. admin_token: of the account `admin`. env: the settings of its processes, for a command line
    that talks to the same database.
    """

    url: str
    admin_token: str
    env: dict[str, str]
    children: dict[str, Child]

    def token(self, handle: str, role: Role = Role.SUBMITTER) -> str:
        """A new account's token."""
        return make_account(self.env["KERNELGATE_DATABASE_URL"], handle, role)


def make_account(url: str, handle: str, role: Role) -> str:
    engine = create_engine(url, poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        _, secret = create_token(session, create_user(session, handle, role), days=1)
    return secret


@pytest.fixture(scope="session")
def service(data_dir: DataDir, postgres: Postgres, broker: Broker, migrated_template: str) -> Iterator[Service]:
    """The running product with one worker. Its limits per user are high, so that tests do not meet them by accident."""
    administer(postgres, f"CREATE DATABASE {{}} TEMPLATE {migrated_template}", "service")
    values = Settings(
        database_url=postgres.url("service"),
        # Its own database of the broker: the fixture `database` empties the first one.
        broker_url=f"{broker.url}?virtual_host=1",
        data_dir=data_dir.root / "service",
        port=free_port(),
        open_signup=True,
        pending_limit=50,
        hourly_limit=5000,
    )
    with running(data_dir, "service", values) as started:
        yield started


@contextmanager
def running(data_dir: DataDir, log: str, values: Settings) -> Iterator[Service]:
    """An API process and a worker process under `values`, ready; their logs begin with `log`."""
    values.data_dir.mkdir(exist_ok=True)
    take_stages_as_proven(values)
    env = environment(values)
    children = {
        name: Child(name, [sys.executable, "-m", "kernelgate", name], log=data_dir.log(f"{log}-{name}"), env=env)
        for name in ("serve", "worker")
    }
    url = f"http://127.0.0.1:{values.port}"
    try:
        for child in children.values():
            child.start()
        wait_until_ready(url, children.values())
        yield Service(url, make_account(values.database_url, "admin", Role.ADMIN), env, children)
    finally:
        for child in reversed(children.values()):
            child.stop()


def take_stages_as_proven(values: Settings) -> None:
    """Opens every stage without the minutes that a worker needs to prove them; tests/stages prove them."""
    stages, _ = load_stages(values.graders_dir)
    engine = create_engine(values.database_url, poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        session.add_all(StageVersion(stage=stage.name, hash=stage.hash, verified=True) for stage in stages.values())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until_ready(url: str, children: Iterable[Child], within_s: float = 90.0) -> None:
    """Until `/readyz` answers 200. Fails with the log of whichever process is to blame."""
    deadline = time.monotonic() + within_s
    answer = "nothing yet"
    while time.monotonic() < deadline:
        for child in children:
            assert child.running, f"{child.name} ended with {child.exit_status}:\n{child.tail(40)}"
        try:
            response = httpx.get(f"{url}/readyz", timeout=5)
        except httpx.TransportError as error:
            answer = repr(error)
        else:
            if response.status_code == httpx.codes.OK:
                return
            answer = response.text
        time.sleep(0.1)
    logs = "\n".join(f"--- {child.name}\n{child.tail(40)}" for child in children)
    pytest.fail(f"not ready after {within_s} s: {answer}\n{logs}")
