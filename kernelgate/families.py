"""A family of mistakes: one wrong variant with parameters, and the title that says which values fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Number = int | float | str


def filled(form: str, chosen: Sequence[Mapping[str, Number]]) -> str:
    """A title with the values that its parameters have. Raises KeyError for a name that is no parameter."""
    values = {key: list(dict.fromkeys(str(each[key]) for each in chosen)) for key in chosen[0]}
    return form.format_map(
        {key: " or ".join([", ".join(each[:-1]), each[-1]] if each[1:] else each) for key, each in values.items()}
    )
