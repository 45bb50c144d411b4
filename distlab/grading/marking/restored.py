"""Makes of whatever was handed in the notebook that was handed out, with answers."""

import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import NbGraderPreprocessor

from distlab.grading.marking.gradebook import grade_id_of, release_of

__all__ = ["MOST_CELLS", "Restored", "instructors_notebook"]

MOST_CELLS = 2000

_KINDS = ("code", "markdown", "raw")


class Restored(NbGraderPreprocessor):
    """Puts cells back as the gradebook knows them, before nbgrader looks at any.

    What a cell is for, what it is worth and what a locked one says are the gradebook's;
    only the answers are the submission's. Missing cells return, moved ones go back to
    their place, with the cells that follow them; of two with one name the last counts.
    Each change is in the log.
    """

    def preprocess(self, nb, resources):
        """Restore a notebook."""
        self._where = "{student}, {notebook}".format(**resources["nbgrader"])
        if len(nb.cells) > MOST_CELLS:  # each costs every tool that follows its time
            raise ValueError(f"{self._where}: more than {MOST_CELLS:,} cells")
        _clean(nb)
        release = release_of(resources, instructors_notebook(self, resources))
        self._forget_the_rest(nb, release)
        for cell in nb.cells:
            if name := grade_id_of(cell):
                self._restore(cell, release.cells[name])
        self._put_back(nb, release)
        if release.ordered:
            nb.cells = self._sorted(nb.cells, release.order)
        return nb, resources

    def _tell(self, words, *args):
        self.log.warning("%s: " + words, self._where, *args)

    def _forget_the_rest(self, nb, release):
        """Take the claim from cells that nobody handed out, or that come twice."""
        seen = set()
        for cell in reversed(nb.cells):
            name = grade_id_of(cell)
            if name is None:
                continue
            if name in seen:
                self._tell("cell %r is there twice; the last counts", name)
            elif name not in release.cells:
                self._tell("cell %r is not one of this exercise", name)
            else:
                seen.add(name)
                continue
            del cell.metadata["nbgrader"]

    def _restore(self, cell, known):
        told = cell.metadata["nbgrader"]
        for word in ("points", "locked", "grade", "solution", "task"):
            if word in told and told[word] != known.metadata().get(word, told[word]):
                self._tell("%s of cell %r was %r", word, known.name, told[word])
        if cell.cell_type != known.kind:
            self._tell("cell %r was of type %r", known.name, cell.cell_type)
            _turn(cell, known.kind)
        if _fixed(known) and cell.source != known.source:
            if known.source.split() != cell.source.split() and not known.marked:
                self._tell("locked cell %r was changed", known.name)
            cell.source = known.source
        cell.metadata["nbgrader"] = nbformat.from_dict(known.metadata())

    def _put_back(self, nb, release):
        """Add what is fixed and missing after the cell that comes before it."""
        there = {grade_id_of(cell) for cell in nb.cells}
        before = None
        for name in release.order:
            known = release.cells[name]
            if name not in there and (_fixed(known) or known.task):
                self._tell("cell %r is missing, and put back", name)
                make = new_code_cell if known.kind == "code" else new_markdown_cell
                cell = make(known.source)
                if nb.nbformat_minor < 5:
                    del cell["id"]
                cell.metadata["nbgrader"] = nbformat.from_dict(known.metadata())
                nb.cells.insert(_after(nb.cells, before), cell)
                there.add(name)
            elif name not in there:
                self._tell("cell %r is missing", name)
            before = name if name in there else before

    def _sorted(self, cells, order):
        """Return the cells in the order handed out; others stay behind their cell."""
        blocks = [[]]
        for cell in cells:
            if grade_id_of(cell):
                blocks.append([])
            blocks[-1].append(cell)
        first, *known = blocks
        right = sorted(known, key=lambda block: order.index(grade_id_of(block[0])))
        if right != known:
            self._tell("cells are in another order, and put back into theirs")
        return [cell for block in (first, *right) for cell in block]


def _clean(nb):
    """Take everything from a notebook but its cells' text and their claims.

    Whatever else is in the file is not asked for, and need not be what it should be.
    """
    nb.metadata, names = nbformat.from_dict({}), set()
    for cell in nb.cells:
        claim = grade_id_of(cell)
        told = {"nbgrader": cell.metadata["nbgrader"]} if claim else {}
        source = str(cell.get("source", "")).encode(errors="replace").decode()
        kind = cell.get("cell_type")
        kind = kind if kind in _KINDS else "raw"
        kept = {"cell_type": kind, "metadata": told, "source": source}
        if "id" in cell:
            sound = re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(cell.id))
            fits = sound and cell.id not in names
            kept["id"] = cell.id if fits else new_code_cell().id
            names.add(kept["id"])
        if kind == "code":
            kept |= {"outputs": [], "execution_count": None}
        cell.clear()
        cell.update(nbformat.from_dict(kept))


def _fixed(known):
    """Return whether a cell's source is the gradebook's."""
    return known.locked or known.marked


def _after(cells, name):
    names = [grade_id_of(cell) for cell in cells]
    return names.index(name) + 1 if name in names else 0


def _turn(cell, kind):
    """Make a cell one of another type."""
    cell.cell_type = kind
    if kind == "code":
        cell.outputs, cell.execution_count = [], None
        cell.pop("attachments", None)
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def instructors_notebook(preprocessor, resources: dict):
    """Return the source notebook of the one that is converted, or None."""
    converter = getattr(preprocessor.parent, "parent", None)
    course = getattr(converter, "coursedir", None)
    if course is None:
        return None
    where = resources["nbgrader"]
    folder = course.format_path(course.source_directory, ".", where["assignment"])
    path = Path(folder, f"{where['notebook']}.ipynb")
    return nbformat.read(path, as_version=4) if path.exists() else None
