"""Variables that live in device memory: `__shared__`, `extern __shared__`, and `__device__`/`__constant__` globals.

A shared variable becomes a typedef of its own type and a reference into the block's arena, which the runtime can fence,
poison and watch. A global stays what it is and is announced to the runtime behind its declaration.
"""

from __future__ import annotations

from dataclasses import dataclass

from .tokens import REACH, RewriteError, Tokens

_ALIGNERS = ("alignas", "__align__")
_SPECIFIERS = ("extern", "static", "volatile", "const", "constexpr", "inline")
_NOT_FUNCTIONS = (*_ALIGNERS, "__attribute__", "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "decltype")
_GLOBAL_QUALIFIERS = ("__device__", "__constant__", "__managed__")


@dataclass
class Declaration:
    """Token indices of one declaration: its first specifier, its `;` (or the end), and the declared names."""

    start: int
    end: int
    names: list[int]


def rewrite_shared(tokens: Tokens, outermost: list[bool]) -> None:
    """Edits every `__shared__` declaration. Raises RewriteError for one with an initialiser or none that can be read."""
    for index in range(len(tokens.items)):
        if tokens.is_name(index, "__shared__"):
            declaration = _read(tokens, index)
            dynamic = any(tokens.is_name(at, "extern") for at in range(declaration.start, declaration.end))
            _make_typedef(tokens, index, declaration)
            end = tokens.items[min(declaration.end, len(tokens.items) - 1)]
            names = [tokens.items[at].text for at in declaration.names]
            for at in declaration.names:
                tokens.items[at].text = f"emulator_t_{tokens.items[at].text}"
            if dynamic:
                end.after += "".join(_dynamic(name, outermost[index]) for name in names)
            elif outermost[index]:
                raise RewriteError(tokens.items[index].line, "a `__shared__` variable belongs inside a kernel")
            else:
                end.after += "".join(f" EMULATOR_SHARED(emulator_t_{name}, {name});" for name in names)


def _dynamic(name: str, outermost: bool) -> str:
    pointer = f"::std::remove_extent_t<emulator_t_{name}>*"
    if not outermost:
        return f" {pointer} {name} = reinterpret_cast<{pointer}>(::emulator::dynamic_shared());"
    return (
        f" static __thread {pointer} {name}; static ::emulator::DynamicView emulator_d_{name}"
        f"{{[](void* emulator_p) {{ {name} = static_cast<{pointer}>(emulator_p); }}}};"
    )


def _make_typedef(tokens: Tokens, qualifier: int, declaration: Declaration) -> None:
    for at in range(declaration.start, declaration.end):
        if tokens.is_name(at, "extern", "static", "constexpr", "inline"):
            tokens.items[at].text = ""
        elif tokens.is_name(at, "alignas"):
            tokens.items[at].text = "__align__"
    tokens.items[qualifier].text = "typedef"


def announce_globals(tokens: Tokens, outermost: list[bool]) -> None:
    """Announces `__device__`, `__constant__` and `__managed__` variables at namespace scope to the runtime."""
    done = -1
    for index in range(len(tokens.items)):
        if index <= done or not outermost[index] or not tokens.is_name(index, *_GLOBAL_QUALIFIERS):
            continue
        if not _is_variable(tokens, index) or _templated(tokens, index):
            continue
        declaration = _read(tokens, index, initialised=True)
        done = declaration.end
        words = {tokens.items[at].text for at in range(declaration.start, done) if tokens.is_name(at)}
        if "extern" in words or "__shared__" in words or done >= len(tokens.items):
            continue
        constant = "true" if "__constant__" in words else "false"
        for at in declaration.names:
            name = tokens.items[at].text
            tokens.items[done].after += (
                f" static ::emulator::Variable emulator_v_{name}{{"
                f'(const void*)&{name}, sizeof({name}), "{name}", {tokens.items[at].line}, {constant}}};'
            )


def _is_variable(tokens: Tokens, index: int) -> bool:
    """Whether the declaration at `index` reaches `;`, `=`, `[` or `{` before a parameter list."""
    angle = 0
    stop = min(index + REACH, len(tokens.items))
    while index < stop:
        token = tokens.items[index]
        if token.kind == "directive":
            return False
        if token.kind == "op":
            angle += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
            if token.text == "(":
                if not tokens.is_name(tokens.previous(index - 1), *_NOT_FUNCTIONS):
                    return False
                index = tokens.closing(index)
            elif angle <= 0 and token.text in ";=[{":
                return True
            elif token.text == "}":
                return False
        index += 1
    return False


def _templated(tokens: Tokens, index: int) -> bool:
    before = tokens.previous(_specifier_start(tokens, index) - 1)
    return before >= 0 and tokens.items[before].text in (">", ">>")


def _specifier_start(tokens: Tokens, qualifier: int) -> int:
    """Walks back from a qualifier over the specifiers and alignments that stand before it."""
    start = qualifier
    while start > qualifier - REACH:
        before = tokens.previous(start - 1)
        if tokens.is_name(before, *_SPECIFIERS, *_GLOBAL_QUALIFIERS):
            start = before
        elif tokens.is_op(before, ")") and tokens.partner[before] >= 0:
            owner = tokens.previous(tokens.partner[before] - 1)
            if not tokens.is_name(owner, *_ALIGNERS):
                return start
            start = owner
        else:
            break
    return start


def _read(  # noqa: C901 - one scan over a declarator list, with a branch for each kind of token
    tokens: Tokens, qualifier: int, *, initialised: bool = False
) -> Declaration:
    """The declaration around `qualifier`. Raises RewriteError when it has no name, or an initialiser it may not have."""
    start, index, angle = _specifier_start(tokens, qualifier), qualifier + 1, 0
    names: list[int] = []
    latest, settled = -1, False
    while index < len(tokens.items) and not tokens.is_op(index, ";"):
        if index > qualifier + REACH:
            raise RewriteError(tokens.items[qualifier].line, f"no `;` within {REACH} tokens", reason="syntax_error")
        token = tokens.items[index]
        if token.kind == "name" and angle == 0 and not settled and token.text not in _NOT_FUNCTIONS:
            latest = index
        elif token.kind == "op":
            angle += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0) if not settled else 0
            if token.text in "([{":
                if token.text == "{" and not initialised:
                    raise RewriteError(token.line, "a `__shared__` variable cannot have an initialiser")
                settled = settled or token.text != "("
                index = tokens.closing(index)
            elif token.text == "=":
                if not initialised:
                    raise RewriteError(token.line, "a `__shared__` variable cannot have an initialiser")
                settled = True
            elif token.text == "," and angle == 0:
                names.append(latest)
                latest, settled = -1, False
        index += 1
    names.append(latest)
    if -1 in names:
        raise RewriteError(tokens.items[qualifier].line, "cannot read the name in this declaration")
    return Declaration(start, index, names)


def announce_kernels(tokens: Tokens, outermost: list[bool]) -> None:
    """Announces plain (not templated, not overloaded) kernels, so that `cudaLaunchKernel` can call one by its address."""
    found: dict[str, list[int]] = {}
    for index in range(len(tokens.items)):
        if not outermost[index] or not tokens.is_name(index, "__global__"):
            continue
        name, stop = index + 1, min(index + REACH, len(tokens.items))
        while name < stop and not (
            tokens.is_op(name, "(") and not tokens.is_name(tokens.previous(name - 1), *_NOT_FUNCTIONS)
        ):
            name = tokens.closing(name) + 1 if tokens.is_op(name, "(") else name + 1
        if name >= stop:
            continue
        body = tokens.next(tokens.closing(name) + 1)
        if tokens.is_op(body, "{") and not _is_template(tokens, index):
            found.setdefault(tokens.items[tokens.previous(name - 1)].text, []).append(tokens.closing(body))
    for text, bodies in found.items():
        if len(bodies) == 1:
            tokens.items[bodies[0]].after += f' static ::emulator::Kernel emulator_k_{text}{{&{text}, "{text}"}};'


def _is_template(tokens: Tokens, index: int) -> bool:
    """Whether a `template <…>` head stands before the function whose specifiers include the token at `index`."""
    for _ in range(64):
        index = tokens.previous(index - 1)
        if index < 0 or tokens.items[index].kind == "directive":
            return False
        if tokens.items[index].kind == "op" and tokens.items[index].text in (";", "}", "{"):
            return False
        if tokens.is_name(index, "template"):
            return True
        if tokens.items[index].kind == "op" and tokens.partner[index] >= 0:
            index = min(index, tokens.partner[index])
    return False
