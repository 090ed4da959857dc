"""Several samples as one submission: compiled once for all of them, and told by a number which to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.worker.emulator.conftest import LIMITS, Emulated
from tests.worker.emulator.samples import CTYPES, Array, Arrays, Sample
from worker.emulator.run import Ran
from worker.emulator.toolchain import Pass

INPUTS, OUTPUTS, NUMBERS = ("a", "b", "c", "d"), ("x", "y"), ("i", "j", "k")
SIGNATURE = (
    f'extern "C" void samples({", ".join(f"const float* {name}" for name in INPUTS)}, '
    f"{', '.join(f'float* {name}' for name in OUTPUTS)}, int which, "
    f"{', '.join(f'int {name}' for name in NUMBERS)}, float f, cudaStream_t stream)"
)
NOTHING = np.zeros(1, np.float32)


@dataclass(frozen=True)
class Merged:
    """Compiled samples; call it with one of them."""

    samples: Sequence[Sample]
    emulated: Emulated

    def __call__(self, sample: Sample, build: Pass, **schedule: object) -> dict[str, bytes]:
        """The bytes of the sample's arrays after a run that must return without a finding or an error."""
        ran = self.run(sample, build, **schedule)
        names = [*zip(sample.made(), INPUTS, strict=False), *zip(sample.outputs, OUTPUTS, strict=False)]
        return {own: ran.written[given_as] for own, given_as in names}

    def run(self, sample: Sample, build: Pass, **schedule: object) -> Ran:
        given = dict(zip(INPUTS, [*sample.made().values(), *[NOTHING] * len(INPUTS)], strict=False))
        sizes = [size * np.dtype(dtype).itemsize for size, dtype in sample.outputs.values()]
        outputs = dict(zip(OUTPUTS, [*sizes, *[4] * len(OUTPUTS)], strict=False))
        ran = self.emulated(build, given, outputs, self._values(sample), **{"limits": LIMITS, **schedule})
        _assert_returned(ran, sample, build)
        return ran

    def _values(self, sample: Sample) -> Mapping[str, float]:
        whole = [value for value in sample.values.values() if not isinstance(value, float)]
        broken = [value for value in sample.values.values() if isinstance(value, float)]
        numbers = dict(zip(NUMBERS, [*whole, 0, 0, 0], strict=False))
        return {"which": self.samples.index(sample), **numbers, "f": broken[0] if broken else 0.0}


def merge(
    samples: Sequence[Sample], emulate: Callable[..., Emulated], passes: Sequence[Pass], code: Pass = Pass.CHECK
) -> Merged:
    return Merged(samples, emulate("samples", SIGNATURE, source(samples), passes, code=code))


def source(samples: Sequence[Sample]) -> str:
    """The samples' files, each in a namespace of its own, and a seam that calls the one that is asked for."""
    lines = [line for sample in samples for line in sample.source.splitlines()]
    includes = dict.fromkeys(line for line in lines if line.startswith("#include"))
    bodies = [f"namespace of_{sample.name} {{\n{_without_includes(sample)}\n}}\n" for sample in samples]
    calls = [f"    case {at}: return of_{sample.name}::{_call(sample)};\n" for at, sample in enumerate(samples)]
    return "\n".join([*includes, "", *bodies]) + f"{SIGNATURE} {{\n  switch (which) {{\n{''.join(calls)}  }}\n}}\n"


def _without_includes(sample: Sample) -> str:
    return "\n".join("" if line.startswith("#include") else line for line in sample.source.splitlines())


def _call(sample: Sample) -> str:
    inputs: Arrays = sample.made()
    given = [f"(const {_ctype(array)}*){name}" for array, name in zip(inputs.values(), INPUTS, strict=False)]
    given += [f"({CTYPES[dtype]}*){name}" for (_, dtype), name in zip(sample.outputs.values(), OUTPUTS, strict=False)]
    numbers = iter(NUMBERS)
    given += ["f" if isinstance(value, float) else next(numbers) for value in sample.values.values()]
    return f"{sample.name}({', '.join([*given, 'stream'])})"


def _ctype(array: Array) -> str:
    return CTYPES[str(array.dtype)]


def _assert_returned(ran: Ran, sample: Sample, build: Pass) -> None:
    told = ran.finding.sentence(ran.lines) if ran.finding else ran.error or ran.finished.stderr.decode()
    assert ran.returned, f"{sample.name} in {build}: {ran.finished.end}, {told}"
    assert ran.error == ""
