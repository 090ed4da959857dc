"""Files of a stage that its seam and its baseline say already: the starter and the header with the seam's declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernelgate.languages import LANGUAGES
from kernelgate.seams import C_TYPES, SeamLine

if TYPE_CHECKING:
    from kernelgate.stage_file import StageFile
    from kernelgate.stages import Spec

HEADERS = {"__half": "cuda_fp16.h", "__nv_bfloat16": "cuda_bf16.h"}


def derived_files(form: StageFile, spec: Spec, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """What the folder lacks, by name: `starter/FILE`, and for CUDA `provided/NAME.h`."""
    made: dict[str, bytes] = {}
    seams = [seam for name, seam in form.seams.items() if name not in form.ways]
    header = f"provided/{spec.file.removesuffix('.cu')}.h"
    if spec.language == "cuda" and header not in files:
        made[header] = _header(seams).encode()
    if f"starter/{spec.file}" not in files:
        baseline = files.get(f"baseline{LANGUAGES[spec.language].suffix}") if spec.gate else None
        made[f"starter/{spec.file}"] = baseline or _starter(spec, seams).encode()
    return made


def _header(seams: list[SeamLine]) -> str:
    types = {C_TYPES[each.dtype] for seam in seams for each in (*seam.arrays, *seam.results)}
    includes = ["cuda_runtime.h", *(HEADERS[each] for each in sorted(types) if each in HEADERS)]
    lines = ["#pragma once", *(f"#include <{name}>" for name in includes), ""]
    return "\n".join([*lines, *(f"{seam.c_signature()};" for seam in seams)]) + "\n"


def _starter(spec: Spec, seams: list[SeamLine]) -> str:
    return _cuda_starter(spec, seams) if spec.language == "cuda" else _python_starter(spec, seams)


def _cuda_starter(spec: Spec, seams: list[SeamLine]) -> str:
    """A kernel that is launched and writes nothing: it compiles, and every value is still missing."""
    parts = [f'// {spec.summary}\n#include "{spec.file.removesuffix(".cu")}.h"\n']
    for seam in seams:
        result = seam.judged[0]
        kernel = f"{seam.name}Kernel"
        parts.append(
            f"__global__ void {kernel}({C_TYPES[result.dtype]}* {result.name}) {{\n    // one thread, so far\n}}\n"
        )
        parts.append(f"{seam.c_signature()} {{\n    {kernel}<<<1, 1, 0, stream>>>({result.name});\n}}\n")
    return "\n".join(parts)


def _python_starter(spec: Spec, seams: list[SeamLine]) -> str:
    imports = (
        "import torch\nimport triton\nimport triton.language as tl\n" if spec.language == "triton" else "import torch\n"
    )
    parts = [f'"""{spec.summary}"""\n\n{imports}']
    for seam in seams:
        arguments = ", ".join(seam.python_arguments())
        parts.append(
            f'\ndef {seam.name}({arguments}):\n    raise NotImplementedError("{seam.name} is yours to write")\n'
        )
    return "\n".join(parts)
