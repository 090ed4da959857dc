"""Formulas in words: the accessible name of what holds only a formula.

A `math` element takes its name from its author and never from its content (WAI-ARIA 1.2, role math), so a table's header
cell with a formula alone has no name at all: its column is announced as "blank".
"""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ET

_SIGNS = {
    "−": "minus", "-": "minus", "+": "plus", "=": "equals", "·": "times", "×": "times", "/": "over", "∞": "infinity",
    "∑": "sum", "∏": "product", "∈": "in", "≤": "at most", "≥": "at least", "<": "less than", ">": "greater than",
    "≠": "not equal to", "≈": "about", "←": "becomes", "→": "to", "∂": "partial", "√": "square root of",
    "′": "prime", "″": "double prime", "|": "bar", "^": "hat", "~": "tilde", "¯": "bar", "⊤": "transposed", "!": "factorial",
}  # fmt: skip
_SILENT = frozenset("(){}[],;⟨⟩") | {"\u2061", "\u2062", "\u200b"}


def spoken(mathml: str) -> str:
    """A formula's MathML as words, e.g. "m prime" or "e to the s sub j minus m". Raises ET.ParseError for what is no XML."""
    return " ".join(_words(ET.fromstring(mathml)).split())  # noqa: S314 - our own serializer wrote it


def _words(node: ET.Element) -> str:
    tag = node.tag.rsplit("}", 1)[-1]
    parts = [_words(child) for child in node]
    match tag, parts:
        case (("msub" | "munder"), [base, below]):
            return f"{base} sub {below}"
        case (("msup" | "mover"), [base, above]):
            return _raised(base, above)
        case (("msubsup" | "munderover"), [base, below, above]):
            return _raised(f"{base} sub {below}", above)
        case "mfrac", [top, bottom]:
            return f"{top} over {bottom}"
        case "msqrt", _:
            return f"square root of {' '.join(parts)}"
    return " ".join([_text(node.text or ""), *parts])


def _raised(base: str, above: str) -> str:
    if above.strip() in ("prime", "double prime", "hat", "tilde", "bar", "transposed"):
        return f"{base} {above}"
    return f"{base} to the {above}"


def _text(text: str) -> str:
    """One token in words; names stay as they are written."""
    token = text.strip()
    return _SIGNS.get(token) or "".join(_letter(letter) for letter in token if letter not in _SILENT)


def _letter(letter: str) -> str:
    """`α` is "alpha", `ℓ` is "l"; what has no name of its own stays as it is."""
    name = unicodedata.name(letter, "")
    if name.startswith("GREEK") and " LETTER " in name:
        return f" {name.rsplit(' LETTER ', 1)[1].lower()} "
    return f" {_SIGNS[letter]} " if letter in _SIGNS and not letter.isascii() else unicodedata.normalize("NFKC", letter)
