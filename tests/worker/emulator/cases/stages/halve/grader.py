"""Half of each of n values."""

import numpy as np


def inputs(case, rng):
    return {"inp": rng.standard_normal(case.params["n"]).astype(np.float32)}


def outputs(case):
    return {"out": (case.params["n"],)}


def finish(case, inputs, written):
    return written


def reference(case, inputs, mistake=None):
    return {"out": inputs["inp"].astype(np.float64) * 0.5}
