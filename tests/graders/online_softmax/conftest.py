"""Runs a stage's driver in this process, beside files that ship with the stage and are known to be harmless."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kernelgate.stages import Case, Stage
from worker.judging.driver import driver as driver_text
from worker.judging.grader import Arrays

Float64 = NDArray[np.float64]
Drive = Callable[[Case, Arrays], dict[str, Float64]]


class Violation(Exception):  # noqa: N818 - the name drivers import
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Stage, Path], Drive]:
    """`drive(stage, file)` loads a submission and the stage's driver; what it returns runs a case, results in float64."""

    def load(name: str, path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    def prepare(stage: Stage, path: Path) -> Drive:
        contract = ModuleType("contract")
        contract.__dict__["Violation"] = Violation
        contract.__dict__["placed"] = lambda _names, tensors: [tensor.clone() for tensor in tensors]
        monkeypatch.setitem(sys.modules, "contract", contract)
        name = stage.spec.file.removesuffix(".py")
        monkeypatch.syspath_prepend(str(stage.folder / "provided"))
        for provided in stage.provided:
            monkeypatch.delitem(sys.modules, provided.removesuffix(".py"), raising=False)
        submission = load(name, path)
        for provided in stage.provided:
            load(provided.removesuffix(".py"), stage.folder / "provided" / provided)
        written = tmp_path / "driver.py"
        written.write_text(driver_text(stage))
        driver = load("driver", written)

        def run(case: Case, inputs: Arrays) -> dict[str, Float64]:
            params = SimpleNamespace(dtype=case.dtype, params=SimpleNamespace(**case.given))
            tensors = {key: torch.from_numpy(array.copy()) for key, array in inputs.items()}
            outputs = driver.run(submission, params, tensors)
            return {key: tensor.detach().double().numpy() for key, tensor in outputs.items()}

        return run

    return prepare
