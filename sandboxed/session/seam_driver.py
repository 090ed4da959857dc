"""Calls a submission as its stage's seam says, and says in words what is wrong with what comes back. Runs in the sandbox.

`SEAMS`, put before this text, has each seam by its name: the function, its arguments, and its results with their sizes. What
is checked here is checked for its message: nothing here is trusted, and values are judged elsewhere.
"""

import inspect

import contract
import torch
from contract import Violation

PLAIN = getattr(contract, "DeviceTensor", torch.Tensor)


def run(submission, case, inputs):
    """One case. Returns the judged tensors by name: results, then copies of what is changed in place."""
    seam = SEAMS[getattr(case.params, "seam", "")]  # noqa: F821 - stands before this text
    function = function_of(submission, seam)
    changed = {each["name"]: inputs[each["name"]].clone() for each in seam["arguments"] if each["role"] == "inout"}
    given = {**vars(case.params), **inputs, **changed}
    returned = function(*(given[each["name"]] for each in seam["arguments"]))
    results = dict(zip([each["name"] for each in seam["results"]], parts_of(returned, seam), strict=True))
    for each in seam["results"]:
        check(seam, each, results[each["name"]], case)
    return {**results, **{f"{name}_after": tensor for name, tensor in changed.items()}}


def function_of(submission, seam):
    function = getattr(submission, seam["name"], None)
    if not callable(function):
        raise Violation(
            "missing_function", f"the file defines no function {seam['name']!r}; accepted is {seam['signature']}"
        )
    try:
        inspect.signature(function).bind(*seam["arguments"])
    except TypeError as error:
        what = f"{seam['name']} cannot be called as {seam['signature']} ({str(error)[:200]})"
        raise Violation("wrong_signature", what) from None
    except ValueError:
        pass  # no signature to read; the call will tell
    return function


def parts_of(returned, seam):
    """What was returned, as a list as long as the results."""
    names = [each["name"] for each in seam["results"]]
    if not names:
        if returned is not None:
            what = (
                f"{seam['name']} returned {described(returned)}; accepted is None, with the argument changed in place"
            )
            raise Violation("wrong_return_type", what)
        return []
    if len(names) == 1:
        return [returned]
    if type(returned) is not tuple or len(returned) != len(names):
        count = f" of {len(returned)}" if type(returned) in (tuple, list) else ""
        what = f"{seam['name']} returned {described(returned)}{count}; accepted is a tuple of {len(names)}: {', '.join(names)}"
        raise Violation("wrong_return_type", what)
    return list(returned)


def check(seam, result, tensor, case):
    name, sizes = result["name"], vars(case.params)
    wanted = [eval(dim, {}, dict(sizes)) for dim in result["dims"]]  # noqa: S307 - the stage's own formula
    dtype = case.dtype if result["dtype"] == "T" else result["dtype"]
    if type(tensor) is not PLAIN:
        what = f"{seam['name']} returned {described(tensor)} for {name}; accepted is a plain tensor"
        raise Violation("wrong_return_type", what)
    if list(tensor.shape) != wanted:
        shape = f"{list(tensor.shape)}; accepted is [{', '.join(result['dims'])}], here {wanted}"
        raise Violation("wrong_shape", f"{name} has shape {shape}")
    if str(tensor.dtype) != f"torch.{dtype}":
        raise Violation("wrong_dtype", f"{name} is {str(tensor.dtype)[6:]}; accepted is {dtype}")
    if not tensor.is_contiguous():
        raise Violation("wrong_layout", f"{name} has strides {list(tensor.stride())}; accepted is a contiguous tensor")


def described(thing):
    """What `thing` is, from its type alone: its own repr may be long, or may be a trap."""
    if thing is None:
        return "None"
    kind = type(thing).__name__[:40]
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
