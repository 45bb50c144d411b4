"""Formulas of Markdown as MathML, which needs no script and no network."""

from html import escape

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

__all__ = ["markdown_to_html"]


class _WithFormulas(IPythonRenderer):
    """A renderer of text whose formulas are MathML."""

    def inline_math(self, body):
        return _formula(body, "inline")

    def block_math(self, body):
        return _formula(body, "block")


def markdown_to_html(source: str) -> str:
    """Return Markdown as HTML, nbconvert's filter `markdown2html`."""
    return MarkdownWithMath(renderer=_WithFormulas(escape=False)).render(source)


def _formula(body, display):
    try:
        return convert(body, display=display)
    except Exception:  # a student's text can provoke any
        return f"<code>{escape(body)}</code>"
