"""Puts together the text of a program that runs in a sandbox: nothing outside of its text can be read there."""

from __future__ import annotations

from functools import cache

from kernelgate.settings import settings

_EVERYWHERE = ("session/imports", "session/frames", "session/errors")


@cache
def program(main: str, *modules: str) -> str:
    """The text of `main`, in front of which stands what makes `modules` importable as `sandboxed_<name>`.

    main, modules: files of our own below `sandboxed/`, without their suffix.
    """
    texts = {f"sandboxed_{name.rpartition('/')[2]}": _text(name) for name in (*_EVERYWHERE, *modules)}
    return f"{texts['sandboxed_imports']}\ninstall({texts!r})\n{_text(main)}"


def _text(name: str) -> str:
    return (settings().sandboxed_dir / f"{name}.py").read_text()
