"""A lesson's Markdown as HTML: formulas typeset, code coloured, pictures from the stage's own `figures/` only.

HTML in a lesson is text, not markup: whoever drops a stage folder writes the lesson, and the page's policy stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin

from api.pages.text.figures import figure
from api.pages.text.formula import FormulaError, mathml
from api.pages.text.highlighting import highlight
from api.pages.text.spoken import spoken

_FIGURE = re.compile(r"figures/([a-z0-9_]+\.svg)")


@dataclass(frozen=True)
class Lesson:
    """A lesson as HTML, and its second-level headings as (anchor, text) for a table of contents."""

    html: Markup
    headings: tuple[tuple[str, str], ...]


@lru_cache(maxsize=64)
def render_lesson(stage: str, text: str, *, top: int = 3) -> Lesson:
    """The lesson of `stage`, its headings from level `top` down, below the page's own.

    A formula that cannot be typeset is shown as its source, marked, never as an error page.
    """
    parser = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable("table")
    dollarmath_plugin(parser, allow_space=False, double_inline=True, renderer=_formula)
    for kind, rule in _rules(stage).items():
        parser.add_render_rule(kind, rule)
    tokens = parser.parse(text)
    if tokens and tokens[0].tag == "h1":  # the page has the stage's title already
        del tokens[:3]
    headings = tuple(_shift_headings(tokens, top))
    _name_header_cells(tokens)
    parts = [parser.renderer.render(part, parser.options, {}) for part in _parts(tokens, f"h{top}")]
    return Lesson(Markup("".join(f'<div class="part">{part}</div>\n' for part in parts)), headings)  # noqa: S704 - html is off


def _parts(tokens: Sequence[Token], heading: str) -> list[list[Token]]:
    """The text before the first heading of that level, and from each to the next: what is far below is not laid out yet."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.type == "heading_open" and token.tag == heading and token.level == 0:
            parts.append([])
        parts[-1].append(token)
    return [part for part in parts if part]


def _formula(latex: str, options: dict[str, bool]) -> str:
    block = options.get("display_mode", False)
    try:
        typeset = mathml(latex, block=block)
    except FormulaError:
        return Markup('<code class="formula-error" title="This formula could not be typeset">{}</code>').format(latex)
    if not block:
        return typeset
    return Markup('<div class="formula" role="group" aria-label="Formula" tabindex="0">{}</div>').format(typeset)


def _shift_headings(tokens: Sequence[Token], top: int) -> list[tuple[str, str]]:
    """Second-level headings stand at `top`, and all carry anchors."""
    found: list[tuple[str, str]] = []
    for index, token in enumerate(tokens):
        if token.type not in ("heading_open", "heading_close"):
            continue
        level = min(max(int(token.tag[1]) + top - 2, top), 6)
        token.tag = f"h{level}"
        if token.type == "heading_open":
            title = tokens[index + 1].content.replace("`", "").replace("$", "")
            anchor = _anchor(title, {known for known, _ in found})
            token.attrSet("id", anchor)
            if level == top:
                found.append((anchor, title))
    return found


def _name_header_cells(tokens: Sequence[Token]) -> None:
    """Marks the formulas of header cells: only there must one carry a name, which is said before each cell below it."""
    for cell, content in pairwise(tokens):
        if cell.type == "th_open":
            cell.attrSet("scope", "col")
            for child in content.children or []:
                child.type = "math_named" if child.type == "math_inline" else child.type


def _anchor(text: str, taken: set[str]) -> str:
    base = "lesson-" + ("-".join(re.findall(r"[a-z0-9]+", text.lower()))[:60] or "part")
    return next(name for name in (base, *(f"{base}-{n}" for n in range(2, 1000))) if name not in taken)


Rule = Callable[[RendererHTML, Sequence[Token], int, OptionsDict, EnvType], str]


def _rules(stage: str) -> dict[str, Rule]:
    """What differs from plain Markdown; the parser binds its renderer as the first argument of each."""

    def image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[index]
        wanted = _FIGURE.fullmatch(str(token.attrGet("src") or ""))
        alt = renderer.renderInlineAsText(token.children or [], options, env)
        if wanted is None:
            return Markup('<em class="formula-error">Picture “{}” is not in this stage’s figures/</em>').format(alt)
        source = f"/stages/{stage}/files/figures/{wanted[1]}"
        return Markup('<img class="figure" src="{}" alt="{}" loading="lazy">').format(source, alt)

    def math_named(_: RendererHTML, tokens: Sequence[Token], index: int, *__: object) -> str:
        typeset = _formula(tokens[index].content, {})
        if not typeset.startswith("<math"):
            return typeset
        return Markup('<math aria-label="{}"').format(spoken(typeset)) + Markup(typeset[len("<math") :])  # noqa: S704

    def fence(_: RendererHTML, tokens: Sequence[Token], index: int, *__: object) -> str:
        words = tokens[index].info.split() or ["text"]
        if words[0] == "figure":
            return figure(words[-1], tokens[index].content)
        coloured = highlight(tokens[index].content, words[0])
        return Markup('<pre class="code source" tabindex="0"><code>{}</code></pre>').format(coloured)

    def table_open(*_: object) -> str:
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table class="table">'

    def table_close(*_: object) -> str:
        return "</table></div>"

    return {
        "image": image,
        "math_named": math_named,
        "fence": fence,
        "table_open": table_open,
        "table_close": table_close,
    }
