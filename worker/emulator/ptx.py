"""The emulator's other route: what cannot be rewritten (inline PTX, CUB) is compiled by nvcc, and its PTX is translated.

The host code is recorded, as it is for a GPU (docs/tape.md): it runs in the sandbox without any array and leaves a tape for
each case. The tapes are replayed by a program of ours around the translated kernels, in the same passes, under the same limits
and with the same findings as rewritten source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.emulator.backend import Emulation, facts
from worker.emulator.build import Programs, build_translated
from worker.emulator.run import Call
from worker.emulator.toolchain import Pass, toolchain, translator
from worker.judging.failures import Failure
from worker.judging.job import CaseRun, Job
from worker.recording.compile import Compiled, compile_cuda, demangled
from worker.recording.placement import WORKSPACE, Buffer, Edge
from worker.recording.record import Device, Take, record
from worker.recording.tape import Copy, Fill, Launch, Tape, Upload, Work

TARGET = "90a"
"""The architecture that PTX is made for: the virtual GPU's, with its own instructions."""
VIRTUAL = Device(
    "Kernelgate virtual GPU",
    8 << 30,
    {
        1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 0x7FFFFFFF, 6: 65535, 7: 65535, 8: 48 << 10, 9: 64 << 10, 10: 32, 12: 65536,
        13: 1_000_000, 16: 16, 31: 1, 38: 50 << 20, 39: 2048, 41: 1, 75: 9, 76: 0, 81: 228 << 10, 82: 65536, 95: 1,
        97: 227 << 10, 106: 32, 111: 1024,
    },
)  # fmt: skip
"""CUDA's device attributes by number, as the rewriting route answers them (kernels/emulator/runtime/host_api.cpp)."""
FIRST_ADDRESS, APART, ALIGNMENT = 0x6A00_0000_0000, 1 << 32, 256
"""Where arrays lie: free of the program's own mappings, of AddressSanitizer's heap and of the tape's stand-in addresses."""
WORKSPACE_NAME = "__workspace"


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order; raises Failure for what the submission did."""
    yield from Translation(job).run()


class Translation(Emulation):
    """One submission in the emulator, by way of its PTX."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.text = ""
        self.tapes: dict[str, Tape] = {}
        job.machine = {"route": "PTX"}

    def _prepare(self) -> None:
        job = self.job
        compiled = compile_cuda(job, TARGET)
        with job.phases.during(Phase.COMPILE):
            self.text = self._translated(compiled)
            self._build([Pass.PLAIN])
        cases = job.cases_without_gpu
        takes = [Take(case, Edge.END, self._buffers(case)) for case in cases]
        tapes = record(job, compiled, VIRTUAL, takes)
        self.tapes = {take.case.name: tapes[take.label] for take in takes}

    def _translated(self, compiled: Compiled) -> str:
        module = translator()
        names = list(compiled.cubin.kernels)
        shown = dict(zip(names, demangled(self.job.sandbox, names), strict=True))
        try:
            return str(module.translate(compiled.ptx.decode(errors="replace"), self.seam.file, shown).text)
        except module.PtxError as error:
            where = f", line {error.line}" if error.line else ""
            kernel = f", kernel {error.kernel[:200]}" if error.kernel else ""
            message = f"{self.seam.file}{where}{kernel}: {error.message}; docs/emulator.md says what is."
            raise Failure(Reason.CANNOT_EMULATE, message, log=self.job.log) from None

    def _build(self, passes: Sequence[Pass]) -> Programs:
        job, tools = self.job, toolchain()
        job.machine |= facts(tools)
        made = build_translated(tools, self.text, passes, sandbox=job.sandbox, cancelled=job.cancelled)
        self.programs.update(made.executables)
        return made

    def _call(self, case: Case) -> Call:
        call = super()._call(case)
        tape = self.tapes.get(case.name)
        if tape is None:
            return call
        buffers = self._buffers(case)
        outputs = dict(call.outputs)
        if WORKSPACE in buffers:
            outputs[WORKSPACE_NAME] = buffers[WORKSPACE].size
        addresses = {WORKSPACE_NAME if name == WORKSPACE else name: it.address for name, it in buffers.items()}
        return replace(call, outputs=outputs, addresses=addresses, tape=script(tape), static=1 << 40)

    def _buffers(self, case: Case) -> dict[str, Buffer]:
        """Where a case's arrays lie; each ends at the end of a page."""
        call = super()._call(case)
        sizes = {name: array.nbytes for name, array in call.inputs.items()} | dict(call.outputs)
        if call.workspace:
            sizes[WORKSPACE] = call.workspace
        placed = {}
        for at, (name, size) in enumerate(sizes.items()):
            start = FIRST_ADDRESS + at * APART
            placed[name] = Buffer(name, address(at, size), size, start, APART, name not in call.inputs)
        return placed


def address(number: int, size: int) -> int:
    """Where the array of that number lies: its last 256 bytes end where a page ends, as the runtime asks."""
    return FIRST_ADDRESS + (number + 1) * APART - -(-size // ALIGNMENT) * ALIGNMENT


def script(tape: Tape) -> str:
    """A tape as `kernels/emulator/seam/replay.cpp` reads it; its order is one that its streams and events allow."""
    lines = [f"variable {_word(name)} {address} {size}" for name, (address, size) in tape.variables.items()]
    return "\n".join([*lines, *(_line(node.work) for node in tape.nodes), ""])


def _line(work: Work) -> str:
    match work:
        case Launch():
            sizes = " ".join(map(str, (*work.grid, *work.block, work.shared, int(work.cooperative))))
            cluster = " ".join(map(str, work.cluster or ()))
            return f"launch {_word(work.kernel)} {sizes} {work.arguments.hex() or '-'} {cluster}".rstrip()
        case Fill():
            return f"fill {work.to} {work.value} {work.size}"
        case Copy():
            return f"copy {work.to} {work.source} {work.size}"
        case Upload():
            return f"upload {work.to} {work.data.hex() or '-'}"


def _word(name: str) -> str:
    """A name of the tape's as one word; what is none of PTX's names the replay does not know."""
    return "".join(c if c.isalnum() or c in "_$" else "?" for c in name) or "?"


__all__ = ["Translation", "run_cases", "script"]
