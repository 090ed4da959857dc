"""What the arrays of a stage are filled with: distributions by name, for `inputs` in a stage.py and for case lines.

A generator is called with a numpy Generator, the shape, and the case's sizes and numbers by name; it returns float64 or
whole numbers of that shape. Any function of a stage's own may stand where these do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from kernelgate import python_text

Shape = tuple[int, ...]
Make = Callable[[Generator, Shape, Mapping[str, Any]], NDArray[Any]]


@dataclass(frozen=True)
class Distribution:
    """A generator with the text it was written as: what case lines and titles say."""

    text: str
    make: Make

    def __call__(self, rng: Generator, shape: Shape, values: Mapping[str, Any]) -> NDArray[Any]:
        return self.make(rng, shape, values)


@dataclass(frozen=True)
class Mixture:
    """One of several, drawn for each drawn case and each timed call; a listed case has the first unless it says another."""

    parts: tuple[Distribution, ...]


def _written(name: str, *arguments: float) -> str:
    return f"{name}({', '.join(f'{each:g}' for each in arguments)})"


def normal(scale: float = 1.0, mean: float = 0.0) -> Distribution:
    """Normal values of a standard deviation and a mean."""
    text = _written("normal", *((scale, mean) if mean else (scale,) if scale != 1.0 else ()))
    return Distribution(text, lambda rng, shape, _: mean + scale * rng.standard_normal(shape))


def uniform(low: float = 0.0, high: float = 1.0) -> Distribution:
    """Values between low and high, all as likely."""
    return Distribution(_written("uniform", low, high), lambda rng, shape, _: rng.uniform(low, high, shape))


def integers(low: int, high: int) -> Distribution:
    """Whole numbers from low to high, both included."""
    return Distribution(
        _written("integers", low, high), lambda rng, shape, _: rng.integers(low, high, shape, endpoint=True)
    )


def constant(value: float) -> Distribution:
    """One value throughout: rows of ties."""
    return Distribution(_written("constant", value), lambda _, shape, __: np.full(shape, value))


def outliers(scale: float = 100.0, share: float = 0.01) -> Distribution:
    """Standard normal values, a share of which is `scale` times as large."""

    def make(rng: Generator, shape: Shape, _: Mapping[str, Any]) -> NDArray[Any]:
        return np.asarray(rng.standard_normal(shape) * np.where(rng.random(shape) < share, scale, 1.0))

    return Distribution(_written("outliers", scale, share), make)


def permutation() -> Distribution:
    """The numbers from 0 on in a drawn order, along the last axis."""

    def make(rng: Generator, shape: Shape, _: Mapping[str, Any]) -> NDArray[Any]:
        return rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)

    return Distribution("permutation()", make)


def mixture(*parts: Distribution | Make) -> Mixture:
    """One of `parts`; a function of the stage's own is known by its name."""
    return Mixture(tuple(named(part) for part in parts))


def named(part: Distribution | Make) -> Distribution:
    return part if isinstance(part, Distribution) else Distribution(getattr(part, "__name__", "values"), part)


BY_NAME: dict[str, Callable[..., Distribution]] = {
    each.__name__: each for each in (normal, uniform, integers, constant, outliers, permutation)
}


def written(text: str) -> Distribution:
    """The distribution that a text such as `normal(1e-3)` names. Raises ValueError, which says what is accepted."""
    accepted = f"accepted are {', '.join(f'{name}(…)' for name in BY_NAME)} with numbers"
    try:
        call = python_text.expression(text)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
            return BY_NAME[call.func.id](*(ast.literal_eval(each) for each in call.args))
    except (SyntaxError, KeyError, ValueError, TypeError):
        pass
    raise ValueError(f"{text[:80]!r} names no distribution; {accepted}")
