"""The feedback page: all of a graded notebook but the hidden cases, easy to read."""

import re
from html import escape

from nbconvert import HTMLExporter
from nbformat import from_dict
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade

from distlab.instructor.formulas import markdown_to_html
from distlab.instructor.safe_outputs import MARK, text
from distlab.instructor.skeleton import visible

__all__ = ["FeedbackPage", "StudentsView"]

# nbgrader's page is narrow, cuts long lines off, and shrinks pictures until they fit.
_FITTING = """body > .container, #notebook-container { width: auto; max-width: 1200px; }
#notebook-container { padding: 0; }
div.output pre, div.input_area pre { white-space: pre-wrap; overflow-wrap: anywhere; }
div.output_png, div.output_svg, div.output_jpeg { overflow-x: auto; }
div.output_png img, div.output_svg img, div.output_jpeg img {
  max-width: max(100%, 1120px); height: auto; }"""
_TO_GRADE_CELL = re.compile(
    r'<a href="#([^"]+)">Test cell</a> \(Score: ([\d.]+) / ([\d.]+)\)'
)


# A page may load nothing from elsewhere, whatever a submission's text asks for.
_ALONE = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'unsafe-inline' data:\">"
)
_MATHJAX = re.compile(r"<!-- Load mathjax.*?End of mathjax configuration -->", re.S)


class FeedbackPage(HTMLExporter):
    """nbgrader's page, whose index names a step by the heading above its grade cell."""

    def default_filters(self):
        """Yield the filters of the page's template, by name."""
        yield from super().default_filters()
        yield "markdown2html", markdown_to_html

    def from_notebook_node(self, nb, resources=None, **kw):
        """Return the page of a notebook."""
        steps = {each: escape(title) for each, title in _titles(nb).items()}

        def named(link):
            name, earned, points = link.groups()
            described = f"{float(earned):g} of {float(points):g} points"
            return f'<a href="#{name}">{steps.get(name, "Grade cell")}</a>: {described}'

        page, resources = super().from_notebook_node(nb, resources, **kw)
        page = _MATHJAX.sub("", page).replace("<head>", f"<head>{_ALONE}", 1)
        return _TO_GRADE_CELL.sub(named, page), resources


def _titles(nb):
    """Return grade cell -> the heading above it, or else its own name."""
    titles, heading = {}, ""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ +(.+?)[ #]*$", cell.source, re.M)
            heading = headings[-1] if headings else heading
        elif is_grade(cell):
            name = cell.metadata.nbgrader.grade_id
            plain = re.sub(r" *\(\d+ points?\)$", "", heading)  # the index has them
            titles[name] = plain or name.replace("-", " ").replace("_", " ")
            heading = ""
    return titles


class StudentsView(NbGraderPreprocessor):
    """A filter for nbgrader's feedback that removes hidden cases from a notebook.

    A student sees that there was a hidden case, its verdict and its hint. Outputs not
    written by `InSandbox`, which might reveal more, are left out.
    """

    def preprocess(self, nb, resources):
        """Remove the hidden cases from a notebook, and put the student's name on it."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            one = gradebook.find_student(about["student"])
        name = " ".join(filter(None, (one.first_name, one.last_name))) or one.id
        about["notebook"] = f"{name}: {about['notebook']}"
        inlining = resources.setdefault("inlining", {})
        inlining.setdefault("css", []).append(_FITTING)
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell, resources, cell_index):
        """Remove the hidden cases from a cell, and from a grade cell's outputs."""
        shown = visible(cell.source, self.config)
        hides, cell.source = shown != cell.source, shown
        if cell.cell_type == "code" and is_grade(cell):
            values = [o for o in cell.outputs if o.output_type == "execute_result"]
            if hides and not any(MARK in value.metadata for value in values):
                said = "What this cell printed is for your instructor alone.\n"
                cell.outputs = [from_dict(text(said))]
            cell.outputs = [o for output in cell.outputs for o in _seen(output)]
        return cell, resources


def _seen(output):
    """Return [the output as the student sees it], or [] for one that stays hidden."""
    mark = output.get("metadata", {}).get(MARK, {})
    if not mark.get("hidden"):
        return [output]
    return [from_dict(text(mark["seen"]))] if mark["seen"] else []
