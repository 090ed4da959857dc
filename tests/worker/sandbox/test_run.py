"""Commands: what goes in, what comes out, how they end."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from worker.sandbox import End, Finished, Limits, Sandbox, SandboxError

LIMITS = Limits(wall_s=10, cpu_s=10, memory_mb=256, scratch_mb=16, output_kb=64)
CPP = """
#include <cstdio>
int main() { std::printf("compiled\\n"); return 3; }
"""


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def python(sandbox: Sandbox, code: str, **options: object) -> Finished:
    return sandbox.run([sandbox.python, "-I", "-S", "-c", code], **{"limits": LIMITS, **options})  # type: ignore[arg-type]


def test_exit_status_and_output_are_kept(sandbox: Sandbox) -> None:
    finished = python(sandbox, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (finished.end, finished.exit_code, finished.signal) == (End.EXITED, 7, None)
    assert (finished.stdout, finished.stderr) == (b"out\n", b"err\n")
    assert 0 < finished.wall_ms < 10_000


def test_a_signal_of_its_own_is_told_from_ours(sandbox: Sandbox) -> None:
    finished = python(sandbox, "import os; os.kill(os.getpid(), 9)")
    assert (finished.end, finished.exit_code, finished.signal) == (End.SIGNALED, None, 9)


def test_abort_and_segmentation_fault(sandbox: Sandbox) -> None:
    assert python(sandbox, "import os; os.abort()").signal == 6
    assert python(sandbox, "import ctypes; ctypes.string_at(0)").signal == 11


def test_files_stdin_and_collected_files(sandbox: Sandbox) -> None:
    code = (
        "import os, sys; os.makedirs('out/deep');"
        "open('out/deep/x', 'wb').write(open('in/a', 'rb').read() + sys.stdin.buffer.read())"
    )
    finished = python(sandbox, code, files={"in/a": b"\0file"}, stdin=b"+stdin", collect=["out/deep/x", "missing"])
    assert finished.files == {"out/deep/x": b"\0file+stdin"}, finished.stderr


def test_only_regular_files_are_collected(sandbox: Sandbox) -> None:
    code = "import os; os.symlink('/etc/passwd', 'link'); os.symlink('/usr', 'usr'); os.mkdir('folder');print('made')"
    finished = python(sandbox, code, collect=["link", "usr/bin/env", "folder", "absent/x"])
    assert finished.stdout == b"made\n"
    assert finished.files == {}


def test_a_real_compiler_runs(sandbox: Sandbox) -> None:
    compiler = shutil.which("c++", path="/usr/bin")
    if compiler is None:
        pytest.skip("needs a C++ compiler at /usr/bin/c++")
    limits = Limits(wall_s=60, cpu_s=60, memory_mb=1024, scratch_mb=64, output_kb=64)
    built = sandbox.run([compiler, "a.cpp", "-o", "a"], limits=limits, files={"a.cpp": CPP.encode()}, collect=["a"])
    assert built.exit_code == 0, built
    assert built.peak_mb > 1
    code = "import os; os.chmod('a', 0o700); os.execv('a', ['a'])"
    ran = python(sandbox, code, files={"a": built.files["a"]})
    assert (ran.exit_code, ran.stdout) == (3, b"compiled\n")


def test_environment_home_and_working_folder_are_fresh(sandbox: Sandbox) -> None:
    code = "import os; print(sorted(os.environ), os.listdir('.'), sorted(os.listdir('/tmp')))"
    finished = python(sandbox, code)
    listed = finished.stdout.decode()
    # A checkout in /tmp has its interpreter there, and the way to that is shown.
    here = Path(sys.prefix)
    shown = [here.relative_to("/tmp").parts[0]] if here.is_relative_to("/tmp") else []
    assert listed.endswith(f"[] {shown}\n")
    assert "KERNELGATE" not in listed
    assert "PATH" in listed


def test_more_may_be_made_readable_but_not_writable(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "x").write_text("given")
    code = f"print(open({str(folder / 'x')!r}).read()); open({str(folder / 'y')!r}, 'w')"
    hidden = python(sandbox, code)
    assert b"given\n" not in hidden.stdout
    shown = python(sandbox, code, readable=[folder])
    assert shown.stdout == b"given\n"
    assert shown.exit_code == 1
    assert not (folder / "y").exists()


def test_cancelling_kills(sandbox: Sandbox) -> None:
    start = time.monotonic()
    finished = python(
        sandbox,
        "print('on', flush=True); import time; time.sleep(60)",
        cancelled=lambda: time.monotonic() > start + 0.5,
    )
    assert finished.end is End.KILLED, "the run's own limit would have ended it at 10 s"


def test_output_is_cut_at_the_limit_and_ends_the_run(sandbox: Sandbox) -> None:
    finished = python(sandbox, "while True: print('x' * 1000)")
    assert finished.end is End.OUTPUT
    assert len(finished.stdout) == LIMITS.output_kb * 1024
    assert finished.exit_code is None


def test_output_up_to_the_limit_is_kept_whole(sandbox: Sandbox) -> None:
    finished = python(sandbox, f"print('x' * {LIMITS.output_kb * 1024 - 1})")
    assert (finished.end, len(finished.stdout)) == (End.EXITED, LIMITS.output_kb * 1024)


def test_peak_memory_is_measured(sandbox: Sandbox) -> None:
    finished = python(sandbox, "a = bytearray(b'x') * (100 << 20); import time; time.sleep(.5)")
    assert finished.end is End.EXITED
    assert 95 < finished.peak_mb < 140


def test_a_command_that_does_not_exist_is_our_fault(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"/usr/bin/no-such-compiler.*No such file"):
        sandbox.run(["/usr/bin/no-such-compiler"], limits=LIMITS)


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a//b", "", "./x", "a\0b"])
def test_names_that_leave_the_folder_are_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ValueError, match="a relative path"):
        python(sandbox, "", files={name: b""})
    with pytest.raises(ValueError, match="a relative path"):
        python(sandbox, "", collect=[name])


def test_a_relative_command_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="a full path"):
        sandbox.run(["python3"], limits=LIMITS)


def test_files_larger_than_the_scratch_limit_are_our_fault(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="scratch folder"):
        python(sandbox, "", files={"big": bytes(20 << 20)})


@pytest.mark.parametrize("limit", ["wall_s", "cpu_s", "memory_mb", "scratch_mb", "output_kb"])
def test_limits_are_positive(limit: str) -> None:
    figures = {"wall_s": 1, "cpu_s": 1, "memory_mb": 1, "scratch_mb": 1, "output_kb": 1}
    with pytest.raises(ValueError, match=f"limit {limit} is 0"):
        Limits(**{**figures, limit: 0})  # type: ignore[arg-type]


def test_an_interpreter_that_does_not_run_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="KERNELGATE_RUNNER_PYTHON"):
        Sandbox(python=tmp_path / "python", uid=64123, minimum="none")


def test_no_descriptor_of_ours_is_left_over(sandbox: Sandbox) -> None:
    before = open_descriptors()
    for _ in range(3):
        python(sandbox, "pass")
        with sandbox.session("channel.recv(1)", limits=LIMITS):
            pass
        with pytest.raises(SandboxError):
            sandbox.run(["/nowhere"], limits=LIMITS)
    assert open_descriptors() == before


def test_the_interpreter_is_the_one_that_was_asked_for(sandbox: Sandbox) -> None:
    finished = python(sandbox, "import sys; print(sys.executable, sys.hexversion)")
    assert finished.stdout.decode().split() == [sys.executable, str(sys.hexversion)]
