"""What a student sees of a marked notebook: everything but the hidden cases."""

from nbformat import from_dict
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade

from distlab.instructor.outputs import MARK, text
from distlab.instructor.skeleton import hides_between, visible

__all__ = ["StudentsView"]

# A line can be long, and a picture is wide. nbgrader's page would cut both off.
_FITTING = """div.output_stdout pre { white-space: pre-wrap; }
div.output_png img, div.output_svg img { max-width: 100%; height: auto; }"""


class StudentsView(NbGraderPreprocessor):
    """For nbgrader's feedback: cuts hidden cases out of sources and outputs.

    A student sees that there was a hidden case, its verdict and its hint. What was not
    written by `InSandbox`, and might say more, is left out.
    """

    def preprocess(self, nb, resources):
        """Cut a notebook."""
        self._delimiters = hides_between(self.config)
        inlining = resources.setdefault("inlining", {})
        inlining.setdefault("css", []).append(_FITTING)
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell, resources, cell_index):
        """Cut a cell; ordinary ones never knew of a hidden case."""
        shown = visible(cell.source, *self._delimiters)
        hides, cell.source = shown != cell.source, shown
        if cell.cell_type == "code" and is_grade(cell):
            if hides and not any(_is_ours(output) for output in cell.outputs):
                said = "What this cell printed is for your instructor alone.\n"
                cell.outputs = [from_dict(text(said))]
            cell.outputs = [o for output in cell.outputs for o in _seen(output)]
        return cell, resources


def _is_ours(output):
    return output.output_type == "execute_result" and MARK in output.metadata


def _seen(output):
    """Return an output as the student sees it: as it is, in other words, or not."""
    mark = output.get("metadata", {}).get(MARK, {})
    if not mark.get("hidden"):
        return [output]
    return [from_dict(text(mark["seen"]))] if mark["seen"] else []
