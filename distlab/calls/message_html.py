"""Messages as HTML that wraps between words, and the formulas in their text.

JupyterLab breaks plain text in the middle of words, and typesets formulas in HTML. A
formula is written `$2(n-1)/n · S$`: it is as readable without the dollars.
"""

import re
from html import escape

__all__ = ["lines_html", "plain", "typeset"]

_FORMULA = re.compile(r"\$([^$]+)\$")
_TEX = {"·": r"\cdot ", "⌈": r"\lceil ", "⌉": r"\rceil ", "log₂": r"\log_2 "}
_TEX |= {"√": r"\sqrt ", "≤": r"\le ", "κ": r"\kappa ", "α": r"\alpha "}
_TO_TEX = re.compile("|".join(_TEX))
_WRAPS = "margin:0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"


def plain(text: str) -> str:
    """Return a text with its formulas as plain text."""
    return _FORMULA.sub(r"\1", text)


def typeset(text: str) -> str:
    """Return a text as HTML, with its formulas in TeX for the notebook's MathJax."""

    def in_tex(formula):
        return _TO_TEX.sub(lambda sign: _TEX[sign[0]], formula[0])

    return _FORMULA.sub(in_tex, escape(text))


def lines_html(text: str) -> str:
    """Return lines as HTML; an indented line stays so where it wraps."""
    shown = []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        indent = f"{len(line) - len(words)}ch"
        style = f"{_WRAPS};padding-left:{indent}"
        shown.append(f'<pre style="{style}">{escape(words) or "&nbsp;"}</pre>')
    return "".join(shown)
