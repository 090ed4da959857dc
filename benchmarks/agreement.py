"""Does the emulator compute what a GPU computes? The same kernels, the same inputs, both answers side by side.

    python -m benchmarks.agreement                   # where all of it is: the emulator, nvcc and a GPU
    python -m benchmarks.agreement record FOLDER     # where the emulator and nvcc are: plays and compiles every kernel
    python3 FOLDER/agreement.py compare FOLDER       # where a GPU is; its driver and numpy are all that this needs

`record` leaves in FOLDER what the emulator wrote, the inputs, a library of each kernel for the GPU, and this file. `compare`
runs the libraries and prints one line an array: bit for bit equal, or the largest difference, absolute and in units of the last
place of the largest value of the array. ARCH names the GPU's architecture, sm_90a where it is not set.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

RUNTIME = "libcudart.so.13"
NVCC_FLAGS = ("-std=c++17", "-O3", "-shared", "-Xcompiler=-fPIC", "-diag-suppress=177,550",
              "-cudart=shared", "-Xlinker=-rpath=$ORIGIN")  # fmt: skip
ATTENTION = ("starter/attention", "solution/attention")
STYLES = ("cooperative_tiles", "copies_first_row", "own_streams", "register_tiles", "templates", "work_queue")
TOKENS = 127
PATIENCE_S = 60
GLUE = """
#define GLUE(name, parameters, call) extern "C" int glue_##name parameters { return (int)(call); }
GLUE(allocate, (void** to, size_t bytes), cudaMalloc(to, bytes))
GLUE(fill, (void* to, int byte, size_t bytes), cudaMemset(to, byte, bytes))
GLUE(upload, (void* to, const void* from, size_t bytes), cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice))
GLUE(download, (void* to, const void* from, size_t bytes), cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost))
static cudaError_t glue_status() { const cudaError_t e = cudaDeviceSynchronize(); return e ? e : cudaGetLastError(); }
GLUE(finish, (), glue_status())
"""


@dataclass(frozen=True)
class Kernel:
    """A file with its seam, what it is called with, and the arrays it writes: values and type by name."""

    name: str
    signature: str
    source: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, tuple[int, str]]
    values: Mapping[str, float]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.name.replace(" ", "_")

    @property
    def seam(self) -> str:
        return self.signature.partition("(")[0].rpartition(" ")[2]


# ------------------------------------------------------------------------------------------------------- the emulator


def kernels() -> Iterator[Kernel]:
    """The emulator's samples, the kernels in the manner of public ones, and attention in several styles."""
    from tests.worker.emulator.ptx.public_kernels import PUBLIC
    from tests.worker.emulator.samples import SAMPLES

    for sample in SAMPLES:
        if sample.portable:
            made = sample.made()
            yield Kernel(sample.name, sample.signature(made), sample.source, made, sample.outputs, sample.values)
    for public in PUBLIC:
        x = public.inputs(np.random.default_rng(7))
        signature = f'extern "C" void {public.name}(const float* x, float* y, int n, cudaStream_t stream)'
        outputs = {"y": (public.count, "float32")}
        yield Kernel(f"public {public.name}", signature, public.source, {"x": x}, outputs, {"n": int(x.size)})
    yield from _attention()


def _attention() -> Iterator[Kernel]:
    from kernelgate.settings import settings
    from kernelgate.stage_folders import load_stage
    from worker.judging.grader import Grader

    stage = load_stage(settings().graders_dir / "online_attention")
    case = next(case for case in stage.spec.cases if case.params["tokens"] == TOKENS)
    inputs = {"qkv": Grader(stage).inputs(case, "5eed" * 8)["qkv"]}
    headers = {name: text for name, text in stage.provided.items() if name.endswith(".h")}
    for path in [f"{name}.cu" for name in ATTENTION] + [f"submissions/accepted/{name}.cu" for name in STYLES]:
        name = f"attention {path.split('/')[0] if '/attention' in path else Path(path).stem}"
        source, outputs = stage.text(path), {"out": (TOKENS * 512, "float32")}
        yield Kernel(name, stage.spec.seam.signature, source, inputs, outputs, {"tokens": TOKENS}, headers)


def record(folder: Path) -> None:
    """Plays every kernel in the emulator, compiles it for the GPU, and leaves in `folder` what `compare` needs."""
    from worker.backends import open_sandbox
    from worker.emulator.toolchain import toolchain
    from worker.recording.native import cuda_root

    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, folder / "agreement.py")
    shutil.copy(cuda_root() / "lib" / RUNTIME, folder / RUNTIME)
    tools, told = toolchain(), {}
    with open_sandbox() as sandbox, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        listed = list(kernels())
        played = [pool.submit(_played, tools, sandbox, folder, each) for each in listed]
        built = [pool.submit(_compiled, folder, each) for each in listed]
        for each, ran, library in zip(listed, played, built, strict=True):
            told[each.name] = {**ran.result(), "refused": library.result()}
            print(f"recorded {each.name}{' ' + told[each.name]['refused']}", flush=True)
    (folder / "kernels.json").write_text(json.dumps({"compiler": tools.compiler.version, "kernels": told}, indent=1))


def _played(tools: Any, sandbox: Any, folder: Path, each: Kernel) -> dict[str, Any]:
    from tests.worker.emulator.conftest import compiling
    from worker.emulator.toolchain import Pass
    from worker.recording.seam import parameters

    emulated = compiling(tools, sandbox)(each.seam, each.signature, each.source, [Pass.PLAIN], each.headers)
    sizes = {key: size * np.dtype(dtype).itemsize for key, (size, dtype) in each.outputs.items()}
    ran = emulated(Pass.PLAIN, each.inputs, sizes, each.values)
    if not ran.returned:
        raise SystemExit(f"{each.name}: {ran.finding or ran.finished}")
    arrays = {f"in_{part}": array for part, array in each.inputs.items()}
    arrays |= {f"out_{part}": np.frombuffer(ran.written[part], dtype) for part, (_, dtype) in each.outputs.items()}
    np.savez_compressed(folder / f"{each.key}.npz", **arrays)
    order = [[part.name, part.kind.value, part.type] for part in parameters(each.signature)]
    return {"key": each.key, "seam": each.seam, "parameters": order, "values": dict(each.values)}


def _compiled(folder: Path, each: Kernel) -> str:
    """Builds a kernel's library for the GPU; returns the compiler's words when it refuses."""
    from worker.recording.native import cuda_root

    with tempfile.TemporaryDirectory() as at:
        for name, text in {**each.headers, "kernel.cu": f"{each.source}\n{GLUE}"}.items():
            (Path(at) / name).write_text(text)
        command = [str(cuda_root() / "bin" / "nvcc"), *NVCC_FLAGS, f"-arch={os.environ.get('ARCH', 'sm_90a')}"]
        command += ["-o", str(folder.resolve() / f"{each.key}.so"), "kernel.cu"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=at)
    return done.stderr.strip()[-300:] if done.returncode else ""


# ------------------------------------------------------------------------------------------------------------ the GPU


def compare(folder: Path) -> None:
    """Runs everything on this machine's GPU and prints the table."""
    told = json.loads((folder / "kernels.json").read_text())
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    facts = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    print(f"emulator: {told['compiler']}\nGPU: {facts}\n\n| kernel | array | values | agreement |\n|---|---|---:|---|")
    with ThreadPoolExecutor(4) as pool:
        for row in pool.map(lambda name: _apart(folder, name, told["kernels"][name]["refused"]), told["kernels"]):
            print(row, end="", flush=True)


def _apart(folder: Path, name: str, refused: str) -> str:
    """One kernel in a process of its own: a fault or a hang of it is its own line in the table."""
    if refused:
        return f"| {name} | | | nvcc: {refused.splitlines()[-1]} |\n"
    command = [sys.executable, __file__, "run", str(folder), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"| {name} | | | did not end on the GPU in {PATIENCE_S} s |\n"
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


def main() -> None:
    match sys.argv[1:]:
        case ["record", where]:
            record(Path(where))
        case ["compare", where]:
            compare(Path(where).resolve())
        case ["run", where, name]:
            run_one(Path(where), name)
        case []:
            with tempfile.TemporaryDirectory() as where:
                record(Path(where))
                compare(Path(where))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
