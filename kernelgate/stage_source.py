"""The top level of a stage.py, read as text: literals by name with their lines, and functions with their parameters."""

from __future__ import annotations

import ast
from typing import Any

from kernelgate import python_text


class StageFileError(ValueError):
    """A stage.py that cannot be used: the line, and a sentence."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}" if line else what)


class Source:
    """The top level of the file: literals by name with their lines, and functions with their parameters."""

    def __init__(self, text: str) -> None:
        try:
            tree = python_text.module(text)
        except SyntaxError as error:
            raise StageFileError(error.lineno or 0, f"{error.msg}: {(error.text or '').strip()[:80]!r}") from None
        self.summary = " ".join((ast.get_docstring(tree) or "").split())
        self.values: dict[str, ast.expr] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign):
                self._assign(node)

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.values[target.id] = node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for name, value in zip(target.elts, node.value.elts, strict=False):
                if isinstance(name, ast.Name):
                    self.values[name.id] = value

    def parameters(self, name: str) -> list[str]:
        """Of a function, in their order; none of one that is not there."""
        function = self.functions.get(name)
        return [each.arg for each in (*function.args.args, *function.args.kwonlyargs)] if function else []

    def optional(self, name: str) -> set[str]:
        """The parameters of a function that have a default."""
        given = self.functions[name].args
        by_place = given.args[len(given.args) - len(given.defaults) :]
        by_name = [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default]
        return {each.arg for each in (*by_place, *by_name)}

    def line(self, name: str) -> int:
        return self.values[name].lineno if name in self.values else 0

    def literal(self, name: str, default: Any = None) -> Any:
        if name not in self.values:
            return default
        return literal_of(self.values[name], name)


def literal_of(node: ast.expr, name: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        shown = ast.unparse(node)[:80]
        raise StageFileError(
            node.lineno, f"{name} is {shown!r}; a value that can be read without running it is accepted"
        ) from None
