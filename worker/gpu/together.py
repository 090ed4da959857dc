"""Several measured cases as one time: what a board ranks by, and the figures of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kernelgate.protocol import Table, Timing
from kernelgate.stages import Measured


def together(timings: Mapping[str, Timing], rule: Measured) -> Timing | None:
    """The one that counts, of the figures by case: their geometric mean, or the worst of them.

    The mean's interval is that of the cases' ends, which is at least as wide as its own. Samples and figures of the card are
    those of the worst case.
    """
    if not timings:
        return None
    worst = min(timings, key=lambda name: timings[name].speedup)
    one = timings[worst]
    if len(timings) == 1:
        return one
    facts: dict[str, float | str] = {"counts": f"the {rule} of {len(timings)} cases", "worst_case": worst, **one.facts}
    for name, timing in timings.items():
        facts[f"{name}_ms"] = round(timing.user_ms, 5)
        facts[f"{name}_baseline_ms"] = round(timing.baseline_ms, 5)
        facts[f"{name}_speedup"] = round(timing.speedup, 4)
    if rule is Measured.WORST:
        return one.model_copy(update={"facts": facts})
    every = timings.values()
    return one.model_copy(
        update={
            "baseline_ms": _mean(each.baseline_ms for each in every),
            "user_ms": _mean(each.user_ms for each in every),
            "speedup": _mean(each.speedup for each in every),
            "speedup_low": _mean(each.speedup_low for each in every),
            "speedup_high": _mean(each.speedup_high for each in every),
            "facts": facts,
        }
    )


def _mean(values: Iterable[float]) -> float:
    """Geometric: half as fast in one case and twice in another is neither won nor lost."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def speeds(timings: Mapping[str, Timing]) -> tuple[Table, ...]:
    """Every measured case: a loss stands there as plainly as a win. Beside the baseline, whatever else was timed."""
    beside = sorted({name for timing in timings.values() for name in timing.facts if name.startswith(BESIDE)})
    titles = [name.removeprefix(BESIDE).replace("_", " ") for name in beside]
    columns = ("case", "baseline, ms", "yours, ms", "speedup", "95 % interval", *titles, "baseline")
    rows = tuple(
        (
            name,
            round(timing.baseline_ms, 5),
            round(timing.user_ms, 5),
            round(timing.speedup, 3),
            f"{timing.speedup_low:.3f} to {timing.speedup_high:.3f}",
            *(timing.facts.get(each, "") for each in beside),
            str(timing.facts.get("baseline", "")),
        )
        for name, timing in timings.items()
    )
    return (Table(title="Speed against the baseline", columns=columns, rows=rows),) if rows else ()


BESIDE = "beside_"
"""Before the name of a further computation's milliseconds."""
