"""`kernelgate up` as a person runs it: the real command, stopped, and started again over the same data."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

import httpx
import pytest

from kernelgate.settings import ROOT
from tests.conftest import heeding_signals
from worker.stages.scaffold import scaffold

PATIENCE_S = 240.0
STAGE = "probe"
pytestmark = pytest.mark.timeout(600)


class Running:
    """A `kernelgate up` in the background, and the lines that it says."""

    def __init__(self, root: Path, **environment: str) -> None:
        self.root = root
        self.lines: list[str] = []
        self._said: Queue[str] = Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kernelgate", "up"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "KERNELGATE_DATA_DIR": str(root), **environment},
            preexec_fn=heeding_signals,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for line in said:
                self._said.put(line.rstrip("\n"))

    def until(self, pattern: str) -> re.Match[str]:
        """The first line from here on that has the pattern."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                line = self._said.get(timeout=0.5)
            except Empty:
                if self.process.poll() is not None and self._said.empty():
                    break
                continue
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found
        logs = "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in self.root.glob("logs/*.log"))
        raise AssertionError(f"never said {pattern!r}:\n" + "\n".join(self.lines) + "\n" + logs)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        self.until(r"^stopped")
        return self.process.wait(30)

    def left(self) -> dict[int, str]:
        """Process id and command line of whatever has the data folder in its environment or arguments."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment, words = ((entry / name).read_bytes() for name in ("environ", "cmdline"))
            except OSError:
                continue
            if os.fsencode(self.root) in environment + words:
                found[int(entry.name)] = words.replace(b"\0", b" ").decode().rstrip()
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The data folder that these tests share, in the order they stand: the first start, then later ones.

    The one stage is a new one, whose proof takes seconds.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kgu-", ignore_cleanup_errors=True) as root,
        pytest.MonkeyPatch.context() as patch,
    ):
        place = Path(root) / "data"
        for folder in (Path(root), place, Path(root) / "stages"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        scaffold(STAGE, Path(root) / "stages")
        patch.setenv("KERNELGATE_GRADERS_DIR", str(Path(root) / "stages"))
        yield place


def kernelgate(root: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kernelgate", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "KERNELGATE_DATA_DIR": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_start_proves_itself_and_leaves_nothing_behind(place: Path) -> None:
    running = Running(place, KERNELGATE_PORT="0")
    try:
        url = running.until(r"Kernelgate is at  (http://\S+)").group(1)
        token = running.until(r"admin token .*  (kg_\S+)").group(1)
        running.until(r"ready after [\d.]+ s")
        assert running.until(r"sample: the solution of (\w+) got '(\w+)' in").group(2) == "accepted"
        running.until("Ctrl-C stops it")
        assert httpx.get(f"{url}/readyz", timeout=10).json()["ready"] is True
        mine = httpx.get(f"{url}/me", headers={"Authorization": f"Bearer {token}"}, timeout=10)
        assert mine.json()["handle"] == "admin"
        board = httpx.get(f"{url}/leaderboard/{STAGE}", headers={"Accept": "application/json"}, timeout=10)
        assert "kernelgate-sample" not in board.text
        # Another terminal finds the running service without being told where it is.
        assert re.search(r"kg_\S{20,}", kernelgate(place, "token", "create", "admin"))
        assert "newest revision" in kernelgate(place, "migrate", "--check")
    finally:
        status = running.stop(signal.SIGINT)
    assert status == 0
    assert running.left() == {}
    assert not (place / "service.env").exists()


def test_a_later_start_two_at_once_a_child_that_dies_and_a_taken_port(place: Path, listening_port: int) -> None:
    running = Running(place, KERNELGATE_PORT="0")
    try:
        url = running.until(r"Kernelgate is at  (http://\S+)").group(1)
        running.until(r"for another: \S*kernelgate token create admin")
        second = Running(place)
        second.until(rf"data folder {place} is in use by process {running.process.pid}")
        assert second.process.wait(30) == 1
        running.until(r"sample: the solution of \w+ got 'accepted'")
        running.until("Ctrl-C stops it")
        assert not any("kg_" in line for line in running.lines)
        os.kill(
            next(pid for pid, words in running.left().items() if words.endswith("kernelgate serve")), signal.SIGKILL
        )
        running.until(r"serve ended with status -9; starting it again")
        deadline = time.monotonic() + 60
        while not answers(url):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        status = running.stop(signal.SIGTERM)
    assert status == 0
    assert running.left() == {}
    insisting = Running(place, KERNELGATE_PORT=str(listening_port))
    insisting.until(rf"port {listening_port} of 127.0.0.1 is taken.*KERNELGATE_PORT")
    assert insisting.process.wait(60) == 1
    assert insisting.left() == {}


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).is_success
    except httpx.TransportError:
        return False
