"""Messages as HTML that wraps between words, and the formulas in their text.

JupyterLab breaks plain text in the middle of words, and typesets formulas in HTML. A
formula is written `$2(n-1)/n · S$`: it is as readable without the dollars.
"""

import re
from html import escape
from itertools import groupby

__all__ = ["FORMULA", "lines_html", "plain", "typeset"]

_WRITTEN = re.compile(r"\$([^$]+)\$")
_WRAPS = "margin:0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
_SCROLLS = "margin:0;white-space:pre;overflow-x:auto"
_COLUMNS = re.compile(r"\S {2,}\S|^ {16,}")
FORMULA = '<span class="distlab-formula">${}$</span>'  # for the MathJax of JupyterLab


def plain(text: str) -> str:
    """Return a text with its formulas as plain text."""
    return _WRITTEN.sub(r"\1", text)


def typeset(text: str, form: str = FORMULA) -> str:
    """Return a text as HTML; form: what stands around the TeX of a formula."""

    def in_tex(written):
        return form.format(written[1].replace("log₂", r"\log_2"))

    return _WRITTEN.sub(in_tex, escape(text))


def lines_html(text: str) -> str:
    """Return lines as HTML: prose wraps within its indent, and a table never wraps."""
    shown = []
    for in_columns, lines in groupby(
        text.split("\n"), lambda line: bool(_COLUMNS.search(line))
    ):
        for words in ["\n".join(lines)] if in_columns else lines:
            indent = 0 if in_columns else len(words) - len(words.lstrip(" "))
            style = _SCROLLS if in_columns else f"{_WRAPS};padding-left:{indent}ch"
            inside = escape(words[indent:]) or "&nbsp;"
            shown.append(f'<pre style="{style}">{inside}</pre>')
    return "".join(shown)
