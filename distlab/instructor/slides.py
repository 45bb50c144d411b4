"""Slides of a lesson: its predictions, pictures and tables, in one page.

executed notebook ─▶ cells of slides ─▶ nbconvert's SlidesExporter, reveal.js inside

A prediction becomes two steps, the question and what was measured; the prose after a
picture becomes the speaker's notes. The page loads nothing from elsewhere.
"""

import json
import re
from base64 import b64decode
from html import escape
from pathlib import Path

from nbconvert import SlidesExporter
from nbformat import NotebookNode, v4

from distlab.errors import DistlabError
from distlab.instructor.formulas import markdown_to_html
from distlab.show.assets import once

__all__ = ["slides_of"]

_WEB = Path(__file__).parent / "web"
_PARTS = ("reveal.css", "slides.css", "reveal.js", "notes.js", "slides.js")
_HEADING = re.compile(r"^(#{1,3}) +(.+?)\s*$", re.M)
_RESULT = re.compile(r'data-guess="([^"]*)" data-result="([^"]*)"')
_KEY = re.compile(r'<form class="distlab-guess[^>]* data-guess="([^"]*)"')
_WAITS = "\nNo guess yet; wanted is "
_TABLE = re.compile(r"(?:^.*\|.*\n?){3,}", re.M)


def slides_of(notebook: NotebookNode) -> str:
    """Return an executed lesson's slides as a page.

    Raises: DistlabError for a notebook that shows no picture, as one that has not run.
    """
    cells, shown = _slides(notebook)
    if not shown:
        raise DistlabError(
            "this notebook shows no picture: it has not run, or is not a lesson."
        )
    exporter = _Exporter()
    title = re.sub(r"[#*`]", "", _HEADING.search(cells[0].source)[2])
    parts = {name: (_WEB / "slides" / name).read_text("utf-8") for name in _PARTS}
    about = {"metadata": {"name": title}, "slides": parts}
    page, _ = exporter.from_notebook_node(v4.new_notebook(cells=cells), about)
    return once(page)


class _Exporter(SlidesExporter):
    """nbconvert's slides, with reveal.js inside the page and formulas as MathML."""

    def __init__(self):
        super().__init__(
            extra_template_basedirs=[str(_WEB)],
            template_name="slides",
            anchor_link_text="",
        )

    def default_filters(self):
        """Yield the filters of the page's template, by name."""
        yield from super().default_filters()
        yield "markdown2html", markdown_to_html


def _slides(notebook):
    """Return the cells of the slides, and how many of them show a picture."""
    measured = _measured(notebook)
    cells, above, title, pictures = [], "", "", 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for level, heading in _HEADING.findall(cell.source):
                above, title = (
                    ("", heading) if len(level) < 3 else (above or title, heading)
                )
            cells += _of_text(cell.source, above, title, first=not cells)
        elif cell.id.startswith("picture"):
            made = _of_picture(cell, above, title)
            pictures += len(made)
            cells += made
        else:
            cells += _of_predictions(cell, measured, above, title)
    return cells, pictures


def _measured(notebook):
    """Return question -> what was measured, with its unit."""
    found = {}
    for page in _pages(notebook.cells):
        for question, coded in _RESULT.findall(page):
            result = json.loads(b64decode(coded))
            value = result["measured"]
            value = f"{value:.3g}" if isinstance(value, float) else f"{value}"
            found[question] = f"{value} {result['unit']}".strip()
    return found


def _pages(cells):
    for cell in cells:
        for output in cell.get("outputs", []):
            yield output.get("data", {}).get("text/html", "")


def _of_text(source, above, title, first):
    """Return the title slide, or the slides of tables; other text becomes notes."""
    if first:
        lines = source.strip().splitlines()
        question = next((line for line in lines[1:] if line.startswith("*")), "")
        return [_slide(f"{lines[0]}\n\n{question}")]
    tables = _TABLE.findall(source)
    notes = _TABLE.sub("", _HEADING.sub("", source)).strip()
    made = [_fitted(above, title, f"\n{table}\n") for table in tables]
    return [*made, *([_cell(notes, "notes")] if notes else [])]


def _of_picture(cell, above, title):
    shown = [
        each for each in cell.get("outputs", []) if "text/html" in each.get("data", {})
    ]
    body = "".join(each["data"]["text/html"] for each in shown)
    if not body:
        return []
    # A picture has its own title; that of a section, "Build", adds nothing.
    return [_fitted(above, title if above else "", re.sub(r"\n\s*\n", "\n", body))]


def _of_predictions(cell, measured, above, title):
    """Return a slide for each question of a cell: the question, then the answer."""
    made = []
    for output in cell.get("outputs", []):
        shown = output.get("data", {})
        question, waits, rest = shown.get("text/plain", "").partition(_WAITS)
        if not waits:
            continue
        choices = re.findall(r"'([^']*)'|\"([^\"]*)\"", rest)
        listed = "".join(f"<li>{escape(a or b)}</li>" for a, b in choices)
        unit = re.search(r"a number in (.+)\.", rest)
        listed = listed or (f"<li>in {escape(unit[1])}</li>" if unit else "")
        body = f'<p class="question">{escape(question)}</p>\n<ul>{listed}</ul>'
        made.append(_slide(f"{_head(above, title)}\n{body}"))
        key = _KEY.search(shown["text/html"])
        if answer := measured.get(key[1]):
            made.append(_cell(f'<p class="answer">{escape(answer)}</p>', "fragment"))
    return made


def _head(above, title):
    line = f'<p class="above">{escape(above)}</p>\n' if above else ""
    inline = re.sub(r"</?p>", "", markdown_to_html(title)).strip()
    return f"{line}<h2>{inline}</h2>"


def _fitted(above, title, body):
    """Return a slide that is scaled to fit; HTML in it has no blank line."""
    return _slide(f'{_head(above, title)}\n<div class="fits">\n{body}\n</div>')


def _slide(source):
    return _cell(source, "slide")


def _cell(source, kind):
    return v4.new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}})
