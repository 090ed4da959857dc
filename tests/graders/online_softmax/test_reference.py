"""The reference of online_softmax, checked against dense attention and against torch's own autograd."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from worker.judging.arrays import RawTensor
from worker.judging.grader import Arrays, CaseOutcome, Grader
from worker.judging.judge import separations

SEED = "5eed"
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(scope="module")
def stage() -> Stage:
    return load_stage(ROOT / "graders" / "online_softmax")


@pytest.fixture(scope="module")
def grader(stage: Stage) -> Grader:
    return Grader(stage)


def test_the_example_by_hand(stage: Stage, grader: Grader) -> None:
    case = next(case for case in stage.spec.cases if case.name == "analytic_attention_f64")
    truth = grader.reference(case, grader.inputs(case, SEED))
    np.testing.assert_allclose(truth["output"], 5.0, **TIGHT)
    np.testing.assert_allclose(truth["logsumexp"], math.log(4.0), **TIGHT)


def test_every_mistake_stands_ten_tolerances_out_of_the_truth_somewhere(stage: Stage, grader: Grader) -> None:
    found = separations(grader, SEED, stage.spec.cases)
    hidden = {name: shown for name, (_, shown) in found.items() if shown < 10 and not stage.mistake(name).violation}
    assert not hidden


def test_inputs_differ_by_seed_and_repeat_with_it(stage: Stage, grader: Grader) -> None:
    case = next(case for case in stage.spec.cases if case.name == "tokens_37")
    first, again, other = (grader.inputs(case, seed)["q"].tobytes() for seed in ("aa", "aa", "bb"))
    assert first == again
    assert first != other


def dense(inputs: Arrays) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Dense float64 attention in torch: its leaves, output [Nq, Dv] and logsumexp [Nq]."""
    leaves = {name: torch.tensor(inputs[name].astype(np.float64), requires_grad=True) for name in ("q", "k", "v")}
    scores = leaves["q"] @ leaves["k"].T / math.sqrt(leaves["q"].shape[1])
    return leaves, torch.softmax(scores, dim=-1) @ leaves["v"], torch.logsumexp(scores, dim=-1)


def cases_of(kind: str) -> list[str]:
    spec = load_stage(ROOT / "graders" / "online_softmax").spec
    return [case.name for case in spec.cases if case.seam == kind]


@pytest.mark.parametrize("name", cases_of("attention"))
def test_attention_equals_dense_attention(stage: Stage, grader: Grader, name: str) -> None:
    case = next(case for case in stage.spec.cases if case.name == name)
    inputs = grader.inputs(case, SEED)
    truth = grader.reference(case, inputs)
    _, output, logsumexp = dense(inputs)
    np.testing.assert_allclose(truth["output"], output.detach().numpy(), **TIGHT)
    np.testing.assert_allclose(truth["logsumexp"], logsumexp.detach().numpy(), **TIGHT)


@pytest.mark.parametrize("name", cases_of("attention_gradient"))
def test_analytic_gradients_equal_autograd(stage: Stage, grader: Grader, name: str) -> None:
    case = next(case for case in stage.spec.cases if case.name == name)
    inputs = grader.inputs(case, SEED)
    truth = grader.reference(case, inputs)
    leaves, output, logsumexp = dense(inputs)
    weights = [torch.tensor(array.astype(np.float64)) for key, array in inputs.items() if key not in leaves]
    assert [weight.shape for weight in weights] == [output.shape, logsumexp.shape]
    for which, result, weight in zip(("output", "logsumexp"), (output, logsumexp), weights, strict=True):
        found = torch.autograd.grad(
            (result * weight).sum(), list(leaves.values()), retain_graph=True, allow_unused=True
        )
        for leaf, gradient in zip(leaves, found, strict=True):
            want = np.zeros(leaves[leaf].shape) if gradient is None else gradient.numpy()
            np.testing.assert_allclose(truth.get(f"{which}_grad_{leaf}", 0.0), want, rtol=1e-8, atol=1e-8)


def test_the_experiment_is_a_table_of_errors_and_tile_sizes(
    stage: Stage, grader: Grader, drive: Callable[..., Any]
) -> None:
    run = drive(stage, stage.folder / "solution" / "online_softmax.py")
    outcomes = []
    for name in ("hand_update", "tokens_37", "tokens_37_f64"):
        case = next(case for case in stage.spec.cases if case.name == name)
        inputs = grader.inputs(case, SEED)
        outputs = {
            key: RawTensor(case.dtype, made.shape, made.astype(case.dtype).tobytes())
            for key, made in run(case, inputs).items()
        }
        outcomes.append(CaseOutcome(case, inputs, outputs, grader.reference(case, inputs)))
    tables = grader.tables(outcomes)
    assert [table.title.split(":")[0] for table in tables] == ["37 tokens, float32", "37 tokens, float64"]
    for table, unit in zip(tables, (2.0**-24, 2.0**-53), strict=True):
        sizes, output_errors, logsumexp_errors, tiles = zip(*table.rows, strict=True)
        assert sizes == (1, 3, 8, 16, 37, 64)
        assert tiles == (1, 9, 64, 256, 1369, 1369)
        assert all(0 < error < 200 * unit for error in (*output_errors, *logsumexp_errors))
    assert grader.tables(outcomes[:1]) == ()
