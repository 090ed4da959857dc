"""One nvcc run taken apart, so that its host side and its device side are compiled at the same time.

nvcc runs its eight programs one after the other. Here the two front ends (cudafe++ for the host, cicc for the device) run side
by side, and then the host's compiler beside ptxas. Both front ends have to agree on a name for unnamed namespaces, the module
id, which is stated here; the host compiler needs the stubs that cicc writes, and no device code: the recorder reads none. Its
library is linked by gold where that is there, in half the time. The programs and their options are otherwise those that
`nvcc --dryrun` prints; where they are not as expected, nvcc itself is run.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache

MODULE_ID = "_kernelgate"
NO_DEVICE_CODE = """\
#include "fatbinary_section.h"
static const unsigned long long none[2] = {0, 0};
static const __fatBinC_Wrapper_t __fatDeviceText __attribute__((aligned(8))) __attribute__((section(".nvFatBinSegment"))) =
    {0x466243b1, 1, none, 0};
"""
_KEPT = ("PATH", "TOP", "CICC_PATH", "NVVMIR_LIBRARY_DIR", "LD_LIBRARY_PATH")
_PROGRAMS = ("g++ -E", "cudafe++", "g++ -E", "cicc", "ptxas", "fatbinary", "g++ -c", "g++ -shared")


@cache
def at_once(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command that does what this nvcc command does, both sides at once; the same command where that cannot be had.

    command: nvcc's full path and options, `--keep`, `-shared` and `-o STEM.so` among them, and the source file, last. It is
    run in the folder that holds the source. What both sides say goes to the error stream, the host's first; the exit status
    is that of the side that failed.
    """
    planned = _planned(command)
    return ("/bin/sh", "-c", planned) if planned else command


def _planned(command: Sequence[str]) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [command[0], "--dryrun", *command[1:]], capture_output=True, text=True, check=False, cwd=folder, timeout=60
        )
    lines = [line.removeprefix("#$ ") for line in done.stderr.splitlines() if line.startswith("#$ ")]
    stated = {line.partition("=")[0]: line.partition("=")[2] for line in lines if re.fullmatch(r"\w+=.*", line)}
    steps = [line for line in lines if not re.fullmatch(r"\w+=.*", line)]
    if done.returncode or tuple(map(_program, steps)) != _PROGRAMS:
        return None
    return _script(command[-1].removesuffix(".cu"), {name: stated[name] for name in _KEPT if name in stated}, steps)


def _program(step: str) -> str:
    words = step.replace('"', "").split()
    name = words[0].rpartition("/")[2]
    mode = next((word for word in words if word in ("-E", "-c", "-shared")), "")
    return f"{name} {mode}" if name == "g++" else name


def _script(stem: str, stated: dict[str, str], steps: list[str]) -> str:
    host_text, cudafe, device_text, cicc, ptxas, _, compile_host, link = steps
    cudafe = cudafe.replace("--gen_module_id_file", "")
    return "\n".join(
        [
            *(f"export {name}={shlex.quote(value)}" for name, value in stated.items()),
            f"printf %s {MODULE_ID} > {stem}.module_id",
            f"cat > {stem}.fatbin.c <<'END'\n{NO_DEVICE_CODE}END",
            f"{{ {device_text} && {cicc}; }} > device.log 2>&1 &",
            "device=$!",
            f"{host_text} && {cudafe} || exit",
            "wait $device || { status=$?; cat device.log >&2; exit $status; }",
            f"{ptxas} >> device.log 2>&1 &",
            "device=$!",
            f"{compile_host} && {link}{' -fuse-ld=gold' if shutil.which('ld.gold') else ''}",
            "host=$?",
            "wait $device",
            "status=$?",
            "cat device.log >&2",
            "[ $host -eq 0 ] || exit $host",
            "exit $status",
            "",
        ]
    )
