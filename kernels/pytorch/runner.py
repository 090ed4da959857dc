"""Runs a PyTorch submission beside a stage's driver, inside the sandbox.

Theory of operation. A warm interpreter that has imported torch is forked and jailed; this text is then executed in it with
`channel`, a connected stream socket to the trusted side, and `fds`, whose first entry is a memory file that both sides map.
The trusted side sends one `load` frame and then one `case` frame at a time; the inputs of a case lie in the memory file and
come to exist only when its turn has come. Answers are frames too: `loaded`, `result`, `violation` or `failed`.

Nothing that runs here is trusted. Submitted code lives in this very process and can rewrite all of it, this file included;
what it can forge is what it could as well have computed: the bytes of a tensor, which the trusted side compares with a
reference that never was in here. So this file is kept simple, not clever.
"""

import importlib.abc
import importlib.util
import json
import linecache
import mmap
import struct
import sys
import traceback
import types

import torch

PREFIX = struct.Struct("<4sI")
TEXT_LIMIT = 6000
MAX_PAYLOAD = 64 << 20  # what the trusted side reads of one case


class Violation(Exception):  # noqa: N818 - drivers raise it as a statement about the submission
    """A driver's word that the contract is broken: a reason for machines and a sentence for people."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason
        self.message = message


class Sources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the stage's and the submitter's modules from texts, so that nothing beside them can stand in for them."""

    def __init__(self, texts):
        self.texts = texts

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002 - the protocol of importers
        return importlib.util.spec_from_loader(name, self) if name in self.texts else None

    def exec_module(self, module):
        text = self.texts[module.__name__]
        filename = f"{module.__name__}.py"
        module.__file__ = filename
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - this is what the jail is for


def receive(channel):
    _magic, length = PREFIX.unpack(_read(channel, PREFIX.size))
    header = json.loads(_read(channel, length))
    return header, _read(channel, header["bytes"])


def _read(channel, count):
    parts = []
    while count:
        part = channel.recv(min(count, 1 << 20))
        if not part:
            raise SystemExit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def send(channel, header, payload=b""):
    body = json.dumps({**header, "bytes": len(payload)}).encode()
    channel.sendall(PREFIX.pack(b"KGF1", len(body)) + body + payload)


def explain(error, modules):
    """A traceback without our own frames: the submitter's lines only."""
    if isinstance(error, SyntaxError):
        frames = []
    else:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename.removesuffix(".py") in modules or "site-packages" in frame.filename
        ]
    lines = traceback.format_list(frames) + traceback.format_exception_only(error)
    return "".join(lines)[-TEXT_LIMIT:]


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


def load(channel, order):
    """Imports the submission, then the driver: in the other order the submission's error would hide behind the driver's."""
    texts = {**order["provided"], order["module"]: order["source"], "driver": order["driver"]}
    contract = types.ModuleType("contract")
    contract.Violation = Violation
    sys.modules["contract"] = contract
    sys.meta_path.insert(0, Sources(texts))
    sys.dont_write_bytecode = True
    try:
        submission = importlib.import_module(order["module"])
        driver = importlib.import_module("driver")
    except BaseException as error:  # whatever it raises, SystemExit and KeyboardInterrupt too, is the submission's
        send(channel, failure("load", error, texts))
        return None
    send(channel, {"kind": "loaded"})
    return submission, driver, texts


def failure(phase, error, texts):
    line = error.lineno if isinstance(error, SyntaxError) else None
    return {
        "kind": "failed",
        "phase": phase,
        "type": type(error).__name__,
        "syntax": isinstance(error, SyntaxError),
        "import": isinstance(error, ImportError),
        "memory": isinstance(error, MemoryError),
        "line": line,
        "message": str(error)[:2000],
        "text": explain(error, texts),
    }


def run_case(channel, memory, order, submission, driver, texts):
    case = types.SimpleNamespace(
        name=order["name"], dtype=order["dtype"], params=types.SimpleNamespace(**order["params"])
    )
    try:
        outputs = driver.run(submission, case, tensors_from(memory, order["inputs"]))
        listed, payload = raw(outputs)
    except Violation as violation:
        send(channel, {"kind": "violation", "reason": violation.reason, "message": violation.message})
    except BaseException as error:  # see load
        send(channel, failure("case", error, texts))
    else:
        send(channel, {"kind": "result", "tensors": listed}, payload)


def main(channel, memory_fd):
    order, _ = receive(channel)
    memory = mmap.mmap(memory_fd, 0)
    loaded = load(channel, order)
    while loaded:
        order, _ = receive(channel)
        run_case(channel, memory, order, *loaded)


main(channel, fds[0])  # noqa: F821 - both are given by the sandbox
