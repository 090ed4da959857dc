"""Sandboxes to test: this process's own, a warm one with torch, and probers as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelgate.settings import ROOT
from worker.sandbox import Limits, Sandbox

UID = 64123
ORDINARY = 64777
PROBER = Path("tests", "worker", "sandbox", "prober.py")
LIMITS = Limits(wall_s=10, cpu_s=10, memory_mb=256, scratch_mb=16, output_kb=64)


def world_python() -> str | None:
    """A Python of at least 3.11 that any user may execute."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        return None
    new = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False)
    return python if new.returncode == 0 else None


@dataclass
class Prober:
    """A running prober.py; see there."""

    process: subprocess.Popen[str]
    level: str
    layers: list[list[str]]

    def ask(self, way: str, name: str = "") -> dict[str, object]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{way} {name}\n")
        self.process.stdin.flush()
        found: dict[str, object] = json.loads(self.process.stdout.readline())
        return found


@pytest.fixture(scope="session")
def open_checkout() -> Iterator[Path]:
    """A checkout that every user may read: what a prober imports, in a folder of its own. Ours may lie in a private home."""
    folder = Path(tempfile.mkdtemp(prefix="kg-prober-"))
    try:
        shutil.copytree(ROOT / "worker" / "sandbox", folder / "worker" / "sandbox")
        for name in (Path("worker", "__init__.py"), PROBER):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def command(who: str, like: str, checkout: Path) -> list[str]:
    """How to start a prober as `who`; skips where this process cannot."""
    root = os.getuid() == 0
    if who == "root" and not root:
        pytest.skip("needs root")
    # An ordinary user, or the spare user without a mount namespace, cannot read an interpreter in a private home.
    shared = (root and who == "user") or (root and like == "docker")
    python = world_python() if shared else sys.executable
    if python is None:
        pytest.skip("needs a Python of at least 3.11 in /usr/bin that every user may execute")
    drop = []
    if root and who == "user":
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv to become an ordinary user")
        drop = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all"]
    return [*drop, python, "-B", str(checkout / PROBER), python, str(UID), like]


def start(who: str, like: str, checkout: Path) -> Prober:
    process = subprocess.Popen(
        command(who, like, checkout), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    )
    assert process.stdout
    described = json.loads(process.stdout.readline())
    assert "error" not in described, described["error"]
    return Prober(process, described["level"], described["layers"])


@pytest.fixture(scope="session")
def probers(open_checkout: Path) -> Iterator[Callable[[str], Prober]]:
    """Probers by host, `root-plain`, `user-docker` and so on; each is started when it is first asked for."""
    started: dict[str, Prober] = {}

    def of(host: str) -> Prober:
        who, like = host.split("-")
        if host not in started:
            started[host] = start(who, like, open_checkout)
        if like == "plain" and started[host].level != "full":
            missing = [f"{name}: {detail}" for name, holds, detail, _ in started[host].layers if holds == "absent"]
            pytest.skip(f"this host has no namespaces for {who}: {'; '.join(missing)}")
        return started[host]

    yield of
    for prober in started.values():
        assert prober.process.stdin
        assert prober.process.stdout
        prober.process.stdin.close()
        prober.process.wait(20)
        prober.process.stdout.close()


@pytest.fixture(scope="session")
def open_python() -> str:
    """A Python that the spare user can execute without a mount namespace's help."""
    python = world_python() if os.getuid() == 0 else sys.executable
    return python or pytest.skip("needs a Python of at least 3.11 in /usr/bin that every user may execute")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(python=Path(sys.executable), uid=UID, minimum="none") as made:
        yield made


@pytest.fixture(scope="session")
def torch_sandbox() -> Iterator[Sandbox]:
    pytest.importorskip("torch", reason="needs the packages of requirements/grade.txt")
    with Sandbox(python=Path(sys.executable), uid=UID, minimum="none", preload=["torch"]) as made:
        yield made
