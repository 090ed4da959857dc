"""Formulas in words, as a screen reader says them."""

from __future__ import annotations

import pytest

from api.pages.text.formula import mathml
from api.pages.text.spoken import spoken


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"\ell", "l"),
        (r"m'", "m prime"),
        (r"\alpha_i", "alpha sub i"),
        (r"e^{s_j - m'}", "e to the s sub j minus m prime"),
        (r"\frac{u}{\ell}", "u over l"),
        (r"-\infty", "minus infinity"),
        (r"\sqrt{D}", "square root of D"),
        (r"\hat{x}", "x hat"),
        (r"\sum_j^n x_j", "sum sub j to the n x sub j"),
        (r"\mathrm{row\_max}", "row_max"),
    ],
)
def test_a_formula_in_words(latex: str, words: str) -> None:
    assert spoken(mathml(latex, block=False)) == words
