"""Translates a PTX module to C++ that runs on the emulator's runtime.

Every instruction is written by an entry of a table that its whole spelling has to match, and each of these is tested; anything
else is refused by its name. Only what was understood is written out: no word of the PTX text reaches the C++ but as a number,
as a name in quotes, or under a name of ours. Trusted code that reads hostile text, because inline assembly puts a submitter's
words into it: the standard library alone, typed throughout, and its cost is linear in the size of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .emitter import Known, Place
from .functions import FORMS, PATTERNS, FunctionWriter, size_of
from .syntax import parse
from .tree import Function, Module, Name, Number, PtxError, Real, Variable

__all__ = ["FORMS", "PATTERNS", "PtxError", "Translated", "translate"]
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Translated:
    """text: C++ with `#line` directives of the submitter's file. kernels: names of the entries. serial: blocks take turns."""

    text: str
    kernels: tuple[str, ...]
    serial: bool


def translate(text: str, file: str, shown: Mapping[str, str] | None = None) -> Translated:
    """A module as C++. file: the submitter's file, whose lines are told. shown: what to call a kernel, by its name in PTX.

    Raises PtxError with the line and the kernel for what cannot be read or is not known.
    """
    return _Translation(parse(text, file), file, shown or {}).translated()


class _Translation:
    def __init__(self, module: Module, file: str, shown: Mapping[str, str]) -> None:
        self.module = module
        self.file = re.sub(r'["\\\n]', "_", file)
        self.shown = shown
        self.places: dict[str, Place] = {}
        self.out: list[str] = ['#include "ptx/module.h"', "namespace {"]

    def translated(self) -> Translated:
        functions = [it for it in self.module.functions if it.body is not None]
        called = {
            it.name: (f"f{at}", len(it.results), len(it.parameters)) for at, it in enumerate(functions) if not it.entry
        }
        self.places |= {name: Place("function", f"(callables + {at})") for at, name in enumerate(called)}
        if called:
            self.out.append(f"extern const ptx::Callable callables[{len(called)}];")
        self._variables()
        writers = [self._writer(at, it, called) for at, it in enumerate(functions)]
        waits = any(writer.waits for writer in writers)
        written = [writer.write(waits) for writer in writers]
        self.out += [f"{writer.signature()};" for writer in writers]
        if called:
            listed = ", ".join(
                f"{{(void (*)())&{name}, {results}, {given}}}" for name, results, given in called.values()
            )
            self.out.append(f"const ptx::Callable callables[{len(called)}] = {{{listed}}};")
            self.out.append(f"ptx::Callables known_callables(callables, {len(called)});")
        for writer, made in zip(writers, written, strict=True):
            self.out += [_shared(f"s_{writer.name}_{at}", each) for at, each in enumerate(writer.shared)]
            self.out += self._placed(made.lines)
        entries = [(it, writer) for it, writer in zip(functions, writers, strict=True) if it.entry]
        self.out += [
            f"ptx::Kernel entry_{writer.name}({quoted(it.name)}, {quoted(self._shown(it))}, "
            f"[](void* given) {{ {writer.name}(static_cast<unsigned char*>(given)); }}{_cluster(it)});"
            for it, writer in entries
        ]
        serial = waits or any(made.serial for made in written)
        self.out += ["}", f'extern "C" {{ extern const int emulator_serial_blocks = {int(serial)}; }}', ""]
        return Translated("\n".join(self.out), tuple(it.name for it, _ in entries), serial)

    def _writer(self, at: int, it: Function, called: dict[str, tuple[str, int, int]]) -> FunctionWriter:
        """A writer that knows its registers, which takes a first look at the whole function."""
        name = f"{'k' if it.entry else 'f'}{at}"
        first = FunctionWriter(it, name, self.places, called, self._shown(it), Known())
        first.write(waits=False)
        return FunctionWriter(it, name, self.places, called, self._shown(it), first.known())

    def _shown(self, it: Function) -> str:
        return self.shown.get(it.name, it.name)

    def _placed(self, lines: list[tuple[int, str]]) -> list[str]:
        """Lines with their `#line`; what belongs to one line of the submitter's stands on one line."""
        out: list[str] = []
        now, gathered = -1, ""
        for line, text in lines:
            if (line or now) != now or len(gathered) > 2000:
                out.append(gathered)
                gathered = ""
                now = line or now
                if now > 0:
                    out.append(f'#line {now} "{self.file}"')
            gathered += f" {text}" if gathered else text
        return [*out, gathered]

    # --------------------------------------------------------------------------------------------------- variables

    def _variables(self) -> None:
        for at, each in enumerate(self.module.variables):
            size = size_of(each)
            if each.name in self.places:
                raise PtxError(f"{each.name[:60]} is declared twice")
            if each.space == "shared":
                dynamic = each.external or not each.count
                self.places[each.name] = Place("shared", "ptx::dynamic_offset()" if dynamic else f"s{at}", size)
                if not dynamic:
                    self.out.append(_shared(f"s{at}", each))
            elif each.space in ("global", "const") and not each.external:
                self.places[each.name] = Place(each.space, f"g{at}", size)
            elif not each.external:
                raise PtxError(f"the .{each.space} variable {each.name[:60]} outside a function cannot be emulated")
        if sum(place.size for place in self.places.values()) > MOST_BYTES:
            raise PtxError(f"the variables of the module take more than {MOST_BYTES:,} bytes")
        for at, each in enumerate(self.module.variables):
            if each.name in self.places and self.places[each.name].base == f"g{at}":
                self.out += self._global(f"g{at}", each)

    def _global(self, name: str, each: Variable) -> list[str]:
        align = max(each.align, size_of(each, one=True), 16)
        size = max(1, size_of(each))
        lines = [f"alignas({align}) unsigned char {name}[{size}] = {{{self._bytes(each)}}};"]
        constant = "true" if each.space == "const" else "false"
        lines.append(f"ptx::Global named_{name}({quoted(each.name)}, {name}, {size}, {constant});")
        for at, value in enumerate(each.values):
            if isinstance(value, Name):  # an address: filled in when the program starts
                place = self.places.get(value.text)
                if place is None or place.space == "shared" or size_of(each, one=True) != 8:
                    raise PtxError(
                        f"the initialiser of {each.name[:60]} names {value.text[:60]}, which is no variable in memory"
                    )
                filled = f"ptx::store<uint64_t>({name} + {8 * at}, (uint64_t){place.base} + ({value.offset}))"
                lines.append(f"const bool filled_{name}_{at} = ({filled}, true);")
        return lines

    def _bytes(self, each: Variable) -> str:
        width = size_of(each, one=True)
        data = bytearray()
        for value in each.values:
            if isinstance(value, Number):
                data += (value.value & (1 << 8 * width) - 1).to_bytes(width, "little")
            elif isinstance(value, Real) and value.width == 8 * width:
                data += value.bits.to_bytes(width, "little")
            elif isinstance(value, Name):
                data += bytes(width)
            else:
                raise PtxError(f"the initialiser of {each.name[:60]} cannot be read")
        if len(data) > size_of(each):
            raise PtxError(f"the initialiser of {each.name[:60]} is longer than the variable")
        return ", ".join(map(str, data.rstrip(b"\0")))


def _cluster(it: Function) -> str:
    """C++ of what a kernel says of its clusters, as a further argument."""
    sizes = (*it.cluster, 1, 1)[:3]
    return f", dim3({', '.join(map(str, sizes))})" if it.cluster else ""


def _shared(name: str, each: Variable) -> str:
    align = max(each.align, size_of(each, one=True))
    shown = quoted(plain_name(each.name))
    return f"::emulator::SharedVariable {name} = {{{size_of(each)}, {align}, {shown}, -1}};"


def plain_name(mangled: str) -> str:
    """The last name inside a mangled one: `tile` for `_ZZ3addPfE4tile`."""
    found = ""
    for match in re.finditer(r"(?<!\d)(\d{1,3})(?=[A-Za-z_])", mangled):
        name = mangled[match.end() : match.end() + int(match[1])]
        if len(name) == int(match[1]):
            found = name
    return found or mangled


def quoted(text: str) -> str:
    """A C++ string literal of at most 4,000 characters; what is not plain ASCII becomes a question mark."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text[:4000])
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'
