"""Services that die are started again, those that keep dying end everything, and a signal stops all of them in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from embedded import supervisor as supervising
from embedded.errors import EmbeddedError
from embedded.ports import choose_port
from embedded.process import Child
from embedded.supervisor import STOP_SIGNALS, Supervisor
from kernelgate.settings import ROOT
from tests.conftest import free_port, heeding_signals

WATCHED = """
import signal, sys
from pathlib import Path
from embedded.process import Child
from embedded.supervisor import Stop, Supervisor, stoppable, undisturbed
folder = Path(sys.argv[1])
script = 'trap "sleep 0.3; echo {0} >> order; exit 0" TERM; echo $$; while true; do sleep 0.05; done'
with stoppable():
    owner = Supervisor(print)
    try:
        for name in ("first", "second"):
            argv = ["sh", "-c", script.format(name)]
            owner.start(Child(name, argv, log=folder / f"{name}.log", cwd=folder))
        print("up", *(service.pid for service in owner.services), flush=True)
        owner.watch()
    except Stop:
        print("stopping", flush=True)
    finally:
        undisturbed()
        owner.stop_all()
print("stopped")
"""


@contextmanager
def watched(folder: Path, *prefix: str) -> Iterator[tuple[subprocess.Popen[str], IO[str], list[int]]]:
    """A process that supervises two services, once both run: it, what it says, and their pids. Nothing outlives the block.

    prefix: a command before it.
    """
    argv = [*prefix, sys.executable, "-c", WATCHED, str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=heeding_signals) as process:
        assert process.stdout is not None
        try:
            word, *pids = process.stdout.readline().split()
            assert word == "up"
            while not all((folder / f"{name}.log").read_text().strip() for name in ("first", "second")):
                time.sleep(0.01)
            yield process, process.stdout, [int(pid) for pid in pids]
        finally:
            process.kill()


def sleeper(folder: Path, name: str = "sleeper") -> Child:
    return Child(name, ["sleep", "600"], log=folder / f"{name}.log")


def test_a_service_that_died_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "PAUSE_S", 0.01)
    said: list[str] = []
    owner = Supervisor(said.append)
    child = sleeper(tmp_path)
    owner.start(child)
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    while child.running:
        time.sleep(0.01)
    owner.revive()
    assert child.running
    assert child.pid != first
    assert said == ["sleeper ended with status -9; starting it again in 0.0 s"]
    owner.stop_all()
    assert not child.running


def test_a_service_that_keeps_dying_ends_it_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "PAUSE_S", 0.01)
    owner = Supervisor(lambda _line: None)
    other = sleeper(tmp_path, "other")
    owner.start(other)
    owner.start(Child("broken", ["sh", "-c", "echo no such luck; exit 3"], log=tmp_path / "broken.log"))
    with pytest.raises(
        EmbeddedError, match=r"broken died 5 times within 60 s, the last time with status 3(?s:.*)no such luck"
    ):
        owner.watch()
    owner.stop_all()
    assert not other.running


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    child = Child("ghost", ["/no/such/program"], log=tmp_path / "ghost.log")
    with pytest.raises(EmbeddedError, match="ghost: cannot run /no/such/program: No such file"):
        child.start()


def test_stopping_kills_what_ignores_the_signal_and_what_it_started(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 601 & echo $!; while true; do sleep 0.05; done"
    child = Child("deaf", ["sh", "-c", script], log=tmp_path / "deaf.log", grace_s=0.3)
    child.start()
    while not child.tail().strip():
        time.sleep(0.01)
    grandchild = int(child.tail().split()[0])
    child.stop()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{grandchild}").exists() and "Z" not in Path(f"/proc/{grandchild}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "the grandchild outlived the stop"
        time.sleep(0.01)


def test_a_log_does_not_grow_without_bound(tmp_path: Path) -> None:
    log = tmp_path / "sleeper.log"
    log.write_bytes(b"x" * (9 << 20))
    child = sleeper(tmp_path)
    child.start()
    child.stop()
    assert log.stat().st_size == 0
    assert (tmp_path / "sleeper.log.1").stat().st_size == 9 << 20


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_stops_everything_in_reverse_order_and_a_second_one_does_not_disturb(
    number: signal.Signals, tmp_path: Path
) -> None:
    with watched(tmp_path) as (process, said, pids):
        process.send_signal(number)
        assert said.readline() == "stopping\n"
        process.send_signal(number)
        assert said.read() == "stopped\n"
        assert process.wait() == 0
    assert (tmp_path / "order").read_text().split() == ["second", "first"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_hanging_up_after_nohup_and_an_interrupt_from_the_background(tmp_path: Path) -> None:
    """`nohup` asks to survive the terminal; a shell's `&` ignores SIGINT without anybody having asked for it."""
    with watched(tmp_path, "sh", "-c", 'trap "" HUP INT; exec "$@"', "sh") as (process, said, _):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert said.read() == "stopping\nstopped\n"
        assert process.wait() == 0


def test_a_free_port_is_taken_as_it_is() -> None:
    port = free_port()
    assert choose_port("127.0.0.1", port, insist=True) == port
    assert choose_port("127.0.0.1", 0, insist=True) > 0


def test_a_taken_port_is_an_error_or_gives_way(listening_port: int) -> None:
    with pytest.raises(EmbeddedError, match=f"port {listening_port} of 127.0.0.1 is taken.*KERNELGATE_PORT"):
        choose_port("127.0.0.1", listening_port, insist=True)
    assert listening_port < choose_port("127.0.0.1", listening_port, insist=False) <= listening_port + 20


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(EmbeddedError, match=r"host 'no\.such\.host.invalid'.*KERNELGATE_HOST"):
        choose_port("no.such.host.invalid", 8000, insist=False)
