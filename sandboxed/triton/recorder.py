"""Records the host code of a Triton submission, inside the sandbox, without a GPU and without data.

Theory of operation. A warm interpreter that has imported torch and Triton is forked and jailed; this text runs in it with
`channel`, a connected stream socket to the trusted side; device.py and driver.py come with it as texts. The trusted side
sends one `load` frame and one `record` frame. Every case is recorded in a fork of the loaded process, as many at a time as
there are processors: kernels of different cases compile side by side, and what one case left in a module never reaches the
next. A case's fork writes its frame into a pipe; this process passes on whole frames and says of the others that they are gone.

Nothing that runs here is trusted, and nothing here has data: inputs come to be in the process that runs the kernels. A forged
frame is only another submission.
"""

import importlib
import json
import os
import select
import sys
import traceback
import types
from pathlib import Path

from sandboxed_errors import Violation, failure, saying_where, violation
from sandboxed_frames import framed, receive, send, whole
from sandboxed_imports import install

SIDE_BY_SIDE = 16
MAX_ENTRIES, MAX_KERNELS = 5000, 64  # what the trusted side reads (worker/triton/tape.py)
COMPILING = {"_do_compile", "cache_key"}  # of Triton: where what is wrong with a kernel is found
UNMAPPED = 0x5000_0000_0000  # where a stage's driver puts tensors that nothing may read


class Tape:
    """What one call asked of the device, in order."""

    def __init__(self):
        self.entries = []
        self.notes = {}

    def add(self, op, **fields):
        if len(self.entries) == MAX_ENTRIES:
            raise Violation(
                "tape_too_long", f"more than {MAX_ENTRIES} launches, fills and copies were asked for in one call"
            )
        self.entries.append({"op": op, **fields})

    def note(self, kernel, **facts):
        self.notes[kernel] = facts
        if len(self.notes) > MAX_KERNELS:
            raise Violation(
                "too_many_kernels", f"more than {MAX_KERNELS} kernels were compiled and launched in one call"
            )

    @property
    def launches(self):
        return sum(entry["op"] == "launch" for entry in self.entries)


def _causes(error):
    cause, found = error.__cause__, []
    while cause is not None and len(found) < 4:
        found.append(f"{type(cause).__name__}: {cause}")
        cause = cause.__cause__
    return found


def failed(error, texts):
    """A failure with the submitter's own lines, and what Triton's compiler says of a kernel."""
    causes = _causes(error)
    said = "".join(f"caused by {cause[:2000]}\n" for cause in causes)
    found = failure(error, lambda frame: frame.filename.removesuffix(".py") in texts, said)
    return {
        **found,
        "module": type(error).__module__,
        "compiling": any(each.name in COMPILING for each in traceback.extract_tb(error.__traceback__)),
        "message": (str(error) + "".join(f" ({cause})" for cause in causes[-1:]))[:2000],
    }


def load(order):
    """Imports our driver, the submission and the stage's driver, in this order: each error names who made it."""
    contract = types.ModuleType("contract")
    contract.Violation, contract.Tape = Violation, Tape
    sys.modules["contract"] = contract
    texts = {**order["provided"], order["module"]: order["source"], "driver": order["driver"]}
    install(texts)
    os.environ["TRITON_CACHE_DIR"] = str(Path.cwd() / "compiled")
    recording = importlib.import_module("sandboxed_driver")
    device = importlib.import_module("sandboxed_device")
    installed = recording.install(order["capability"], order["properties"], values_only=order["values_only"])
    contract.launches = lambda: recording.RecordingDriver.tape.launches
    contract.tensor = lambda shape, dtype: device.Recording.active.given(shape, dtype, UNMAPPED)
    contract.DeviceTensor = device.DeviceTensor
    submission = importlib.import_module(order["module"])
    stage = importlib.import_module("driver")
    return types.SimpleNamespace(
        recording=recording, device=device, installed=installed, submission=submission, stage=stage, texts=texts
    )


def record_case(loaded, case, seconds):
    """Every take of one case; the frame to send."""
    takes = []
    try:
        with saying_where(seconds):
            takes = [record_take(loaded, case, take) for take in case["takes"]]
    except Violation as error:
        return framed({**violation(error), "case": case["number"]})
    except BaseException as error:  # whatever it raises, SystemExit and KeyboardInterrupt too, is the submission's
        return framed({**failed(error, loaded.texts), "case": case["number"]})
    tape = json.dumps(takes).encode()
    used = {entry["kernel"] for take in takes for entry in take["entries"] if entry["op"] == "launch"}
    images = {key: image for key, image in loaded.installed.utils.images.items() if key in used}
    notes = {key: facts for take in takes for key, facts in take.pop("notes").items()}
    kernels = [
        {"key": key, "name": name, "shared": shared, "image": len(image), **notes[key]}
        for key, (name, image, shared) in images.items()
    ]
    payload = tape + b"".join(image for _, image, _ in images.values())
    return framed({"kind": "recorded", "case": case["number"], "tape": len(tape), "kernels": kernels}, payload)


def record_take(loaded, case, take):
    tape = Tape()
    memory = loaded.device.Memory(take["slots"], take["at_end"])
    loaded.recording.RecordingDriver.tape = tape
    stated = types.SimpleNamespace(dtype=case["dtype"], params=types.SimpleNamespace(**case["params"]))
    recording = loaded.device.Recording(memory, tape)
    given = {
        item["name"]: recording.given(item["shape"], getattr(loaded.device.torch, item["dtype"]), item["address"])
        for item in take["inputs"]
    }
    with recording:
        results = loaded.stage.run(loaded.submission, stated, given)
        listed = [described(loaded, name, tensor) for name, tensor in results.items()]
    return {"entries": tape.entries, "sizes": memory.sizes, "results": listed, "notes": tape.notes}


def described(loaded, name, tensor):
    plain = loaded.device.bare(tensor)
    return {
        "name": name,
        "address": tensor.data_ptr(),
        "dtype": str(plain.dtype).removeprefix("torch."),
        "shape": list(plain.shape),
    }


def fork_case(channel, loaded, case, seconds):
    """Starts one case in a fork; its pipe and process id."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        channel.close()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(record_case(loaded, case, seconds))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    os.close(writing)
    return reading, process


def record(channel, loaded, cases, seconds):
    """Records all cases, a few at a time, and sends each frame once it is whole."""
    waiting, running = list(cases), {}
    while waiting or running:
        while waiting and len(running) < min(os.cpu_count() or 1, SIDE_BY_SIDE):
            case = waiting.pop(0)
            reading, process = fork_case(channel, loaded, case, seconds)
            running[reading] = (case["number"], process, bytearray())
        for reading in select.select(list(running), [], [])[0]:
            number, process, held = running[reading]
            part = os.read(reading, 1 << 20)
            if part:
                held += part
                continue
            os.close(reading)
            del running[reading]
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            channel.sendall(held if whole(held) else framed({"kind": "gone", "case": number, "status": status}))


def main(channel):
    order, _ = receive(channel)
    try:
        with saying_where(order["seconds"]):
            loaded = load(order)
    except Violation as error:
        send(channel, violation(error))
        return
    except BaseException as error:  # see record_case
        texts = {**order["provided"], order["module"]: order["source"]}
        send(channel, failed(error, texts))
        return
    send(channel, {"kind": "loaded"})
    _, payload = receive(channel)
    record(channel, loaded, json.loads(payload), order["seconds"])
    send(channel, {"kind": "end"})


main(channel)  # noqa: F821 - given by the sandbox
