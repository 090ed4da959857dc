"""Runs the cases of online_softmax beside the submission: calls it as a user would and collects the tensors.

Nothing here is secret and nothing here decides: values are compared elsewhere, from their bytes. The checks below exist for
their messages, because a sentence about a list or a missing function teaches more than the error it would cause later.
"""

import inspect

import block_attention
import torch
from contract import Violation, placed

NAME = "online_softmax_update"
SIGNATURE = f"{NAME}(row_max, normalizer, numerator, scores, values) -> (new_max, new_normalizer, new_numerator)"
STATE = ("row_max", "normalizer", "numerator")
ARGUMENTS = (*STATE, "scores", "values")
RESULT = ("new_max", "new_normalizer", "new_numerator")


def run(submission, case, inputs):
    """One case: `case.params.kind` names a function below, `inputs` are its tensors. Returns tensors by name."""
    arguments = Arguments()
    block_attention.passed_on = arguments.passed_on
    with torch.enable_grad():  # whatever the submission left switched off
        collected = KINDS[case.params.kind](checked_update(submission, arguments), case.params, inputs)
    arguments.check()
    return collected


class Arguments:
    """What every call gets, here or in block_attention: copies that the grader compares when the case is over.

    A state that was returned earlier is an argument now, and who returned it may have kept it and write to it, where no copy
    shows; so each is compared with its copy once the call is over.
    """

    def __init__(self):
        self.latest = []

    def passed_on(self, *arguments):
        self.check()
        copies = placed(ARGUMENTS, arguments)
        self.latest = [*zip(STATE, arguments, copies, strict=False)]
        return copies

    def check(self):
        for name, argument, copy in self.latest:
            if not torch.equal(bits(argument), bits(copy)):
                raise Violation("inputs_changed", f"the input {name!r} was changed in place; return new tensors")
        self.latest = []


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def checked_update(submission, arguments):
    """The submission's function behind checks of its signature and of what each call returns."""
    function = getattr(submission, NAME, None)
    if function is None:
        raise Violation("missing_function", f"the file defines no {NAME!r}; accepted is {SIGNATURE}")
    if not callable(function):
        raise Violation("missing_function", f"{NAME} is {described(function)}; accepted is a function {SIGNATURE}")
    check_signature(function)

    def update(*given):
        copies = arguments.passed_on(*given)
        return checked_result(function(*copies), *copies)

    return update


def check_signature(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # no signature to read; the call will tell
    try:
        signature.bind(*[None] * 5)
    except TypeError as error:
        raise Violation(
            "wrong_signature", f"{NAME}{signature} cannot take five arguments ({error}); accepted is {SIGNATURE}"
        ) from None


def checked_result(result, row_max, normalizer, numerator, *_block):
    if not isinstance(result, tuple) or len(result) != 3:
        raise Violation(
            "wrong_return_type", f"{NAME} returned {described(result)}; accepted is a tuple ({', '.join(RESULT)})"
        )
    for name, got, like in zip(RESULT, result, (row_max, normalizer, numerator), strict=True):
        check_tensor(name, got, like)
    return tuple(result)


def described(thing):
    """What `thing` is, in words, from its type alone: its own repr may be long, or may be a trap."""
    if thing is None:
        return "None"
    kind = type(thing).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind} of {len(thing)}" if type(thing) in (tuple, list) else f"{article} {kind}"


def check_tensor(name, got, like):
    """`got` must be a plain tensor of the device, shape and dtype of `like`, the same part of the old state."""
    if type(got) is not torch.Tensor:
        raise Violation(
            "wrong_return_type", f"{name} is of type {type(got).__name__}; accepted is a plain torch.Tensor"
        )
    if got.device != like.device:
        raise Violation("wrong_device", f"{name} is on {got.device}; accepted is {like.device}, as the inputs are")
    if got.shape != like.shape:
        raise Violation(
            "wrong_shape",
            f"{name} has shape {list(got.shape)}; accepted is {list(like.shape)}. The order is {', '.join(RESULT)}",
        )
    if got.dtype != like.dtype:
        raise Violation("wrong_dtype", f"{name} is {got.dtype}; accepted is {like.dtype}, as the inputs are")


def run_update(update, _params, inputs):
    """One direct call."""
    return dict(zip(RESULT, update(*inputs.values()), strict=True))


def run_reuse(update, _params, inputs):
    """One state, three calls: a block, another block, and the first block again."""
    state = [inputs[name] for name in STATE]
    first, second = (inputs["scores"], inputs["values"]), (inputs["other_scores"], inputs["other_values"])
    collected = {}
    for prefix, block in (("new", first), ("second", second), ("again", first)):
        parts = [part.clone() for part in update(*state, *block)]
        collected |= dict(zip((f"{prefix}_max", f"{prefix}_normalizer", f"{prefix}_numerator"), parts, strict=True))
    return collected


def run_trace(update, params, inputs):
    """From the empty state through blocks of the given widths; the state after every block, then the result."""
    scores, values = inputs["scores"], inputs["values"]
    state = (
        scores.new_full((len(scores),), float("-inf")),
        scores.new_zeros(len(scores)),
        scores.new_zeros(len(scores), values.shape[1]),
    )
    states = []
    for block_scores, block_values in zip(scores.split(params.blocks, 1), values.split(params.blocks), strict=True):
        state = update(*state, block_scores, block_values)
        states.append(state)
    maxima, normalizers, numerators = (torch.stack(parts) for parts in zip(*states, strict=True))
    output, logsumexp = finished(state)
    return {
        "trace_max": maxima,
        "trace_normalizer": normalizers,
        "trace_numerator": numerators,
        "output": output,
        "logsumexp": logsumexp,
    }


def run_attention(_update, params, inputs):
    """block_attention, once."""
    output, logsumexp = block_attention.block_attention(**inputs, block_size=params.block_size)
    return {"output": output, "logsumexp": logsumexp}


def run_sizes(_update, params, inputs):
    """block_attention over the same tokens with several block sizes."""
    runs = [block_attention.block_attention(**inputs, block_size=size) for size in params.block_sizes]
    return {
        "output_by_size": torch.stack([output for output, _ in runs]),
        "logsumexp_by_size": torch.stack([logsumexp for _, logsumexp in runs]),
    }


def run_update_gradient(update, _params, inputs):
    """Gradients through one direct call. Without row_max: its value is bookkeeping, results do not depend on it."""
    leaves = differentiable(inputs, ("normalizer", "numerator", "scores", "values"))
    output, logsumexp = finished(update(inputs["row_max"], *leaves.values()))
    return gradients(output, logsumexp, leaves, inputs)


def run_attention_gradient(_update, params, inputs):
    """Gradients through all blocks of block_attention."""
    leaves = differentiable(inputs, ("q", "k", "v"))
    output, logsumexp = block_attention.block_attention(**leaves, block_size=params.block_size)
    return gradients(output, logsumexp, leaves, inputs)


def finished(state):
    row_max, normalizer, numerator = state
    return numerator / normalizer[:, None], row_max + torch.log(normalizer)


def differentiable(inputs, names):
    return {name: inputs[name].detach().requires_grad_() for name in names}


def gradients(output, logsumexp, leaves, inputs):
    """Both results, then the gradients of sum(output * output_weight) and of sum(logsumexp * logsumexp_weight)."""
    collected = {"output": output.detach(), "logsumexp": logsumexp.detach()}
    for name, result in (("output", output), ("logsumexp", logsumexp)):
        if not result.requires_grad:
            raise Violation(
                "no_gradient",
                f"{name} has no gradient: autograd saw no path from {', '.join(leaves)} to it. Accepted is a result of "
                "torch operations on the arguments, without detach(), torch.no_grad(), .data, numpy or item()",
            )
        loss = (result * inputs[f"{name}_weight"]).sum()
        # A path that was cut for one input alone counts as a gradient of 0, so that the judge can say which it is.
        found = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True, allow_unused=True)
        for leaf, gradient in zip(leaves, found, strict=True):
            collected[f"{name}_grad_{leaf}"] = torch.zeros_like(leaves[leaf]) if gradient is None else gradient
    return collected


KINDS = {
    "update": run_update,
    "reuse": run_reuse,
    "trace": run_trace,
    "attention": run_attention,
    "sizes": run_sizes,
    "update_gradient": run_update_gradient,
    "attention_gradient": run_attention_gradient,
}
