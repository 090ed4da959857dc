"""Runs recorded Triton kernels on the CPU, inside the sandbox: no submitted Python is here, only its kernels' IR.

This text is executed in a fork of a warm interpreter with `channel` to the trusted side; ir.py, writer.py and machine.py come
with it as texts. A `kernels` frame brings every kernel's IR once; a `case` frame a tape, its arguments and the contents
of memory. The answer is what memory holds afterwards, or the fault that a GPU would have met. Outputs start as NaN.
"""

import json
import time

import numpy as np
import sandboxed_ir as ir
import sandboxed_machine as machine
import sandboxed_writer as writer
from sandboxed_errors import saying_where
from sandboxed_frames import receive, send

SIDE_BY_SIDE = 64


class Kernels:
    """Translates each IR once."""

    def __init__(self, file):
        self.file = file
        self.texts = {}
        self.made = {}

    def get(self, key):
        if key not in self.made:
            module, kinds = writer.translate(self.texts[key], self.file)
            space = {"np": np}
            exec(compile(module, self.file, "exec", dont_inherit=True), space)  # noqa: S102 - written by writer.py
            self.made[key] = (space["kernel"], kinds)
        return self.made[key]


def batches(programs, order):
    """Which programs run side by side, batch after batch: as they are numbered, or mixed into `parts` batches by a seed."""
    if order is None:
        return (range(first, min(first + SIDE_BY_SIDE, programs)) for first in range(0, programs, SIDE_BY_SIDE))
    parts = min(programs, max(order["parts"], -(-programs // SIDE_BY_SIDE)))
    return np.array_split(np.random.default_rng(order["seed"]).permutation(programs), parts)


def launch(kernels, entry, buffers, order, unstated):
    kernel, kinds = kernels.get(entry["kernel"])
    if len(kinds) != len(entry["args"]):
        raise machine.FaultError("launch_refused", f"{len(entry['args'])} arguments for {len(kinds)} parameters", 0)
    arguments = [argument(kind, value) for kind, (_, value) in zip(kinds, entry["args"], strict=True)]
    programs = entry["grid"][0] * entry["grid"][1] * entry["grid"][2]
    for some in batches(programs, order):
        kernel(machine.Machine(entry["grid"], some, buffers, unstated), None, *arguments)


def argument(kind, value):
    number = float.fromhex(value) if isinstance(value, str) else value
    if kind.startswith("ptr:"):
        return np.int64(number)
    bits = machine.SIZES[kind] * 8
    if kind[0] == "i" and kind != "i1":
        number = (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    made = machine.dtype_of(kind)(number)
    return machine.round_bf16(made)[()] if kind == "bf16" else made


def region(buffers, address, size):
    """The bytes [address, address + size) of one buffer, writable."""
    for buffer in buffers:
        if buffer.address <= address and address + size <= buffer.end:
            return buffer.data[address - buffer.address : address - buffer.address + size]
    raise machine.FaultError("illegal_address", f"{size} bytes at {address:#x} lie in no buffer", 0)


def play(kernels, entries, buffers, order, unstated):
    for entry in entries:
        match entry["op"]:
            case "launch":
                launch(kernels, entry, buffers, order, unstated)
            case "fill":
                region(buffers, entry["to"], entry["bytes"])[:] = entry["value"]
            case "copy":
                source = region(buffers, entry["from"], entry["bytes"]).copy()
                region(buffers, entry["to"], entry["bytes"])[:] = source
            case "upload":
                data = np.frombuffer(bytes.fromhex(entry["data"]), np.uint8)
                region(buffers, entry["to"], len(data))[:] = data


def run_case(kernels, order, payload):
    tape, at = json.loads(payload[: order["tape"]]), order["tape"]
    buffers, given = [], {}
    for item in order["buffers"]:
        if item["given"]:
            data = np.frombuffer(payload, np.uint8, item["size"], at).copy()
            at += item["size"]
            given[item["name"]] = data.copy()
        else:
            data = np.full(item["size"], 0xFF, np.uint8)  # NaN in every floating-point type
        buffers.append(machine.Buffer(item["name"], item["address"], data))
    start, unstated = time.perf_counter(), machine.Unstated(order["others"])
    with np.errstate(all="ignore"):
        play(kernels, tape, buffers, order["programs"], unstated)
    ms = (time.perf_counter() - start) * 1e3
    changed = [b.name for b in buffers if b.name in given and not np.array_equal(b.data, given[b.name])]
    results = b"".join(region(buffers, each["address"], each["size"]).tobytes() for each in order["results"])
    return {"kind": "result", "ms": ms, "changed": changed, "unstated": sorted(unstated.lines)}, results


def fault(reason, message, line=0):
    return {"kind": "fault", "reason": reason, "message": message[:1000], "line": line}


def answer(kernels, order, payload):
    """Runs one case; what cannot be run is answered too."""
    try:
        return run_case(kernels, order, payload)
    except machine.FaultError as error:
        return fault(error.reason, str(error), error.line), b""
    except ir.NotInterpretedError as error:
        return fault("cannot_interpret", str(error)), b""
    except MemoryError:
        return fault("memory", "the kernels' tensors do not fit"), b""
    except Exception as error:
        return fault("cannot_interpret", f"{type(error).__name__}: {str(error)[:500]}"), b""


def main(channel):
    order, payload = receive(channel)
    kernels = Kernels(order["file"])
    while True:
        if order["kind"] == "kernels":
            at = 0
            for item in order["kernels"]:
                kernels.texts[item["key"]] = payload[at : at + item["size"]].decode(errors="replace")
                at += item["size"]
        else:
            with saying_where(order["seconds"]):
                answered = answer(kernels, order, payload)
            send(channel, *answered)
        order, payload = receive(channel)


main(channel)  # noqa: F821 - given by the sandbox
