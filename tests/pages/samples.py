"""Stages and gradings to show: small folders on disk, and rows as a worker would have written them."""

from __future__ import annotations

import base64
import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from kernelgate.accounts import create_user
from kernelgate.lifecycle import columns_of
from kernelgate.models import EventRow, ResultRow, StageVersion, Submission, User, WorkerRow, now
from kernelgate.protocol import (
    CaseReport,
    ErrorMap,
    KernelResources,
    NamedMistake,
    Result,
    Table,
    TensorReport,
    Timing,
    WrongTensor,
)
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Phase, State, Verdict

VALUES_TOML = '''
title = "Online softmax"
summary = "Merge score tiles into a softmax that never sees the whole row."
path = "Attention"
order = 1
language = "pytorch"
file = "online_softmax.py"
backends = ["torch"]

[seam]
name = "online_softmax_update"
signature = """
def online_softmax_update(
    row_max: Tensor, normalizer: Tensor, numerator: Tensor, scores: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]"""

[seam.contract]
"scores [Q, K]" = "finite, K is at least 1"
"row_max [Q]" = "the running maximum; -inf before the first tile"

[tolerance.float32]
absolute = 1e-5
relative = 1e-5
why = "Ten times the worst error of three honest variants."

[tensors.output]
axes = ["row", "dim"]
title = "normalised output"

[tensors.logsumexp]
axes = ["row"]

[[cases]]
name = "rectangular"
title = "5 queries, 7 keys, tiles of 3"
group = "T0 shapes"

[[cases]]
name = "partial_tile"
title = "37 keys, tiles of 8"
group = "T0 shapes"

[[cases]]
name = "analytic"
title = "scores 0 and log 3"
group = "T1 by hand"

[[mistakes]]
name = "normalizer_not_rescaled"
title = "The old normalizer is not rescaled"
hint = "When the running maximum moves, the mass gathered so far was measured against the old one."

[[mistakes]]
name = "latest_maximum"
title = "The latest tile's maximum replaces the running one"
hint = "Compare the new tile's maximum with the one carried along."

[[done_when]]
text = "The two-tile trace with scores 0 and log 3 ends in this output:"
answer = "5"

[[done_when]]
text = "You can say why both carried sums are rescaled."
'''

VALUES_LESSON = r"""
## One row at a time

A tile of scores arrives; the row keeps $m$, $l$ and $u$. With $\alpha = e^{m-m'}$:

$$
\begin{aligned}
m' &= \max\left(m, \max_j S_j\right) \\
l' &= \alpha l + \sum_j e^{S_j - m'} \\
u' &= \alpha u + \sum_j e^{S_j - m'} V_j
\end{aligned}
$$

After the last tile the output is $u/l$ and the log-sum-exp is $m + \log l$.

```figure online_softmax
{"presets": [
  {"title": "output 5, log 4", "scores": [0, 1.0986122886681098], "values": [2, 6], "tile": 1},
  {"title": "eight keys, tiles of 3", "scores": [0.5, -1, 2, 0, 3, 1, -2, 4], "values": [1, 2, 3, 4, 5, 6, 7, 8], "tile": 3}
]}
```

## What must survive

```python
def rescale(numerator: Tensor, alpha: Tensor) -> Tensor:
    return numerator * alpha[:, None]  # every row has its own factor
```

| carried | holds |
|---|---|
| `row_max` | the largest score so far |
| `normalizer` | the mass $\sum_j e^{S_j - m}$ |

| tile | $m'$ | sum $\ell$ |
|---|---|---|
| 1 | 0 | 1 |
"""

GATED_TOML = """
title = "Online attention"
summary = "A causal attention kernel that keeps a tile of queries resident."
path = "Attention"
order = 2
language = "cuda"
file = "attention.cu"
backends = ["gpu", "emulator"]
ranking = "speedup"

[gate]
speedup = 1.8

[seam]
name = "runCausalAttention"
signature = "void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream)"

[tolerance.float32]
absolute = 1e-4
relative = 1e-4

[tensors.out]
axes = ["row", "head", "dim"]

[[cases]]
name = "rows_64"
title = "64 rows"
group = "values"
"""

STARTER = '''import torch
from torch import Tensor


def online_softmax_update(
    row_max: Tensor, normalizer: Tensor, numerator: Tensor, scores: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the state after one more tile, without touching the old one."""
    raise NotImplementedError("merge the tile into the running state")
'''


def write_stage(graders: Path, name: str, toml: str, file: str, lesson: str, starter: str) -> Stage:
    """A stage folder that parses; its grader is never run here."""
    folder = graders / name
    for path, body in {
        "stage.toml": toml,
        "lesson.md": lesson,
        "grader.py": "",
        f"starter/{file}": starter,
        f"solution/{file}": "SECRET_SOLUTION = 1\n",
        "provided/block_attention.py": "def block_attention(): ...\n",
        **({"baseline.cu": starter} if file.endswith(".cu") else {}),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(body)
    return load_stage(folder)


def write_stages(graders: Path) -> dict[str, Stage]:
    values = write_stage(graders, "online_softmax", VALUES_TOML, "online_softmax.py", VALUES_LESSON, STARTER)
    cuda = "// attention.cu\n__global__ void attend(const float* q) {}\n"
    gated = write_stage(graders, "online_attention", GATED_TOML, "attention.cu", "A lesson in $x^2$.\n", cuda)
    shipped = Path("tests/pages/nvidia_h200.json")
    (gated.folder / "calibration").mkdir()
    (gated.folder / "calibration" / shipped.name).write_bytes((ROOT / shipped).read_bytes())
    return {stage.name: stage for stage in (values, load_stage(gated.folder))}


def verify(database: Session, stages: dict[str, Stage]) -> None:
    for stage in stages.values():
        database.add(StageVersion(stage=stage.name, hash=stage.hash, verified=True, report={"passed": True}))


def worker(database: Session, name: str = "cpu-1") -> None:
    database.add(
        WorkerRow(
            name=name, queues=["cpu"], backends=["torch"], healthy=True, started_at=now(), heartbeat_at=now(),
            health={"sandbox": {"namespaces": True, "cgroup": "not writable here"}},
        )
    )  # fmt: skip


def submission(
    database: Session, user: User, stage: Stage, result: Result | None = None, *, state: State = State.DONE,
    source: bytes = b"import torch\n", filename: str | None = None, minutes_ago: float = 0.0,
) -> Submission:  # fmt: skip
    """A submission as it is stored: with a result it is done."""
    at = now() - timedelta(minutes=minutes_ago)
    row = Submission(
        user_id=user.id, stage=stage.name, stage_hash=stage.hash, filename=filename or stage.spec.file, source=source,
        source_hash=hashlib.sha256(source).hexdigest(), via="web", created_at=at, state=state,
    )  # fmt: skip
    database.add(row)
    database.flush()
    if result is not None:
        _judged(database, row, result)
    database.flush()
    return row


def _judged(database: Session, row: Submission, result: Result) -> None:
    timing = result.timing
    row.claimed_at, row.finished_at = row.created_at, row.created_at + timedelta(seconds=2)
    row.attempt = 1
    for name, value in {**columns_of(result), "gpu_model": "NVIDIA H200" if timing else None}.items():
        setattr(row, name, value)
    database.add(
        ResultRow(
            submission_id=row.id, round=row.round, attempt=1, worker="cpu-1", verdict=str(result.verdict),
            reason=result.reason, stage_hash=result.stage_hash, speedup=timing.speedup if timing else None,
            speedup_low=timing.speedup_low if timing else None, speedup_high=timing.speedup_high if timing else None,
            body=result.model_dump(mode="json"),
        )
    )  # fmt: skip


def event(database: Session, row: Submission, kind: str, **data: Any) -> None:
    database.add(EventRow(submission_id=row.id, round=row.round, attempt=row.attempt, kind=kind, data=data))


def result(stage: Stage, verdict: Verdict, reason: str = "passed", message: str = "", **parts: Any) -> Result:
    """A grading of `stage` with every case right unless `parts` says otherwise."""
    shape, axes = (37, 8), "output"
    cases = tuple(
        CaseReport(
            name=case.name, title=case.title, group=case.group, state="right", ms=3.2,
            tensors=(
                TensorReport(
                    name=axes, shape=shape, dtype="float32", max_abs_error=1.2e-7, max_rel_error=3e-7, wrong=0, total=296
                ),
            ),
        )
        for case in stage.spec.cases
    )  # fmt: skip
    fields: dict[str, Any] = {
        "verdict": verdict, "reason": reason, "message": message or verdict.about.meaning, "stage": stage.name,
        "stage_hash": stage.hash, "backend": Backend.TORCH, "seed": "00c0ffee", "cases": cases,
        "phases": {Phase.LOAD: 41.0, Phase.CASES: 210.0, Phase.JUDGE: 12.5},
        "machine": {"CPU": "x86-64", "torch": "2.13.0"},
    }  # fmt: skip
    return Result.model_validate({**fields, **parts})


def accepted(stage: Stage) -> Result:
    table = Table(
        title="Error by block size", columns=("block size", "max output error", "max LSE error", "largest score tile"),
        rows=tuple((size, 2.4e-7 * size, 1.1e-7, size * size) for size in (1, 3, 8, 16, 37, 64)),
    )  # fmt: skip
    return result(stage, Verdict.ACCEPTED, tables=(table,))


def wrong_from_row(stage: Stage, first: int = 16) -> Result:
    """Everything from row `first` on is wrong, one row of it NaN, as a known mistake would make it."""
    rows, columns = 37, 8
    levels = bytes(
        0 if row < first else 255 if row == 30 else 40 + 6 * (row - first) + column
        for row in range(rows)
        for column in range(columns)
    )
    picture = ErrorMap(
        rows=rows, columns=columns, row_axis="row", column_axis="dim", row_step=1, column_step=1,
        cells=base64.b64encode(levels).decode(),
    )  # fmt: skip
    wrong = WrongTensor(
        case=stage.spec.cases[1].name, tensor="output", index=(first, 0), axes=("row", "dim"), got=1.5712890625,
        want=0.78562915, error=0.78565991, tolerance=1.8e-5, wrong=168, total=296, pattern=f"every row from {first} on",
        map=picture,
    )  # fmt: skip
    mistake = stage.spec.mistakes[0]
    honest = result(stage, Verdict.WRONG_ANSWER).cases
    cases = (
        honest[0],
        honest[1].model_copy(update={"state": "wrong"}),
        honest[2].model_copy(update={"state": "not_run", "tensors": (), "ms": None}),
    )
    return result(
        stage, Verdict.WRONG_ANSWER, "wrong_value", "Case partial_tile: output is wrong from row 16 on.", cases=cases,
        wrong=wrong, mistake=NamedMistake(name=mistake.name, title=mistake.title, hint=mistake.hint),
    )  # fmt: skip


def failed_at_line(stage: Stage, line: int = 3) -> Result:
    log = (
        f'Traceback (most recent call last):\n  File "{stage.spec.file}", line {line}, in <module>\n'
        "    return numerator * alpha\nNameError: name 'alpha' is not defined\n"
    )
    return result(
        stage,
        Verdict.RUNTIME_ERROR,
        "exception",
        "NameError: name 'alpha' is not defined.",
        log=log,
        output="step 1\n",
        cases=(),
    )


def timed(stage: Stage, speedup: float, verdict: Verdict = Verdict.ACCEPTED) -> Result:
    timing = Timing(
        baseline_ms=0.7731, user_ms=0.7731 / speedup, speedup=speedup, speedup_low=speedup * 0.995,
        speedup_high=speedup * 1.006, gate=1.8, baseline_samples_ms=tuple(0.77 + 0.0011 * (i % 7) for i in range(60)),
        user_samples_ms=tuple(0.77 / speedup + 0.0009 * (i % 5) for i in range(60)),
        facts={"SM clock MHz": 1980.0, "GFLOP/s": 13_400.0, "driver": "580.65"},
    )  # fmt: skip
    resources = (KernelResources(kernel="attend", registers=96, spill_bytes=0, shared_bytes=33_792, occupancy=0.42),)
    return result(stage, verdict, "passed", backend=Backend.GPU, timing=timing, resources=resources)


def user(database: Session, handle: str) -> User:
    return create_user(database, handle)
