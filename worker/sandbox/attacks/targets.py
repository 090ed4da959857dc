"""What attack probes aim at: things of the host that a run must not see, reach or change, set up for the occasion."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

WORDS = "a secret of the host"
SLEEPER = "import time; time.sleep(600)"


class Targets:
    """A context manager. All of it is as open as the host's permissions allow, so that only the sandbox is in the way."""

    def __enter__(self) -> Targets:
        self.folder = Path(tempfile.mkdtemp(prefix="kernelgate-probe-"))
        self.folder.chmod(0o755)
        self.secret = self.folder / "secret"
        self.secret.write_text(WORDS)
        self.secret.chmod(0o644)
        self.state = self._state()
        self.writable = self.folder / "writable"
        self._make_writable()
        self.marker = f"kernelgate-daemon-{self.folder.name[-8:]}"  # two may be set up in one process
        self._stack = contextlib.ExitStack()
        self._open_sockets()
        self._start_victim()
        return self

    def _make_writable(self) -> None:
        self.writable.mkdir()
        self.writable.chmod(0o777)

    def _start_victim(self) -> None:
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SLEEPER, "victim"], env={"SECRET": WORDS}, stdin=subprocess.DEVNULL
        )

    def _open_sockets(self) -> None:
        self.tcp = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.udp = self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.udp.bind(("127.0.0.1", 0))
        self.stream = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        self.stream.bind(str(self.folder / "stream"))
        self.datagram = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.datagram.bind(str(self.folder / "datagram"))
        self.abstract = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        self.abstract.bind(f"\0{self.marker}")
        for name in ("stream", "datagram"):
            (self.folder / name).chmod(0o777)
        for listener in (self.stream, self.abstract):
            listener.listen()
        for one in (self.tcp, self.udp, self.stream, self.datagram, self.abstract):
            one.setblocking(False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.victim.kill()
        self.victim.wait()
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def names(self) -> dict[str, str]:
        """What the probes' texts call them."""
        return {
            "secret": str(self.secret),
            "words": WORDS,
            "writable": str(self.writable),
            "folder": str(self.folder),
            "stream": str(self.folder / "stream"),
            "datagram": str(self.folder / "datagram"),
            "abstract": self.marker,
            "marker": self.marker,
            "tcp": str(self.tcp.getsockname()[1]),
            "udp": str(self.udp.getsockname()[1]),
            "victim": str(self.victim.pid),
            "worker": str(os.getpid()),
        }

    def damage(self) -> str:
        """What a probe has done to the targets, in words; empty when nothing. What was done is undone."""
        found = []
        if self.victim.poll() is not None:
            found.append("the victim process is dead")
            self._start_victim()
        if self._state() != self.state:
            found.append(f"the secret file was changed: {self._state()} from {self.state}")
            self.secret.write_text(WORDS)
            self.secret.chmod(0o644)
            self.state = self._state()
        if written := os.listdir(self.writable):
            found.append(f"files were written: {written}")
            shutil.rmtree(self.writable)
            self._make_writable()
        for name, listener in (("tcp", self.tcp), ("stream", self.stream), ("abstract", self.abstract)):
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                found.append(f"a connection to the {name} socket arrived")
        for name, listener in (("udp", self.udp), ("datagram", self.datagram)):
            with contextlib.suppress(BlockingIOError):
                listener.recv(100)
                found.append(f"a message to the {name} socket arrived")
        if daemons := self._daemons():
            found.append(f"processes outlived their run: {daemons}")
        return "; ".join(found)

    def _state(self) -> tuple[float, ...]:
        facts = self.secret.stat()
        return facts.st_mode, facts.st_uid, facts.st_gid, facts.st_size, facts.st_mtime_ns

    def _daemons(self) -> list[int]:
        found = []
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:  # an end of process is not instant
            found = [int(name) for name in os.listdir("/proc") if name.isdigit() and self._marked(name)]
            if not found:
                break
            time.sleep(0.01)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        return found

    def _marked(self, pid: str) -> bool:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(self.marker.encode())
        except OSError:
            return False
