"""Inputs and outputs of the kernels in the folder `public`, as tests/worker/emulator/ptx/public_kernels.py has them."""

from tests.worker.emulator.ptx.public_kernels import BY_NAME


def inputs(case, rng):
    return {"x": BY_NAME[case.name].inputs(rng)}


def outputs(case):
    return {"y": (BY_NAME[case.name].count,)}


def reference(case, inputs, mistake=None):
    return {} if mistake else {"y": BY_NAME[case.name].expected(inputs["x"])}


def finish(case, inputs, written):
    return {name: written[name] for name in outputs(case) if name not in inputs}
