"""Compiles a CUDA submission in the sandbox: nvcc's programs make the host library that is recorded and the device code that
is replayed.

Flags are the stage's, never the submitter's. The library is linked against no CUDA runtime: the recorder stands in for it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.protocol import KernelResources
from kernelgate.reasons import Reason
from kernelgate.verdicts import Phase
from worker.judging.endings import end_failure
from worker.judging.failures import Failure
from worker.judging.frames import printable
from worker.judging.job import Job
from worker.recording import kept
from worker.recording.cubin import Cubin, MalformedCubinError, read_cubin
from worker.recording.diagnostics import with_columns
from worker.recording.memory_of_kernels import check_variables
from worker.recording.native import cuda_root, host_compiler
from worker.recording.nvcc import at_once
from worker.sandbox import End, Finished, Limits, Sandbox

COMPILE_S = 120.0
SCRATCH_MB = 256
LOG = "log"
"""What the compilers said, beside the files that they made."""
DEMANGLE_LIMITS = Limits(wall_s=5, cpu_s=2, memory_mb=128, scratch_mb=1, output_kb=256, processes=4)


@dataclass(frozen=True)
class Compiled:
    """library: the host side, an x86-64 or aarch64 shared object. device: the cubin; ptx: its text. log: what ptxas said."""

    library: bytes
    device: bytes
    cubin: Cubin
    log: str
    ptx: bytes = b""


def architecture(major: int, minor: int) -> str:
    """The card's own target: with its architecture-specific instructions from Hopper on, e.g. "90a"."""
    return f"{major}{minor}" + ("a" if major >= 9 else "")


def compile_cuda(job: Job, target: str) -> Compiled:
    """Compiles the job's source for `target`. Raises Failure with `compile_error`, or the limit that was hit."""
    with job.phases.during(Phase.COMPILE):
        stem = job.stage.spec.file.removesuffix(".cu")
        texts = {f"{stem}.cu": job.source.encode(), **{name: it.encode() for name, it in job.importable.items()}}
        command = at_once(nvcc_command(stem, target))
        name = kept.key("nvcc", command, programs(), texts, texts.values())
        made = kept.read(name)
        if made is None:
            made = _made(job, command, texts, stem)
            kept.write(name, made)
        job.log = _readable(made[LOG])
        return _compiled(job, made, stem)


def programs() -> list[str]:
    """The compilers as they lie here."""
    parts = ("bin/nvcc", "nvvm/bin/cicc", "bin/ptxas", "bin/cudafe++")
    return [kept.identity(path) for path in (*(cuda_root() / part for part in parts), host_compiler())]


def _made(job: Job, command: tuple[str, ...], texts: Mapping[str, bytes], stem: str) -> dict[str, bytes]:
    """The files that the compilers made, and what they said. Raises Failure."""
    finished = job.sandbox.run(
        command,
        limits=Limits(
            wall_s=COMPILE_S,
            cpu_s=2 * COMPILE_S,
            memory_mb=8192,
            scratch_mb=SCRATCH_MB,
            output_kb=512,
            processes=64,
        ),
        files=texts,
        collect=[f"{stem}.so", f"{stem}.cubin", f"{stem}.ptx"],
        readable=[cuda_root()],
        cancelled=job.cancelled,
    )
    said = finished.stdout + finished.stderr
    job.log = with_columns(_readable(said), f"{stem}.cu", job.source)
    if finished.end is not End.EXITED:
        raise _stopped(job, finished)
    if finished.exit_code or not {f"{stem}.so", f"{stem}.cubin"} <= finished.files.keys():
        raise Failure(Reason.NVCC_ERROR, _first_error(job.log), log=job.log)
    return {**finished.files, LOG: said}


def nvcc_command(stem: str, target: str) -> tuple[str, ...]:
    """What compiles `stem`.cu in its folder for an architecture, e.g. "90a": to `stem`.so and `stem`.cubin."""
    return (
        str(cuda_root() / "bin" / "nvcc"),
        "-std=c++17",
        "-O3",
        "-lineinfo",
        f"-gencode=arch=compute_{target},code=sm_{target}",
        "-Xptxas=-v",
        "-Xcompiler=-fPIC,-fno-use-linker-plugin",
        "-shared",
        "-cudart=none",
        "--keep",
        "-I.",
        f"-ccbin={host_compiler()}",
        "-o",
        f"{stem}.so",
        f"{stem}.cu",
    )


def _compiled(job: Job, made: Mapping[str, bytes], stem: str) -> Compiled:
    device = made[f"{stem}.cubin"]
    try:
        cubin = read_cubin(device)
    except MalformedCubinError as error:
        raise Failure(Reason.NO_DEVICE_CODE, f"The device code is unusable: {error}.") from None
    if not cubin.kernels:
        raise Failure(Reason.NO_KERNEL, f"{job.stage.spec.file} has no __global__ function that is used.")
    job.resources = _resources(job.sandbox, cubin, job.log)
    check_variables([cubin], job.stage.spec.limits)
    return Compiled(made[f"{stem}.so"], device, cubin, job.log, made.get(f"{stem}.ptx", b""))


COMPILER_ENDS = {
    End.MEMORY: Reason.COMPILE_MEMORY,
    End.OUTPUT: Reason.COMPILE_OUTPUT,
    End.SCRATCH: Reason.COMPILE_SCRATCH,
    End.SIGNALED: Reason.COMPILE_CRASHED,
}


def _stopped(job: Job, finished: Finished) -> Failure:
    if finished.end in (End.WALL, End.CPU):
        return Failure(Reason.COMPILE_TIME, f"nvcc was stopped after {COMPILE_S:g} s; compile less.", log=job.log)
    failure = end_failure(finished, None, job.stage.spec.limits)
    return Failure(COMPILER_ENDS[finished.end], f"nvcc was stopped: {failure.message}", log=job.log)


def _readable(said: bytes) -> str:
    return printable(said.decode(errors="replace"), limit=32_000)


def _first_error(log: str) -> str:
    for line in log.splitlines():
        if re.search(r"\b[Ee]rror\b|fatal|undefined reference", line):
            return line[:1000]
    return (log.strip().splitlines() or ["nvcc failed and said nothing"])[-1][:1000]


def _resources(sandbox: Sandbox, cubin: Cubin, log: str) -> tuple[KernelResources, ...]:
    spills = dict(re.findall(r"entry function '([^']+)'.*?\n.*?\n.*?(\d+) bytes spill stores", log))
    names = list(cubin.kernels)[:64]
    return tuple(
        KernelResources(
            kernel=shown[:2000],
            registers=cubin.kernels[name].registers,
            spill_bytes=int(spills.get(name, 0)),
            shared_bytes=cubin.kernels[name].shared_bytes,
        )
        for name, shown in zip(names, demangled(sandbox, names), strict=True)
    )


def with_occupancy(
    resources: tuple[KernelResources, ...], cubin: Cubin, occupancy: Mapping[str, float]
) -> tuple[KernelResources, ...]:
    """The resources of a cubin's kernels with the occupancy that was found for some of them, by mangled name."""
    names = list(cubin.kernels)[: len(resources)]
    return tuple(
        each.model_copy(update={"occupancy": occupancy.get(name)}) for name, each in zip(names, resources, strict=True)
    )


def demangled(sandbox: Sandbox, names: list[str], *, with_parameters: bool = False) -> list[str]:
    """C++ names as written in the source, where c++filt is installed; as they are otherwise.

    In the sandbox and with limits of its own: names are the submitter's, and one of 300 characters can stand for gigabytes.
    """
    program = shutil.which("c++filt")
    if program is None or not any(name.startswith("_Z") for name in names):
        return names
    done = sandbox.run(
        ["/bin/sh", "-c", f"exec {program} {'' if with_parameters else '-p'} < names"],
        limits=DEMANGLE_LIMITS,
        files={"names": "\n".join(names).encode(errors="replace")},
    )
    shown = done.stdout.decode(errors="replace").splitlines() if done.end is End.EXITED else []
    return [name.removeprefix("(anonymous namespace)::") for name in shown] if len(shown) == len(names) else names
