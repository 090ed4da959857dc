"""Calls the submission as a user would, on tensors of a GPU that is not there. Runs in the sandbox, holds no secret.

Two kinds of case: a call whose result comes back, and calls that the function has to refuse. What is checked here is checked
for its message: values are judged elsewhere, from bytes that only kernels can have written.
"""

import inspect

import contract
import torch
from contract import DeviceTensor, Violation, launches

NAME = "streaming_attention"
SIGNATURE = f"{NAME}(q, k, v, *, causal=False, block_n=32) -> out"
DTYPES = (torch.float16, torch.bfloat16)


def run(submission, case, inputs):
    """One case. Returns the output by name; nothing for a case about refusals."""
    function = seam(submission)
    if case.params.kind == "refusals":
        refuse(function)
        return {}
    out = function(inputs["q"], inputs["k"], inputs["v"], causal=case.params.causal, block_n=case.params.block_n)
    check_output(out, inputs["q"])
    return {"out": out}


def seam(submission):
    function = getattr(submission, NAME, None)
    if not callable(function):
        raise Violation("missing_function", f"the file defines no function {NAME!r}; accepted is {SIGNATURE}")
    try:
        inspect.signature(function).bind(None, None, None, causal=True, block_n=64)
    except TypeError as error:
        raise Violation("wrong_signature", f"{NAME} cannot be called as {SIGNATURE} ({str(error)[:200]})") from None
    except ValueError:
        pass  # no signature to read; the call will tell
    return function


def check_output(out, q):
    if type(out) is not DeviceTensor:
        raise Violation(
            "wrong_return_type",
            f"{NAME} returned {described(out)}; accepted is the output as one plain tensor on the device of q",
        )
    if list(out.shape) != list(q.shape):
        raise Violation("wrong_shape", f"out has shape {list(out.shape)}; accepted is {list(q.shape)}, as q has")
    if out.dtype != q.dtype:
        raise Violation("wrong_dtype", f"out is {out.dtype}; accepted is {q.dtype}, as q is")
    if not out.is_contiguous():
        raise Violation("wrong_layout", f"out has strides {list(out.stride())}; accepted is a contiguous tensor")


def described(thing):
    """What `thing` is, from its type alone: its own repr may be long, or may be a trap."""
    if thing is None:
        return "None"
    kind = type(thing).__name__
    where = f" on {thing.device}" if isinstance(thing, torch.Tensor) and type(thing) is torch.Tensor else ""
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}{where}"


def tensor(*shape, dtype=torch.float16):
    return contract.tensor(shape, dtype)


def outside_of_the_contract():
    """(what it is, q, k, v, keyword arguments) of calls that must raise ValueError before anything is launched."""
    ok = tensor(33, 32)
    yield "k and v longer than q (33 rows and 47)", ok, tensor(47, 32), tensor(47, 32), {}
    yield "v longer than k", ok, tensor(33, 32), tensor(34, 32), {}
    yield "k of another head size", ok, tensor(33, 16), tensor(33, 32), {}
    yield "float32", *(tensor(33, 32, dtype=torch.float32) for _ in range(3)), {}
    yield "mixed dtypes (k bfloat16)", ok, tensor(33, 32, dtype=torch.bfloat16), tensor(33, 32), {}
    yield "head size 48", *(tensor(33, 48) for _ in range(3)), {}
    yield "head size 128", *(tensor(33, 128) for _ in range(3)), {}
    yield "no rows", *(tensor(0, 32) for _ in range(3)), {}
    yield "2049 rows", *(tensor(2049, 32) for _ in range(3)), {}
    yield "a batch ([2, 33, 32])", *(tensor(2, 33, 32) for _ in range(3)), {}
    yield "one dimension", *(tensor(32) for _ in range(3)), {}
    yield "q not contiguous (a transpose)", tensor(32, 33).t(), tensor(33, 32), tensor(33, 32), {}
    yield "v not contiguous (every second row)", ok, tensor(33, 32), tensor(66, 32)[::2], {}
    yield "block_n 16", ok, tensor(33, 32), tensor(33, 32), {"block_n": 16}
    yield "block_n 48", ok, tensor(33, 32), tensor(33, 32), {"block_n": 48}
    yield "block_n 128", ok, tensor(33, 32), tensor(33, 32), {"block_n": 128}


def refuse(function):
    """Every call outside of the contract has to raise ValueError, and to launch nothing before."""
    for what, q, k, v, options in outside_of_the_contract():
        before = launches()
        how = None
        try:
            function(q, k, v, **options)
        except ValueError:
            how = "raised ValueError"
        except Violation:
            how = "went on to call torch on them"
        except Exception as error:  # whatever else it raises teaches a caller less
            how = f"raised {type(error).__name__}"
        if launches() > before:
            how = "launched a kernel"
        if how != "raised ValueError":
            raise Violation(
                "not_refused",
                f"{what}: {NAME} {how or 'returned'}; outside of the contract it has to raise ValueError before any launch",
            )
