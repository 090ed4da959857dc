"""What bounds a right submission's kernels, and the one next step: from facts alone, and nothing where they do not speak.

A step is in the stage's own words where it has some for that bound (`faster` in stage.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelgate.faster import STEPS, Bound
from kernelgate.protocol import Faster, KernelResources
from worker.judging.job import Job
from worker.judging.traffic import SECTORS_A_PASS, Access, Traffic

LEAST_SHARE = 0.25
"""Of all that the warps ask of memory: what would save less is no next step."""
SCATTERED, TWICE = 2.5, 1.8
"""What takes so many times the least is worth a word. A request across a border takes a sector more than it must; where nvcc
has unrolled a loop and takes its remainder first, lanes that are an iteration apart take twice as many."""
MANY_BLOCKS = 16
"""So many blocks read every byte. Cases that are counted have a few hundred rows at most: blocks of 32 rows stay below."""
LARGE = 0.1
"""Of the bytes of all inputs and outputs: re-reading a smaller array costs little, for it stays in a cache."""
SPILLED_BYTES = 16
AT_THE_LIMIT = 0.8
FAR_FROM_IT, LOW_OCCUPANCY = 0.4, 0.2


@dataclass(frozen=True)
class Fact:
    """What was found. weight: the larger, the more it costs."""

    bound: Bound
    sentence: str
    weight: float
    lines: tuple[int, ...] = ()


def next_step(job: Job) -> Faster | None:
    """Of a right submission."""
    facts = [*_of_timing(job), *_of_kernels(job.resources), *(_of_traffic(job.traffic) if job.traffic else ())]
    if not facts:
        return None
    fact = max(facts, key=lambda each: each.weight)
    step = job.stage.spec.faster.get(fact.bound, STEPS[fact.bound])
    return Faster(bound=fact.bound, sentence=fact.sentence, step=step, lines=fact.lines)


def _of_timing(job: Job) -> Iterator[Fact]:
    """What was measured outweighs what was counted."""
    facts: Mapping[str, float | str] = job.timing.facts if job.timing else {}
    bandwidth, pipe = (facts.get(name) for name in ("share_of_peak_bandwidth", "share_of_fp32_peak"))
    if isinstance(bandwidth, float) and bandwidth >= AT_THE_LIMIT:
        sentence = f"It moves its inputs and outputs, each once, at {bandwidth:.0%} of the memory's peak."
        yield Fact(Bound.BANDWIDTH, sentence, 4.0)
    if isinstance(pipe, float) and pipe >= AT_THE_LIMIT:
        yield Fact(Bound.ARITHMETIC, f"It computes at {pipe:.0%} of the card's fp32 peak.", 4.0)
    shares = [share for share in (bandwidth, pipe) if isinstance(share, float)]
    if shares and max(shares) < FAR_FROM_IT:
        yield from _of_occupancy(job.resources)


def _of_occupancy(resources: tuple[KernelResources, ...]) -> Iterator[Fact]:
    known = [each for each in resources if each.occupancy is not None]
    if len(known) != 1 or (known[0].occupancy or 1.0) >= LOW_OCCUPANCY:
        return  # of several kernels it is not known which takes the time
    one = known[0]
    sentence = (
        f"{one.kernel}: {one.occupancy:.0%} of a multiprocessor's warps are resident, with {one.registers} registers a thread "
        f"and {one.shared_bytes} bytes of static shared memory a block."
    )
    yield Fact(Bound.OCCUPANCY, sentence, 0.1)


def _of_kernels(resources: tuple[KernelResources, ...]) -> Iterator[Fact]:
    spilled = [each for each in resources if each.spill_bytes >= SPILLED_BYTES]
    if spilled:
        worst = max(spilled, key=lambda each: each.spill_bytes)
        sentence = f"{worst.kernel}: {worst.spill_bytes} bytes of each thread's registers are spilled to local memory."
        yield Fact(Bound.SPILLS, sentence, 2.0)


def _of_traffic(traffic: Traffic) -> Iterator[Fact]:
    """What could be saved, by its share of all that the warps ask of memory."""
    total = sum(access.cost for access in traffic.accesses)
    known = [access for access in traffic.accesses if access.line]
    scattered = [access for access in known if not access.shared and access.taken >= SCATTERED * access.least]
    meeting = [access for access in known if access.shared and access.taken >= TWICE * access.least]
    for bound, wasteful, said in (
        (Bound.UNCOALESCED, scattered, _uncoalesced),
        (Bound.BANK_CONFLICTS, meeting, _conflicts),
    ):
        saved = sum(access.waste for access in wasteful) / total if wasteful else 0.0
        if saved >= LEAST_SHARE:
            worst = max(wasteful, key=lambda access: access.waste)
            yield Fact(bound, said(worst), saved, (worst.line,))
    yield from _read_again(traffic, total)


def _uncoalesced(access: Access) -> str:
    taken, least = access.taken / access.requests, access.least / access.requests
    return (
        f"Line {access.line}: each time a warp {access.verb} {access.array}, its lanes touch {taken:.3g} sectors of 32 bytes, "
        f"where {least:.3g} would hold what they ask for."
    )


def _conflicts(access: Access) -> str:
    degree = access.taken / access.least
    return (
        f"Line {access.line}: when a warp {access.verb} {access.array or 'shared memory'}, its lanes meet in the same banks of "
        f"shared memory, and it takes {degree:.3g} times as long as it must."
    )


def _read_again(traffic: Traffic, total: float) -> Iterator[Fact]:
    """A large array that a block reads again and again, or that nearly every block reads."""
    large = LARGE * sum(traffic.arrays.values())
    for array, size in traffic.arrays.items():
        reads = [each for each in traffic.accesses if each.array == array and not each.shared and not each.writes]
        distinct = max((access.distinct for access in reads), default=0.0)
        if size < large or not distinct:
            continue
        each_block = sum(access.within for access in reads) / distinct
        in_all = sum(access.bytes for access in reads) / size
        lines = tuple(sorted({access.line for access in reads} - {0})[:4])
        at = f"Line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}: " if lines else ""
        if each_block >= TWICE:
            said = f"{at}each block asks {each_block:.3g} times for every byte of {array} that it needs, in the mean."
            fact, times = Bound.READ_AGAIN, each_block
        elif in_all >= MANY_BLOCKS:
            said = f"{at}all blocks together ask {in_all:.3g} times for every byte of {array}, each of them about once."
            fact, times = Bound.READ_BY_EVERY_BLOCK, in_all
        else:
            continue
        saved = sum(access.least for access in reads) / SECTORS_A_PASS * (1 - 1 / times) / total
        if saved >= LEAST_SHARE:
            yield Fact(fact, said, saved, lines)
