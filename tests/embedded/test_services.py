"""Postgres and the broker as a person meets them: started twice, killed, left half made, in odd places, by odd users."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.errors import EmbeddedError
from embedded.postgres import Postgres, installations
from kernelgate.settings import ROOT

START_BOTH = """
import sys
from pathlib import Path
import psycopg, redis
from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.postgres import Postgres
data = DataDir(Path(sys.argv[1]))
postgres, broker = Postgres(data, durable=False), Broker(data, durable=False)
postgres.start(); broker.start()
with psycopg.connect(postgres.url().replace("+psycopg", "")) as connection:
    assert connection.execute("SELECT 41 + 1").fetchone() == (42,)
assert redis.Redis(unix_socket_path=str(broker.socket)).ping()
print(postgres.pid, broker.pid, flush=True)
if "wait" in sys.argv:
    sys.stdin.read()
broker.stop(); postgres.stop()
"""


@pytest.fixture
def place() -> Iterator[DataDir]:
    """A data folder of its own with a short path."""
    root = Path(tempfile.mkdtemp(prefix="kgs-"))
    root.chmod(0o711)
    data = DataDir(root)
    yield data
    data.release()
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def server(place: DataDir) -> Iterator[Postgres]:
    postgres = Postgres(place, durable=False)
    postgres.start()
    yield postgres
    postgres.stop()


def query(postgres: Postgres, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(postgres.url().replace("+psycopg", "")) as connection:
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody reaps has, too)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(condition: Callable[[], bool], within_s: float = 15.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def test_starting_twice_changes_nothing(server: Postgres) -> None:
    pid = server.pid
    server.start()
    assert server.pid == pid


def test_data_survives_a_stop_and_a_kill(server: Postgres) -> None:
    query(server, "CREATE TABLE kept (value int)")
    query(server, "INSERT INTO kept VALUES (7)")
    server.stop()
    assert not server.running
    server.start()
    assert query(server, "SELECT value FROM kept") == [(7,)]
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not server.running)
    server.start()
    assert query(server, "SELECT value FROM kept") == [(7,)]


def test_a_pid_file_that_names_some_other_process_does_not_stop_a_start(server: Postgres, place: DataDir) -> None:
    server.stop()
    pid_file = place.root / "postgres" / "postmaster.pid"
    owner = (place.root / "postgres").stat()
    pid_file.write_text(f"{os.getppid()}\n{place.root / 'postgres'}\n")
    os.chown(pid_file, owner.st_uid, owner.st_gid)
    lock = server.socket_folder / ".s.PGSQL.5432.lock"
    lock.write_text(f"{os.getppid()}\n")
    server.start()
    assert query(server, "SELECT 1") == [(1,)]


def test_an_interrupted_first_start_leaves_nothing_in_the_way(place: DataDir) -> None:
    half = place.root / "postgres.partial"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    postgres = Postgres(place, durable=False)
    postgres.start()
    postgres.stop()
    assert not half.exists()


def test_a_server_whose_starter_was_killed_ends_and_the_next_start_finds_the_data(place: DataDir) -> None:
    argv = [sys.executable, "-c", START_BOTH, str(place.root), "wait"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as starter:
        assert starter.stdout is not None
        pids = [int(word) for word in starter.stdout.readline().split()]
        starter.kill()
    assert len(pids) == 2
    postgres, broker = Postgres(place, durable=False), Broker(place, durable=False)
    postgres.start()
    broker.start()
    try:
        until(lambda: all(gone(pid) for pid in pids))
        assert query(postgres, "SELECT 1") == [(1,)]
        assert broker.answers()
    finally:
        broker.stop()
        postgres.stop()


def test_data_of_a_postgres_that_is_not_here_is_named(server: Postgres, place: DataDir) -> None:
    server.stop()
    written = place.root / "postgres" / "PG_VERSION"
    here = written.read_text()
    written.write_text("9\n")
    with pytest.raises(EmbeddedError, match=r"written by Postgres 9; this machine has \[.*\d"):
        server.start()
    written.write_text(here)


def test_a_start_that_fails_shows_the_end_of_the_log(server: Postgres, place: DataDir) -> None:
    server.stop()
    (place.root / "postgres" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedError, match="no_such_setting"):
        server.start()


def test_every_installation_found_here_says_its_version() -> None:
    found = list(installations())
    assert found
    assert all(major >= 13 and (folder / "initdb").exists() for major, folder in found)


def test_a_second_owner_is_told_who_has_the_folder(place: DataDir) -> None:
    place.acquire()
    with pytest.raises(EmbeddedError, match=f"in use by process {os.getpid()}.*KERNELGATE_DATA_DIR"):
        DataDir(place.root).acquire()
    place.release()
    second = DataDir(place.root)
    second.acquire()
    second.release()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedError, match=r"data folder .*file/data: Not a directory"):
        DataDir(tmp_path / "file" / "data").create()


def test_a_long_path_moves_the_sockets_and_nothing_else(place: DataDir) -> None:
    deep = DataDir(place.root / ("d" * 120))
    postgres, broker = Postgres(deep, durable=False), Broker(deep, durable=False)
    try:
        postgres.start()
        broker.start()
        assert query(postgres, "SELECT 1") == [(1,)]
        assert len(os.fsencode(broker.socket)) < 107
        assert (deep.root / "postgres" / "PG_VERSION").exists()
    finally:
        broker.stop()
        postgres.stop()
        deep.release()
        shutil.rmtree(deep.sockets())


def test_a_short_socket_folder_that_others_may_write_to_is_refused(place: DataDir) -> None:
    deep = DataDir(place.root / ("e" * 120))
    deep.create()
    folder = deep.sockets()
    folder.chmod(0o777)
    try:
        with pytest.raises(EmbeddedError, match="writable by others; remove it"):
            deep.sockets()
    finally:
        folder.rmdir()


def test_sockets_cannot_be_reached_by_other_accounts(server: Postgres, place: DataDir) -> None:
    broker = Broker(place, durable=False)
    broker.start()
    try:
        for socket in (broker.socket, server.socket_folder / ".s.PGSQL.5432"):
            assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
            if os.geteuid() == 0:
                stranger = ["setpriv", "--reuid=64123", "--regid=64123", "--clear-groups", "test", "-e", str(socket)]
                assert subprocess.run(stranger, check=False).returncode == 1
                assert subprocess.run(stranger[4:], check=False).returncode == 0
    finally:
        broker.stop()


def test_the_queue_survives_a_killed_broker(place: DataDir) -> None:
    broker = Broker(place)
    broker.start()
    try:
        with redis.Redis(unix_socket_path=str(broker.socket)) as client:
            client.lpush("queue", "message")
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        until(lambda: not broker.running)
        assert not broker.answers()
        broker.start()
        with redis.Redis(unix_socket_path=str(broker.socket)) as client:
            assert client.lrange("queue", 0, -1) == [b"message"]
    finally:
        broker.stop()


def namespace(uid: int) -> list[str]:
    return ["unshare", "--user", f"--map-user={uid}", f"--map-group={uid}"]


def usable(prefix: list[str]) -> bool:
    """Whether our interpreter finds its packages and our own as that user: all of them may lie in a private home."""
    asked = [*prefix, sys.executable, "-c", "import psycopg, redis, embedded.postgres"]
    return subprocess.run(asked, capture_output=True, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("who", "prefix"),
    [
        ("an account with a name", ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]),
        ("a uid without a passwd entry", ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]),
        ("nobody in a namespace", namespace(65534)),
        ("a uid without a passwd entry in a namespace", namespace(54321)),
    ],
)
def test_both_run_for_an_unprivileged_user(who: str, prefix: list[str], place: DataDir) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    if not usable(prefix):
        pytest.skip(
            f"{who} cannot run {sys.executable} here (a folder above it is private, or there are no namespaces)"
        )
    if prefix[0] == "setpriv":
        uid = int(prefix[1].rpartition("=")[2])
        os.chown(place.root, uid, uid)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", START_BOTH, str(place.root)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_root_behind_a_private_folder_runs_postgres_and_leaves_the_folder_private(place: DataDir) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root needs to run Postgres as somebody else")
    place.root.chmod(0o700)
    hidden = DataDir(place.root / "data")
    postgres = Postgres(hidden, durable=False)
    try:
        postgres.start()
        assert query(postgres, "SELECT 1") == [(1,)]
        assert stat.S_IMODE(place.root.stat().st_mode) == 0o700
    finally:
        postgres.stop()
        hidden.release()
