"""The cases that shipped stages draw: at least six that every host runs, of all sizes and distributions, and telling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelgate.drawing import KINDS, sizes
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from worker.judging.grader import Grader
from worker.judging.judge import separations

STAGES = ("online_softmax", "streaming_attention", "online_attention")
SEEDS = [f"{number:032x}" for number in range(6)]


@pytest.fixture(scope="module", params=STAGES)
def grader(request: pytest.FixtureRequest) -> Grader:
    return Grader(load_stage(settings().graders_dir / request.param))


@pytest.mark.parametrize("seed", SEEDS)
def test_at_least_six_run_on_every_host(grader: Grader, seed: str) -> None:
    cases = grader.drawn(seed)
    assert sum(not case.needs_gpu for case in cases) >= 6
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert case.drawn
        assert case.group == "Drawn"
        assert all(each.why for each in grader.tolerances(case).values())
        assert any(letter.isdigit() for letter in case.title), "the title says what was drawn"


def test_other_seeds_draw_other_cases(grader: Grader) -> None:
    titles = [case.title for seed in SEEDS for case in grader.drawn(seed)]
    assert len(set(titles)) > 0.9 * len(titles)


TELLING = {
    "online_softmax": ("maximum_not_subtracted", "alpha_missing", "latest_block_maximum", "old_state_dropped"),
    "streaming_attention": ("no_maximum", "tile_maximum", "nothing_rescaled"),
    "online_attention": ("no_maximum", "alpha_missing_on_l", "wrong_kv_head"),
}


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_kernel_without_the_algorithm_shows_in_what_any_host_draws(grader: Grader, seed: str) -> None:
    cases = [case for case in grader.drawn(seed) if not case.needs_gpu]
    shown = separations(grader, seed, cases, TELLING[grader.stage.name], enough=10.0)
    assert all(tolerances >= 10.0 for _, tolerances in shown.values()), shown


TIMED = {
    "streaming_attention": lambda case: [case.data["plant"]],
    "online_attention": lambda case: case.data["plants"],
}


@pytest.mark.parametrize("name", TIMED)
def test_timed_calls_come_from_the_whole_mixture(name: str) -> None:
    grader, rng = Grader(load_stage(settings().graders_dir / name)), np.random.default_rng(3)
    plants: Callable[[Case], list[str]] = TIMED[name]
    (measured, *_) = (case for case in grader.stage.spec.cases if case.measured)
    timed = [grader.timed(measured, rng) for _ in range(40)]
    assert {plant for case in timed for plant in plants(case)} >= {"plain", "rising", "falling", "large", "needles"}
    assert all(case.params == measured.params for case in timed)
    assert len({grader.tolerances(case)["out"].absolute for case in timed}) > 10
    first, second = (grader.made(case, rng) for case in timed[:2])
    listed = grader.inputs(measured, SEEDS[0])
    assert all(array.shape == listed[part].shape and array.dtype == listed[part].dtype for part, array in first.items())
    assert not any(np.array_equal(array, second[part]) for part, array in first.items())


def test_sizes_are_of_every_kind_within_their_bounds() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        drawn = sizes(rng, len(KINDS), 41, 320, 32)
        assert all(41 <= size <= 320 for size in drawn)
        assert {size % 2 for size in drawn} == {0, 1}
        assert any(size % 32 == 31 for size in drawn) or 320 in drawn
    assert set(sizes(rng, 200, 1, 2)) == {1, 2}
