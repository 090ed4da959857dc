"""Sessions: the channel, deadlines, passed memory files, the warm interpreter and its end."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from worker.sandbox import End, Limits, Sandbox, SandboxError, SessionEnded, account

LIMITS = Limits(wall_s=10, cpu_s=10, memory_mb=256, scratch_mb=16, output_kb=64)
ECHO = """
while data := channel.recv(1 << 16):
    channel.sendall(data)
"""
WORKER = """
import os, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from worker.sandbox import Limits, Sandbox
sandbox = Sandbox(python=Path(sys.executable), uid=64123, minimum="none", without={without!r})
limits = Limits(wall_s=60, cpu_s=60, memory_mb=256, scratch_mb=16, output_kb=64)
program = "import os, time\\nif os.fork() == 0:\\n  os.setsid()\\nchannel.sendall(b'x')\\nwhile True: time.sleep(1)"
session = sandbox.session(program, limits=limits)
session.read(1, within_s=20)
from worker.sandbox import account
print(*account.descendants(os.getpid()), flush=True)
time.sleep(60)
"""


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_bytes_both_ways(sandbox: Sandbox) -> None:
    data = os.urandom(3 << 20)
    with sandbox.session(ECHO, limits=LIMITS) as session:
        for part in range(0, len(data), 1 << 16):
            session.write(data[part : part + (1 << 16)], within_s=5)
            assert session.read(1 << 16, within_s=5) == data[part : part + (1 << 16)]
        finished = session.finish()
    assert finished.end is End.KILLED
    assert session.finish() is finished


def test_globals_output_and_files(sandbox: Sandbox) -> None:
    program = (
        "import os, sys\nprint(__name__, fds, os.getcwd(), open('a').read())\nprint('e', file=sys.stderr)\nsys.exit(4)"
    )
    with (
        sandbox.session(program, limits=LIMITS, files={"a": b"content"}) as session,
        pytest.raises(SessionEnded) as ended,
    ):
        session.read(1, within_s=5)
    finished = ended.value.finished
    assert finished.end is End.EXITED
    assert finished.exit_code == 4
    assert finished.stdout.startswith(b"__main__ [] /")
    assert finished.stdout.endswith(b" content\n")
    assert finished.stderr == b"e\n"


def test_what_was_sent_before_the_end_is_still_read(sandbox: Sandbox) -> None:
    with sandbox.session("channel.sendall(b'12345678')", limits=LIMITS) as session:
        time.sleep(0.3)
        assert session.read(8, within_s=5) == b"12345678"
        with pytest.raises(SessionEnded):
            session.read(1, within_s=5)


def test_an_exception_shows_without_frames_of_ours(sandbox: Sandbox) -> None:
    with (
        sandbox.session("def f():\n  return 1 / 0\nf()", limits=LIMITS) as session,
        pytest.raises(SessionEnded) as ended,
    ):
        session.read(1, within_s=5)
    text = ended.value.finished.stderr.decode()
    assert text.count("File ") == 2
    assert "ZeroDivisionError" in text
    assert ended.value.finished.exit_code == 1


def test_the_deadline_ends_a_program_that_spins(sandbox: Sandbox) -> None:
    patient = replace(LIMITS, wall_s=90, cpu_s=90)
    with sandbox.session("while True: pass", limits=patient) as session:
        start = time.monotonic()
        with pytest.raises(SessionEnded) as ended:
            session.read(1, within_s=0.5)
    assert ended.value.finished.end is End.WALL
    assert time.monotonic() - start < 45, "the run's own limits would have ended it at 90 s"


def test_the_deadline_ends_a_program_that_does_not_read(sandbox: Sandbox) -> None:
    with sandbox.session("import time; time.sleep(60)", limits=LIMITS) as session, pytest.raises(SessionEnded) as ended:
        session.write(bytes(8 << 20), within_s=0.5)
    assert ended.value.finished.end is End.WALL


def test_a_flood_on_the_channel_blocks_the_program_not_us(sandbox: Sandbox) -> None:
    with sandbox.session("while True: channel.sendall(bytes(1 << 20))", limits=LIMITS) as session:
        time.sleep(0.3)
        assert session.read(1 << 20, within_s=5) == bytes(1 << 20)
        finished = session.finish()
    assert finished.end is End.KILLED
    assert finished.peak_mb < 64


def test_closing_the_channel_ends_the_session(sandbox: Sandbox) -> None:
    program = "import time; channel.close(); time.sleep(60)"
    with sandbox.session(program, limits=LIMITS) as session, pytest.raises(SessionEnded) as ended:
        session.read(1, within_s=5)
    assert (ended.value.finished.end, ended.value.finished.exit_code) == (End.EXITED, None)


def test_descriptors_sent_over_the_channel_are_dropped(sandbox: Sandbox) -> None:
    program = "import socket\nsocket.send_fds(channel, [b'x'], [0, 1, 2])\nchannel.recv(1)"
    before = open_descriptors()
    with sandbox.session(program, limits=LIMITS) as session:
        assert session.read(1, within_s=5) == b"x"
        during = open_descriptors()
    assert during <= before + 2


def test_cancelling_ends_a_read(sandbox: Sandbox) -> None:
    start = time.monotonic()
    with (
        sandbox.session("while True: pass", limits=LIMITS, cancelled=lambda: time.monotonic() > start + 0.3) as session,
        pytest.raises(SessionEnded) as ended,
    ):
        session.read(1, within_s=8)
    assert ended.value.finished.end is End.KILLED


def test_limits_hold_while_nobody_reads(sandbox: Sandbox) -> None:
    program = "a = []\nwhile True: a.append(bytearray(b'x' * (1 << 20)))"
    with sandbox.session(program, limits=LIMITS) as session:
        time.sleep(2.5)
        with pytest.raises(SessionEnded) as ended:
            session.write(b"x", within_s=5)
    assert ended.value.finished.end is End.MEMORY


def test_a_passed_memory_file_is_shared_and_does_not_count(sandbox: Sandbox) -> None:
    size = 300 << 20
    fd = os.memfd_create("arena")
    os.ftruncate(fd, size)
    program = (
        "import mmap\nm = mmap.mmap(fds[0], 0)\nm[:5] = b'hello'\n"
        "for i in range(0, len(m), 4096): m[i + 9] = 1\nchannel.sendall(b'x')\nchannel.recv(1)"
    )
    try:
        with sandbox.session(program, limits=LIMITS, fds=[fd]) as session:
            assert session.read(1, within_s=8) == b"x"
            with mmap.mmap(fd, size) as ours:
                assert ours[:5] == b"hello"
            time.sleep(0.2)
            finished = session.finish()
    finally:
        os.close(fd)
    assert finished.end is End.KILLED
    assert finished.peak_mb < 100


def test_a_program_that_is_no_python_is_our_fault(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="SyntaxError"):
        sandbox.session("def", limits=LIMITS)


def test_torch_is_there_single_threaded_and_not_counted(torch_sandbox: Sandbox) -> None:
    limits = Limits(wall_s=20, cpu_s=20, memory_mb=128, scratch_mb=8, output_kb=64)
    program = (
        "import sys\nassert 'torch' in sys.modules\nimport torch\nassert torch.get_num_threads() == 1\n"
        "a = torch.randn(256, 256)\nb = (a @ a).sum().item()\nchannel.sendall(b'x')\nchannel.recv(1)"
    )
    with torch_sandbox.session(program, limits=limits) as session:
        assert session.read(1, within_s=15) == b"x"
        time.sleep(0.3)
        finished = session.finish()
    assert finished.end is End.KILLED, finished
    assert finished.peak_mb < 100


def test_torch_may_not_take_more_than_its_limit(torch_sandbox: Sandbox) -> None:
    limits = Limits(wall_s=20, cpu_s=20, memory_mb=300, scratch_mb=8, output_kb=64)
    program = "import torch\na = [torch.ones(1 << 20) for _ in range({count})]\nchannel.sendall(b'x')\nchannel.recv(1)"
    with torch_sandbox.session(program.format(count=50), limits=limits) as session:  # 200 MiB
        assert session.read(1, within_s=15) == b"x"
    with (
        torch_sandbox.session(program.format(count=1000), limits=limits) as session,
        pytest.raises(SessionEnded) as ended,
    ):
        session.read(1, within_s=15)
    assert ended.value.finished.end is End.MEMORY


LEAVES = """
import sys
sys.kept = {secret!r}
for folder in (".", "/tmp", "/dev/shm"):
    try: open(f"{{folder}}/left_behind", "w").write(sys.kept)
    except OSError: continue
    channel.sendall(b".")
channel.sendall(b"!")
channel.recv(1)
"""
LOOKS = """
import ctypes, gc, glob, os, sys
texts = [o for o in gc.get_objects() if isinstance(o, (str, bytes)) and 'first session' in str(o)]
heap = b""
for line in open("/proc/self/maps"):
    low, high = (int(x, 16) for x in line.split()[0].split("-"))
    if "[heap]" in line: heap += ctypes.string_at(low, high - low)
needle = bytes(x ^ 1 for x in bytes.fromhex({masked!r}))
files = [path for folder in (".", "/tmp", "/dev/shm") for path in glob.glob(f"{{folder}}/**/left_behind", recursive=True)]
print(hasattr(sys, "kept"), texts, os.listdir("."), files, needle in heap)
"""


def test_nothing_of_one_session_is_left_for_the_next(sandbox: Sandbox) -> None:
    secret = "left by the first session"
    with sandbox.session(LEAVES.format(secret=secret), limits=LIMITS) as session:
        written = 0
        while session.read(1, within_s=8) == b".":
            written += 1
    assert written >= 2, "the first session has nowhere to leave anything"
    masked = bytes(byte ^ 1 for byte in secret.encode()).hex()
    with sandbox.session(LOOKS.format(masked=masked), limits=LIMITS) as session, pytest.raises(SessionEnded) as ended:
        session.read(1, within_s=8)
    assert ended.value.finished.stdout == b"False [] [] [] False\n", ended.value.finished


def test_a_warm_interpreter_that_died_is_started_again() -> None:
    with Sandbox(python=Path(sys.executable), uid=64123, minimum="none", preload=["json"]) as sandbox:
        for _ in range(2):
            with sandbox.session(ECHO, limits=LIMITS) as session:
                session.write(b"x", within_s=5)
                assert session.read(1, within_s=5) == b"x"
            warm = sandbox._warm.process
            assert warm
            warm.kill()
            warm.wait()


def test_runs_that_start_at_once_wait_for_one_interpreter() -> None:
    with Sandbox(python=Path(sys.executable), uid=64123, minimum="none") as sandbox:
        for _ in range(3):
            lost = sandbox._bare.process
            assert lost is not None
            lost.kill()
            lost.wait()
            with ThreadPoolExecutor(4) as pool:
                runs = [pool.submit(sandbox.run, ["/bin/true"], limits=LIMITS) for _ in range(4)]
            assert [run.result().exit_code for run in runs] == [0, 0, 0, 0]


def test_a_warm_interpreter_killed_under_a_session_is_our_fault() -> None:
    with Sandbox(python=Path(sys.executable), uid=64123, minimum="none") as sandbox:
        session = sandbox.session(ECHO, limits=LIMITS)
        warm = sandbox._warm.process
        assert warm
        below = account.descendants(warm.pid)
        warm.kill()
        with pytest.raises(SandboxError, match="supervisor is gone"):
            session.read(1, within_s=8)
        with pytest.raises(SandboxError, match="supervisor is gone"):
            session.finish()
        deadline = time.monotonic() + 5
        while any(_alive(pid) for pid in below) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not [pid for pid in below if _alive(pid)]


def test_preload_that_cannot_be_imported_says_so() -> None:
    sandbox = Sandbox(python=Path(sys.executable), uid=64123, minimum="none", preload=["no_such_module"])
    with sandbox, pytest.raises(SandboxError, match="No module named 'no_such_module'"):
        sandbox.session("", limits=LIMITS)


@pytest.mark.parametrize("without", [[], ["namespaces"]])
def test_everything_dies_with_its_worker(without: list[str]) -> None:
    from worker.sandbox import layers

    left_out = list(layers.NAMESPACES) if without else []
    if without and os.getuid() == 0:
        left_out.append(layers.UID)  # or the spare user could not read an interpreter in root's home
    code = WORKER.format(root=str(Path(__file__).resolve().parents[3]), without=left_out)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        pids = [int(word) for word in worker.stdout.readline().split()]
        assert len(pids) >= 5
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    deadline = time.monotonic() + 10
    while (left := [pid for pid in pids if _alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
