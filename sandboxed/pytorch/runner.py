"""Runs a PyTorch submission beside a stage's driver, inside the sandbox.

Theory of operation. A warm interpreter that has imported torch is forked and jailed; this text is then executed in it with
`channel`, a connected stream socket to the trusted side, and `fds`, whose first entry is a memory file with the inputs.
The trusted side sends one `load` frame and then one `case` frame at a time; the inputs of a case lie in the memory file and
come to exist only when its turn has come. Answers are frames too: `loaded`, `result`, `violation` or `failed`. Before a driver
calls the submission it may put the arguments into the memory file as well (`contract.placed`): a `call` frame, sent before the
call, says where they lie and what they hold, and the trusted side compares when the case is over.

Nothing that runs here is trusted. Submitted code lives in this very process and can rewrite all of it, this file included;
what it can forge is what it could as well have computed: the bytes of a tensor, which the trusted side compares with a
reference that never was in here. So this file is kept simple, not clever.
"""

import importlib
import math
import mmap
import sys
import types

import sandboxed_devices
import torch
from sandboxed_errors import Violation, failure, saying_where, violation
from sandboxed_frames import receive, send
from sandboxed_imports import install

ALIGNMENT = 64
MAX_PAYLOAD = 64 << 20  # what the trusted side reads of one case


def tensors_from(memory, listed):
    """Tensors over the memory file: what is written to them is seen by the trusted side."""
    made = {}
    for item in listed:
        dtype = getattr(torch, item["dtype"])
        count = 1
        for size in item["shape"]:
            count *= size
        if count:
            flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=item["offset"])
        else:
            flat = torch.empty(0, dtype=dtype)
        made[item["name"]] = flat.reshape(item["shape"])
    return made


class Placed(torch.autograd.Function):
    """The same values in the memory file; gradients go through."""

    @staticmethod
    def forward(ctx, tensor, memory, at):  # noqa: ARG004 - the form that autograd asks for
        return copied(tensor, memory, at)

    @staticmethod
    def backward(ctx, gradient):  # noqa: ARG004
        return gradient, None, None


def copied(tensor, memory, at):
    """A tensor of its own, no view, over the memory file from `at` on, with the values of `tensor`."""
    flat = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=at)
    made = torch.empty(0, dtype=tensor.dtype).set_(
        flat.untyped_storage(), flat.storage_offset(), tensor.shape, torch.empty(tensor.shape, device="meta").stride()
    )
    made.copy_(tensor.detach())
    return made


class Calls:
    """Where the arguments of a case's calls lie: each in a place of its own, for autograd may need them later."""

    def __init__(self, channel, memory):
        self.channel, self.memory, self.at = channel, memory, 0

    def begin(self, listed):
        """A new case, whose inputs are `listed`."""
        sizes = [item["offset"] + math.prod(item["shape"]) * 8 for item in listed]
        self.at = -(-max(sizes, default=0) // ALIGNMENT) * ALIGNMENT

    def placed(self, names, tensors):
        """The tensors, copied to the memory file; what they hold has been sent before they are given."""
        found, listed, held = [], [], []
        for name, tensor in zip(names, tensors, strict=True):
            size = tensor.numel() * tensor.element_size()
            if self.at + size > len(self.memory):
                raise RuntimeError(f"the arguments of a case's calls take more than {len(self.memory)} bytes")
            if not size:
                found.append(tensor)
            elif tensor.requires_grad and torch.is_grad_enabled():
                found.append(Placed.apply(tensor, self.memory, self.at))
            else:
                flat = torch.frombuffer(self.memory, dtype=tensor.dtype, count=tensor.numel(), offset=self.at)
                found.append(flat.view(tensor.shape).copy_(tensor.detach()))
            listed.append([name, self.at, size])
            held.append(self.memory[self.at : self.at + size])
            self.at += -(-size // ALIGNMENT) * ALIGNMENT
        send(self.channel, {"kind": "call", "arguments": listed}, b"".join(held))
        return found


def raw(outputs):
    """Names, dtypes, shapes and bytes of what a driver returned."""
    if not isinstance(outputs, dict):
        raise Violation("wrong_return_type", f"the driver returned {type(outputs).__name__}")
    listed, parts, total = [], [], 0
    for name, tensor in outputs.items():
        if type(tensor) is not torch.Tensor:
            raise Violation(
                "wrong_return_type", f"{name} is a {type(tensor).__name__}; a plain torch.Tensor is accepted"
            )
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise Violation(
                "wrong_device", f"{name} is on {tensor.device}, {tensor.layout}; a dense CPU tensor is accepted"
            )
        total += tensor.numel() * tensor.element_size()
        if total > MAX_PAYLOAD:
            raise Violation(
                "too_large", f"{name} {list(tensor.shape)} brings the results to {total} bytes; {MAX_PAYLOAD} fit"
            )
        # A copy, for a tensor of one element is contiguous whatever its stride, and has no view as bytes then.
        plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        listed.append({"name": name, "dtype": str(plain.dtype).removeprefix("torch."), "shape": list(plain.shape)})
        parts.append(bytes(plain.reshape(-1).view(torch.uint8).numpy()) if plain.numel() else b"")
    return listed, b"".join(parts)


def load(channel, order, calls):
    """Imports the submission, then the driver: in the other order the submission's error would hide behind the driver's."""
    texts = {**order["provided"], order["module"]: order["source"], "driver": order["driver"]}
    contract = types.ModuleType("contract")
    contract.Violation, contract.placed = Violation, calls.placed
    sys.modules["contract"] = contract
    install(texts)
    try:
        with saying_where(order["seconds"]):
            submission = importlib.import_module(order["module"])
        driver = importlib.import_module("driver")
    except BaseException as error:  # whatever it raises, SystemExit and KeyboardInterrupt too, is the submission's
        send(channel, failed("load", error, texts))
        return None
    send(channel, {"kind": "loaded"})
    return submission, driver, texts


def failed(phase, error, texts):
    """A failure with the submitter's lines only, and those of the libraries that it called."""

    def shown(frame):
        return frame.filename.removesuffix(".py") in texts or "site-packages" in frame.filename

    line = error.lineno if isinstance(error, SyntaxError) else None
    return {**failure(error, shown), "phase": phase, "line": line}


def run_case(channel, memory, order, calls, submission, driver, texts):
    case = types.SimpleNamespace(dtype=order["dtype"], params=types.SimpleNamespace(**order["params"]))
    calls.begin(order["inputs"])
    try:
        with saying_where(order["seconds"]):
            outputs = driver.run(submission, case, tensors_from(memory, order["inputs"]))
        listed, payload = raw(outputs)
    except Violation as error:
        send(channel, violation(error))
    except BaseException as error:  # see load
        send(channel, failed("case", error, texts))
    else:
        send(channel, {"kind": "result", "tensors": listed}, payload)


def main(channel, memory_fd):
    order, _ = receive(channel)
    memory = mmap.mmap(memory_fd, 0)
    sandboxed_devices.count()
    calls = Calls(channel, memory)
    loaded = load(channel, order, calls)
    while loaded:
        order, _ = receive(channel)
        run_case(channel, memory, order, calls, *loaded)


main(channel, fds[0])  # noqa: F821 - both are given by the sandbox
