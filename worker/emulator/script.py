"""A case's tape and its arrays' places, as the player reads them (kernels/emulator/seam)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worker.recording.entries import Copy, Fill, Upload
from worker.recording.placement import WORKSPACE, Buffer
from worker.recording.record import Device
from worker.recording.tape import Launch, Tape, Work


@dataclass(frozen=True)
class Machine:
    """The GPU whose code is played: nvcc's target for it, e.g. "90a", and what recorded host code is told of it."""

    target: str
    device: Device


VIRTUAL = Machine(
    "90a",
    Device(
        "Kernelgate virtual GPU",
        8 << 30,
        {
            1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 0x7FFFFFFF, 6: 65535, 7: 65535, 8: 48 << 10, 9: 64 << 10, 10: 32,
            12: 65536, 13: 1_000_000, 16: 16, 31: 1, 38: 50 << 20, 39: 2048, 41: 1, 75: 9, 76: 0, 81: 228 << 10,
            82: 65536, 95: 1, 97: 227 << 10, 106: 32, 111: 1024,
        },
    ),
)  # fmt: skip
"""The machine of a host without a GPU: Hopper, with 16 multiprocessors. Attributes by CUDA's numbers."""
FIRST_ADDRESS, APART, ALIGNMENT = 0x6A00_0000_0000, 1 << 32, 256
"""Where arrays lie: free of the player's own mappings and of the tape's stand-in addresses."""
WORKSPACE_NAME = "__workspace"


def address(number: int, size: int) -> int:
    """Where the array of that number lies: its last 256 bytes end where a page ends, as the player asks."""
    return FIRST_ADDRESS + (number + 1) * APART - -(-size // ALIGNMENT) * ALIGNMENT


def placed(inputs: Mapping[str, int], outputs: Mapping[str, int], workspace: int) -> dict[str, Buffer]:
    """Arrays of these sizes in bytes at their addresses, by their names in the seam."""
    sizes = {**inputs, **outputs, **({WORKSPACE: workspace} if workspace else {})}
    return {
        name: Buffer(name, address(at, size), size, FIRST_ADDRESS + at * APART, APART, name not in inputs)
        for at, (name, size) in enumerate(sizes.items())
    }


def plain_name(name: str) -> str:
    """An array's name as one word that can be a file's."""
    return WORKSPACE_NAME if name == WORKSPACE else name


def script(tape: Tape) -> str:
    """A tape as the player reads it, in an order that its streams and events allow."""
    lines = [f"variable {_word(name)} {address} {size}" for name, (address, size) in tape.variables.items()]
    return "\n".join([*lines, *(_line(node.work) for node in tape.nodes), ""])


def _line(work: Work) -> str:
    match work:
        case Launch():
            sizes = " ".join(map(str, (*work.grid, *work.block, work.shared, int(work.cooperative))))
            cluster = " ".join(map(str, work.cluster or ()))
            return f"launch {_word(work.kernel)} {sizes} {work.arguments.hex() or '-'} {cluster}".rstrip()
        case Fill():
            return f"fill {work.to} {work.value} {work.size}"
        case Copy():
            return f"copy {work.to} {work.source} {work.size}"
        case Upload():
            return f"upload {work.to} {work.data.hex() or '-'}"


def _word(name: str) -> str:
    """A name of the tape's as one word; what is none of PTX's names the player does not know."""
    return "".join(c if c.isalnum() or c in "_$" else "?" for c in name) or "?"
