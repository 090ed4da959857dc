"""The sum of N values between 0 and 1."""

import numpy as np


def inputs(case, rng):
    return {"input": rng.random(case.params["N"]).astype(np.float32)}


def outputs(case):
    return {"output": (1,)}


def finish(case, inputs, written):
    return written


def reference(case, inputs, mistake=None):
    return {"output": inputs["input"].astype(np.float64).sum().reshape(1)}
