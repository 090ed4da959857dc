"""Scale and add: how a case calls the submission. Runs in the sandbox."""

import torch
from contract import Violation


def run(submission, case, inputs):
    function = getattr(submission, "scaling", None)
    if not callable(function):
        raise Violation("missing_function", "scaling.py defines no function scaling(x, y, factor)")
    result = function(inputs["x"], inputs["y"], case.params.factor)
    if not isinstance(result, torch.Tensor):
        raise Violation("wrong_return_type", f"scaling returned a {type(result).__name__}; a torch.Tensor is accepted")
    return {"out": result}
