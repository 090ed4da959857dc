"""Imports from texts. It stands in front of every program that runs in a sandbox, and can be imported there.

A sandboxed program is one text: nothing outside of it can be read there. What it is made of, and what was submitted, comes as
texts too, and nothing that lies beside them can stand in for a module of that name.
"""

import importlib.abc
import importlib.util
import linecache
import sys


class Sources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules by name, each from its text; tracebacks, and Triton, read the lines back through `linecache`."""

    def __init__(self, texts):
        self.texts = texts

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002 - the protocol of importers
        return importlib.util.spec_from_loader(name, self) if name in self.texts else None

    def exec_module(self, module):
        text = self.texts[module.__name__]
        filename = f"{module.__name__}.py"
        module.__file__ = filename
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - this is what the jail is for


def install(texts):
    """From now on these modules come from these texts, before any that is installed."""
    sys.meta_path.insert(0, Sources(texts))
    sys.dont_write_bytecode = True
