"""Does the emulator compute what a GPU computes? The same kernels, the same inputs, both answers side by side.

    python -m benchmarks.agreement record FOLDER     # where the emulator is: runs every kernel there
    python3 FOLDER/agreement.py compare FOLDER       # where a GPU and nvcc are; numpy is all that it needs of Python

`record` leaves in FOLDER the sources, their inputs with the emulator's outputs, and this file. `compare` compiles the sources
as a worker does, runs them on the GPU and prints one line a kernel: bit for bit equal, or the largest difference, absolute
and in units of the last place of the largest value of the array.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

NVCC_FLAGS = (
    "-std=c++17",
    "-O3",
    "-shared",
    "-Xcompiler",
    "-fPIC",
    f"-arch={os.environ.get('ARCH', 'native')}",
    "-diag-suppress",
    "177,550",
)
ATTENTION = ("starter/attention", "solution/attention")
STYLES = ("cooperative_tiles", "copies_first_row", "own_streams", "register_tiles", "templates", "work_queue")
TOKENS = 127
GLUE = """
#define GLUE(name, parameters, call) extern "C" int glue_##name parameters { return (int)(call); }
GLUE(allocate, (void** to, size_t bytes), cudaMalloc(to, bytes))
GLUE(fill, (void* to, int byte, size_t bytes), cudaMemset(to, byte, bytes))
GLUE(upload, (void* to, const void* from, size_t bytes), cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice))
GLUE(download, (void* to, const void* from, size_t bytes), cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost))
static cudaError_t finished() { const cudaError_t e = cudaDeviceSynchronize(); return e ? e : cudaGetLastError(); }
GLUE(finish, (), finished())
"""


# ------------------------------------------------------------------------------------------------------- the emulator


def record(folder: Path) -> None:
    """Runs every kernel in the emulator and writes what `compare` needs into `folder`."""
    from tests.worker.emulator.samples import SAMPLES
    from worker.backends import open_sandbox
    from worker.emulator.toolchain import toolchain

    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, folder / "agreement.py")
    kernels: dict[str, dict[str, Any]] = {}
    with open_sandbox() as sandbox:
        tools = toolchain()
        for sample in (it for it in SAMPLES if it.portable):
            inputs = sample.made()
            kernels[sample.name] = _record_one(
                tools, sandbox, folder, sample.name, sample.name, sample.signature(inputs), sample.source, inputs,
                {name: (size, dtype) for name, (size, dtype) in sample.outputs.items()}, dict(sample.values), {},
            )  # fmt: skip
        kernels |= _record_attention(tools, sandbox, folder)
    (folder / "kernels.json").write_text(json.dumps({"compiler": tools.compiler.version, "kernels": kernels}, indent=1))
    print(f"{len(kernels)} kernels recorded in {folder}")


def _record_attention(tools: Any, sandbox: Any, folder: Path) -> dict[str, dict[str, Any]]:
    from kernelgate.settings import settings
    from kernelgate.stage_folders import load_stage
    from worker.judging.grader import Grader

    stage = load_stage(settings().graders_dir / "online_attention")
    case = next(case for case in stage.spec.cases if case.params["tokens"] == TOKENS)
    inputs = {"qkv": Grader(stage).inputs(case, "5eed" * 8)["qkv"]}
    headers = {name: text for name, text in stage.provided.items() if name.endswith(".h")}
    for name, text in headers.items():
        (folder / name).write_text(text)
    paths = [f"{name}.cu" for name in ATTENTION] + [f"submissions/accepted/{name}.cu" for name in STYLES]
    recorded = {}
    for path in paths:
        source = (stage.folder / path).read_text()
        name = f"attention {path.split('/')[0] if '/attention' in path else Path(path).stem}"
        recorded[name] = _record_one(
            tools, sandbox, folder, name, stage.spec.seam.name, stage.spec.seam.signature, source, inputs,
            {"out": (TOKENS * 512, "float32")}, {"tokens": TOKENS}, headers,
        )  # fmt: skip
    return recorded


def _record_one(
    tools: Any, sandbox: Any, folder: Path, name: str, seam: str, signature: str, source: str,
    inputs: dict[str, Any], outputs: dict[str, tuple[int, str]], values: dict[str, float], headers: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    from tests.worker.emulator.conftest import compiling
    from worker.emulator.toolchain import Pass
    from worker.recording.seam import parameters

    emulated = compiling(tools, sandbox)(seam, signature, source, [Pass.PLAIN], headers)
    sizes = {key: size * np.dtype(dtype).itemsize for key, (size, dtype) in outputs.items()}
    ran = emulated(Pass.PLAIN, inputs, sizes, values)
    if not ran.returned:
        raise SystemExit(f"{name}: {ran.finding or ran.finished}")
    key = name.replace(" ", "_")
    (folder / f"{key}.cu").write_text(source)
    arrays = {f"in_{part}": array for part, array in inputs.items()}
    arrays |= {f"out_{part}": np.frombuffer(ran.written[part], dtype) for part, (_, dtype) in outputs.items()}
    np.savez_compressed(folder / f"{key}.npz", **arrays)
    order = [[part.name, part.kind.value, part.type] for part in parameters(signature)]
    return {"key": key, "seam": seam, "parameters": order, "values": values}


# ------------------------------------------------------------------------------------------------------------ the GPU


def compare(folder: Path) -> None:
    """Compiles and runs everything on this machine's GPU and prints the table."""
    told = json.loads((folder / "kernels.json").read_text())
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        built = dict(
            zip(told["kernels"], pool.map(lambda one: _compile(folder, one), told["kernels"].values()), strict=True)
        )
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda name: _apart(folder, name, built[name]), told["kernels"]))
    print(f"| kernel | array | values | agreement |\n|---|---|---:|---|\n{''.join(rows)}", end="")
    facts = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"\nemulator: {told['compiler']}\nGPU: {facts.stdout.strip()}")


def _compile(folder: Path, one: dict[str, Any]) -> str:
    """Builds a kernel's library; returns the compiler's words when it refuses."""
    text = (folder / f"{one['key']}.cu").read_text()
    (folder / f"{one['key']}.gpu.cu").write_text(f'#line 1 "{one["key"]}.cu"\n{text}\n{GLUE}')
    command = [
        "nvcc",
        *NVCC_FLAGS,
        "-I",
        str(folder),
        "-o",
        str(folder / f"{one['key']}.so"),
        str(folder / f"{one['key']}.gpu.cu"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr[-300:] if done.returncode else ""


def _apart(folder: Path, name: str, refused: str) -> str:
    """One kernel in a process of its own: a fault or a hang of it is its own line in the table."""
    if refused:
        return f"| {name} | | | nvcc: {refused.strip().splitlines()[-1]} |\n"
    try:
        done = subprocess.run(
            [sys.executable, __file__, "run", str(folder), name],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"| {name} | | | did not end on the GPU |\n"
    return done.stdout or f"| {name} | | | {done.stderr.strip().splitlines()[-1:]} |\n"


def run_one(folder: Path, name: str) -> None:
    one = json.loads((folder / "kernels.json").read_text())["kernels"][name]
    stored = np.load(folder / f"{one['key']}.npz")
    library = ctypes.CDLL(str(folder / f"{one['key']}.so"))
    arguments: list[Any] = []
    outputs: dict[str, tuple[ctypes.c_void_p, Any]] = {}
    for part, kind, kind_of in one["parameters"]:
        if kind in ("input", "output"):
            array = stored[("in_" if kind == "input" else "out_") + part]
            pointer = _device_array(library, array if kind == "input" else None, array.nbytes)
            arguments.append(pointer)
            if kind == "output":
                outputs[part] = (pointer, array)
        elif kind == "stream":
            arguments.append(ctypes.c_void_p(0))
        else:
            number = one["values"][part]
            arguments.append(ctypes.c_float(number) if kind_of == "float" else ctypes.c_int(int(number)))
    getattr(library, one["seam"])(*arguments)
    _must(library.glue_finish(), "the kernel")
    for part, (pointer, emulated) in outputs.items():
        got = np.empty_like(emulated)
        _must(library.glue_download(got.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(got.nbytes)), "copy")
        print(f"| {name} | {part} | {got.size:,} | {_agreement(got, emulated)} |")


def _device_array(library: Any, array: Any, size: int) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    _must(library.glue_allocate(ctypes.byref(pointer), ctypes.c_size_t(max(size, 4))), "cudaMalloc")
    if array is None:
        _must(library.glue_fill(pointer, 0xFF, ctypes.c_size_t(size)), "cudaMemset")
    else:
        held = np.ascontiguousarray(array)
        _must(library.glue_upload(pointer, held.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(size)), "copy")
    return pointer


def _must(error: int, what: str) -> None:
    if error:
        raise SystemExit(f"{what} failed with CUDA error {error}")


def _agreement(got: Any, emulated: Any) -> str:
    if got.tobytes() == emulated.tobytes():
        return "bit for bit"
    if got.dtype.kind != "f":
        return f"{int(np.count_nonzero(got != emulated))} values differ"
    a, b = got.astype(np.float64), emulated.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    difference = float(np.max(np.where(same, 0.0, np.abs(a - b))))
    largest = float(np.nanmax(np.abs(b)))
    place = float(np.spacing(got.dtype.type(largest)))
    count = int(np.count_nonzero(~same))
    return f"{count:,} differ, by at most {difference:.2g} ({difference / place:.1f} ulp of {largest:.3g})"


if __name__ == "__main__":
    task, where = sys.argv[1], Path(sys.argv[2]).resolve()
    if task == "record":
        record(where)
    elif task == "compare":
        compare(where)
    else:
        run_one(where, sys.argv[3])
