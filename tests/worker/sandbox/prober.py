"""A worker-like process that attacks its own sandbox on demand, so that tests can have it as any user, on any kind of host.

`prober.py PYTHON UID LIKE`: LIKE is `plain`, or `docker`: this process then refuses itself new namespaces with a system-call
filter, as Docker's default profile does. The first line on stdout describes the layers; then, for each line `WAY NAME` on
stdin, one line with the outcome.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from worker.sandbox import Sandbox, SandboxError, layers_table, seccomp, syscalls
from worker.sandbox.probes import PROBES, attack
from worker.sandbox.targets import Targets


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


def main(python: str, uid: str, like: str) -> None:
    if like == "docker":
        refuse_namespaces()
    probes = {probe.name: probe for probe in PROBES}
    try:
        sandbox = Sandbox(python=Path(python), uid=int(uid), minimum="none")
    except SandboxError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    with sandbox, Targets() as targets:
        print(json.dumps({"level": sandbox.layers.level, "layers": layers_table(sandbox.layers)}), flush=True)
        for line in sys.stdin:
            way, name = line.strip().split(" ", 1)
            try:
                outcome = attack(sandbox, probes[name], targets, warm=way == "session")
                answer = {"held": outcome.held, "detail": outcome.detail, "end": outcome.finished.end}
            except SandboxError as error:
                answer = {"held": False, "detail": f"SandboxError: {error}", "end": ""}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
