"""What a file may hold that cannot be executed on a CPU, found before the compiler would say it in other words."""

from __future__ import annotations

import re

from .tokens import RewriteError, Tokens

_INCLUDE = re.compile(r"\#\s*include\s*[<\"]([^>\"]+)[>\"]")
_ABSENT = {
    "cub/": "CUB",
    "thrust/": "Thrust",
    "cutlass/": "CUTLASS",
    "cute/": "CuTe",
    "cudaTypedefs": "the CUDA driver API",
    "cuda/std/": "libcu++'s cuda::std",
    "cuda/ptx": "inline PTX wrappers",
}


def refuse(tokens: Tokens) -> None:
    """Raises RewriteError for inline PTX and for libraries that exist for device code alone, naming line and text."""
    for index, token in enumerate(tokens.items):
        if token.kind == "directive":
            _refuse_include(token.text, token.line)
        elif tokens.is_name(index, "asm", "__asm__", "__asm"):
            _refuse_assembly(tokens, index)


def _refuse_include(text: str, line: int) -> None:
    match = _INCLUDE.match(text)
    for start, title in _ABSENT.items():
        if match and match.group(1).startswith(start):
            raise RewriteError(
                line,
                f"<{match.group(1)[:80]}>: {title} cannot be emulated without a GPU; write this part in plain CUDA C++",
            )


def _refuse_assembly(tokens: Tokens, index: int) -> None:
    at = tokens.next(index + 1)
    while tokens.is_name(at, "volatile", "__volatile__"):
        at = tokens.next(at + 1)
    code = tokens.next(at + 1) if tokens.is_op(at, "(") else -1
    text = tokens.items[code].text.strip('"') if 0 <= code < len(tokens.items) else ""
    if not text.strip():
        return  # asm volatile("" ::: "memory") is a compiler barrier on every machine
    raise RewriteError(
        tokens.items[index].line,
        f"inline assembly ({text[:60]!r}) cannot be emulated without a GPU: PTX is not translated; use the CUDA C++ function "
        "for it where there is one (__shfl_sync, __pipeline_memcpy_async, nvcuda::wmma, …)",
    )
