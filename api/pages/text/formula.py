"""LaTeX formulas as MathML that a browser typesets by itself: no script, no font, no picture.

The converter leaves character references in its text and passes `\\style` and `\\href` through as attributes, so its tree is
walked here: text is unescaped once and escaped by the serializer, and only attributes that set nothing but type remain.
"""

from __future__ import annotations

import html
import xml.etree.ElementTree as ET
from functools import lru_cache

from latex2mathml.converter import convert_to_element
from markupsafe import Markup

_ATTRIBUTES = frozenset(
    {
        *(
            "accent",
            "accentunder",
            "columnspacing",
            "display",
            "displaystyle",
            "fence",
            "form",
            "linethickness",
            "lspace",
        ),
        *("mathsize", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rowspacing", "rspace"),
        *("scriptlevel", "separator", "stretchy", "width", "xmlns"),
    }
)
_LIMITS = frozenset({"max", "min", "sup", "inf", "lim", "argmax", "argmin"})
_FUNCTIONS = frozenset({"log", "ln", "exp", "sqrt", "sin", "cos", "tanh"})
_ALIASES = {"aligned": "align*", "gathered": "gather*", "split": "align*"}


class FormulaError(ValueError):
    """A formula that cannot be typeset; the text quotes it."""


@lru_cache(maxsize=1024)
def mathml(latex: str, *, block: bool) -> Markup:
    """The formula as one `<math>` element. Raises FormulaError when it is not LaTeX that the converter knows."""
    for alias, known in _ALIASES.items():
        latex = latex.replace(f"{{{alias}}}", f"{{{known}}}")
    try:
        root = convert_to_element(latex.strip(), display="block" if block else "inline")
    except Exception as error:  # the converter raises a dozen unrelated classes on malformed input
        raise FormulaError(f"formula {latex[:200]!r}: {type(error).__name__} {error}".rstrip()) from error
    _clean(root)
    if block:
        _place_limits(root)
    _spell(root)
    _join_letters(root)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - the serializer escaped every text


def _clean(element: ET.Element) -> None:
    for node in element.iter():
        align = node.attrib.get("columnalign")
        node.attrib = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
        if align in ("left", "right"):  # MathML Core has no columnalign; the style sheet has these classes
            node.set("class", f"to-{align}")
        if node.text:
            node.text = html.unescape(node.text)


def _place_limits(element: ET.Element) -> None:
    """Puts what stands below `max` under it: in a displayed formula a subscript there reads as an index."""
    for node in element.iter():
        if node.tag in ("msub", "msubsup") and len(node) and (node[0].text or "") in _LIMITS:
            node.tag = {"msub": "munder", "msubsup": "munderover"}[node.tag]


def _spell(element: ET.Element) -> None:
    """Primes stand on the line, where fonts draw them raised already; a named function keeps off its argument."""
    for node in element.iter():
        if node.tag == "msup" and len(node) == 2 and set(node[1].text or "-") <= {"′", "″"}:
            node.tag = "mrow"
            node[1].tag = "mo"
            node[1].attrib.update(lspace="0", rspace="0")
        if node.tag in ("mi", "mo") and node.text in _FUNCTIONS:
            node.tag = "mo"
            node.attrib.update(lspace="0", rspace="0.1667em")


def _join_letters(element: ET.Element) -> None:
    """One element for a word that the converter spelled letter by letter: letters of a name stand close."""
    for node in list(element.iter()):
        variants = {child.get("mathvariant") for child in node}
        letters = [child.text or "" for child in node]
        if len(node) < 2 or any(child.tag != "mi" for child in node) or not variants <= {"normal", "monospace"}:
            continue
        if len(variants) == 1:
            for child in list(node):
                node.remove(child)
            word = ET.SubElement(node, "mtext")
            word.text = "".join(letters)
            if variants == {"monospace"}:
                word.set("class", "tt")
