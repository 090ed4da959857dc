"""Colours for submitted source: a tokeniser whose cost is linear in the text, whatever the text is.

A general highlighter's patterns look for an end that a hostile file does not have again and again, and 64 KiB of asterisks
hold an API process for minutes. Here each alternative is possessive and what has no end reaches as far as it was read, so
every character is looked at a bounded number of times. Colours are for reading: a raw string of C++ may be coloured short.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator

from kernelgate.languages import LANGUAGES

_PYTHON = re.compile(
    r'''(?P<c>\#[^\n]*+)
|(?P<s>(?:[rRbBuUfF]{1,2})?(?:
    """(?:[^"\\]|\\.|"(?!""))*+(?:""")?+ | \'\'\'(?:[^'\\]|\\.|'(?!\'\'))*+(?:\'\'\')?+
  | "(?:[^"\\\n]|\\.)*+"?+ | '(?:[^'\\\n]|\\.)*+'?+))
|(?P<nd>@[^\W\d]\w*+)
|(?P<m>\d[\w.]*+)
|(?P<word>[^\W\d]\w*+)
|(?P<rest>[^\w\#"'@]++|.)''',
    re.DOTALL | re.VERBOSE,
)
_CUDA = re.compile(
    r"""(?P<c>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?+)
|(?P<cp>\#[ \t]*+[a-z]*+)
|(?P<s>"(?:[^"\\\n]|\\.)*+"?+|'(?:[^'\\\n]|\\.)*+'?+)
|(?P<m>\d[\w.]*+)
|(?P<word>[^\W\d]\w*+)
|(?P<rest>[^\w\#"'/]++|.)""",
    re.DOTALL | re.VERBOSE,
)
_CUDA_WORDS = """
alignas asm auto break case catch class const constexpr continue decltype default delete do else enum explicit extern for
friend goto if inline mutable namespace new noexcept operator private protected public return sizeof static static_assert
struct switch template this throw try typedef typename union using virtual volatile while true false nullptr
__global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__ __launch_bounds__ __forceinline__
__noinline__ __grid_constant__ __cluster_dims__
"""
_CUDA_TYPES = """
void bool char short int long float double unsigned signed size_t half __half __nv_bfloat16 float2 float4 int2 int4 dim3
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t cudaStream_t cudaError_t
"""
_WORDS = {
    "python": {
        **dict.fromkeys((name for name in dir(builtins) if not name.startswith("_")), "nb"),
        **dict.fromkeys(keyword.kwlist, "k"),
    },
    "cpp": {**dict.fromkeys(_CUDA_WORDS.split(), "k"), **dict.fromkeys(_CUDA_TYPES.split(), "kt")},
}
_PATTERNS = {"python": _PYTHON, "cpp": _CUDA}


def coloured(code: str, language: str) -> Iterator[tuple[str, str]]:
    """`code` in pieces (style, text) that give it back when put together; style "" is plain. language: of a stage."""
    known = LANGUAGES.get(language)
    if known is None:
        yield "", code
        return
    words = _WORDS[known.words]
    for match in _PATTERNS[known.words].finditer(code):
        kind, text = str(match.lastgroup), match.group()
        yield (words.get(text, "") if kind == "word" else "" if kind == "rest" else kind), text
