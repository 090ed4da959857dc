"""A worker-like process that attacks its own sandbox on demand, so that tests can have it as any user, on any kind of host.

`prober.py PYTHON UID LIKE`: LIKE is `plain`; or `docker`: this process then refuses itself new namespaces with a system-call
filter, as Docker's default profile does; or `bare`: every layer is left out that can be, but for the limits of processes.
The first line on stdout describes the layers; then, for each line `WAY NAME` on stdin, one line with the outcome. WAY is
`run` or `session` with a probe's name, or `neighbours`.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from worker.sandbox import Sandbox, SandboxError, SessionEnded, account, layers, layers_table, seccomp, syscalls
from worker.sandbox.attacks.probes import LIMITS, PRELUDE, PROBES, attack
from worker.sandbox.attacks.targets import Targets

BARE = [name for name in layers.NAMES if name not in (layers.WATCHDOG, layers.RLIMITS)]
NEIGHBOUR = """
import glob, os, time
secret = "the neighbour's " + "words"
open("answer.txt", "w").write(secret)
os.environ["ANSWER"] = secret
priority = os.getpriority(os.PRIO_PROCESS, 0)
channel.sendall(b"r")
channel.recv(1)
alive = os.path.exists("answer.txt") and os.getpriority(os.PRIO_PROCESS, 0) == priority
channel.sendall(b"y" if alive else b"n")
time.sleep(5)
"""
INTRUDER = """
import glob
pids = [p for p in {pids} if p != os.getpid()]
fail = {{}}
for p in pids:
    fail[f"kill{{p}}"] = lambda p=p: os.kill(p, signal.SIGKILL)
    fail[f"mem{{p}}"] = lambda p=p: os.open(f"/proc/{{p}}/mem", os.O_RDONLY)
    fail[f"env{{p}}"] = lambda p=p: read(f"/proc/{{p}}/environ")
    fail[f"cwd{{p}}"] = lambda p=p: os.listdir(f"/proc/{{p}}/cwd/")
    fail[f"fd{{p}}"] = lambda p=p: os.listdir(f"/proc/{{p}}/fd")
    fail[f"trace{{p}}"] = lambda p=p: call(101 if X86 else 117, 16, p, 0, 0)
    fail[f"nice{{p}}"] = lambda p=p: os.setpriority(os.PRIO_PROCESS, p, 19)
    fail[f"limit{{p}}"] = lambda p=p: call(302 if X86 else 261, p, 7, (ctypes.c_ulong * 2)(3, 3), None)
none_of(**fail, files=lambda: [f for f in glob.glob("/tmp/*/answer.txt") + glob.glob("/scratch/../*/answer.txt")] or False)
try: os.kill(-1, signal.SIGKILL)
except OSError: pass
"""


def refuse_namespaces() -> None:
    """What Docker's default profile refuses of what the sandbox would use."""
    filtered = seccomp.Program()
    filtered.load(seccomp.NUMBER)
    for name in ("unshare", "setns", "mount", "umount2", "pivot_root", "mount_setattr"):
        filtered.refuse(name)
    filtered.refuse("clone3", errno.ENOSYS)
    filtered.without_bits("clone", 0, seccomp.NAMESPACE_FLAGS)
    filtered.add(seccomp.RETURN, seccomp.ALLOW)
    if os.getuid() != 0:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(b"".join(filtered.code))


def intrude(sandbox: Sandbox) -> dict[str, object]:
    """One session attacks everything that is in another one, and the interpreters around both."""
    with sandbox.session(NEIGHBOUR, limits=LIMITS) as neighbour:
        neighbour.read(1, within_s=10)
        pids = [pid for pid in account.descendants(os.getpid()) if pid != os.getpid()]
        code = PRELUDE + INTRUDER.format(pids=pids)
        with sandbox.session(code, limits=LIMITS) as intruder:
            try:
                intruder.read(1, within_s=10)
            except SessionEnded as ended:
                said = (ended.finished.stdout + ended.finished.stderr).decode()
        neighbour.write(b"?", within_s=5)
        answer = neighbour.read(1, within_s=5)
    held = answer == b"y" and "BREACH" not in said and len(pids) >= 3
    return {"held": held, "detail": f"{answer!r} {said[:300]}", "end": ""}


def answer(sandbox: Sandbox, targets: Targets, way: str, name: str) -> dict[str, object]:
    try:
        if way == "neighbours":
            return intrude(sandbox)
        probe = next(probe for probe in PROBES if probe.name == name)
        outcome = attack(sandbox, probe, targets, warm=way == "session")
    except (SandboxError, SessionEnded) as error:
        return {"held": False, "detail": f"{type(error).__name__}: {error}", "end": ""}
    return {"held": outcome.held, "detail": outcome.detail, "end": outcome.finished.end}


def main(python: str, uid: str, like: str) -> None:
    if like == "docker":
        refuse_namespaces()
    try:
        sandbox = Sandbox(python=Path(python), uid=int(uid), minimum="none", without=BARE if like == "bare" else ())
    except SandboxError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    with sandbox, Targets() as targets:
        print(json.dumps({"level": sandbox.layers.level, "layers": layers_table(sandbox.layers)}), flush=True)
        for line in sys.stdin:
            way, _, name = line.strip().partition(" ")
            print(json.dumps(answer(sandbox, targets, way, name)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
