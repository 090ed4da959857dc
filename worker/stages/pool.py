"""A process pool for gradings; each process has a sandbox of its own, and they share the host's GPU lock.

What they run is a plain function of a stage, a sandbox and one item; results come back in the order of the items.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from worker.backends import open_sandbox
from worker.sandbox import Sandbox
from worker.stages.giving_way import GivingWay

Item = TypeVar("Item")
Found = TypeVar("Found")
Task = Callable[[Stage, Sandbox, Item], Found]


class GradingPool:
    """Up to `jobs` processes; with one job this process does the work in the sandbox it has. A context manager.

    Tasks given to more than one job are functions of a module: they and their items travel by pickle. giving_way: whom a
    single job waits for before each item, and begins the item again for.
    """

    def __init__(self, sandbox: Sandbox, jobs: int = 1, giving_way: GivingWay | None = None) -> None:
        self.sandbox = sandbox
        self.jobs = jobs
        self.giving_way = giving_way
        if jobs > 1:
            # Read when a process loads numpy, so by the pool's alone; worker/__init__.py says why.
            share = max(1, len(os.sched_getaffinity(0)) // jobs)
            os.environ["OPENBLAS_NUM_THREADS"] = str(min(share, int(os.environ["OPENBLAS_NUM_THREADS"])))
        self._pool = (
            ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare)
            if jobs > 1
            else None
        )

    def __enter__(self) -> GradingPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, stage: Stage, task: Task[Item, Found], items: Iterable[Item]) -> Iterator[Found]:
        """`task` of every item, in order. Raises what a task raises, at its place."""
        if self._pool is None:
            for item in items:
                work = partial(task, stage, self.sandbox, item)
                yield self.giving_way.patiently(work) if self.giving_way else work()
        else:
            yield from self._pool.map(_run, ((stage.folder, task, item) for item in items))


_own: list[Sandbox] = []


def _prepare() -> None:
    """In a pool's process, before its first task. The sandbox ends with the process."""
    _own.append(open_sandbox())


@cache
def _stage(folder: Path) -> Stage:
    return load_stage(folder)


def _run(order: tuple[Path, Task[Item, Found], Item]) -> Found:
    folder, task, item = order
    return task(_stage(folder), _own[0], item)
