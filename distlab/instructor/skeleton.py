"""The exercise as the instructor wrote it, with a submission's answers filled in.

    instructor's cells     imports  [solution]  check  [solution]  check
    submission             imports   answer   own cell  answer     check (edited)
    graded                 imports   answer   own cell  check      answer  check

Only solution cells, and cells of the learner's own, come from a submission; everything
else is the instructor's. So it does not matter which cells were deleted, duplicated,
moved or edited, or what their metadata claims; it only adds notes.
"""

import ast
import copy
import re
from collections import Counter
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import (
    ClearHiddenTests,
    ClearSolutions,
    NbGraderPreprocessor,
)

from distlab.checks.kit.contracts import (
    contract_in,
    contract_of,
    published_cells,
    with_contract,
)
from distlab.errors import DistlabError

__all__ = ["Filled", "filled", "grade_id_of", "source_notebook", "visible"]

MOST_CELLS = 1000
_LISTED = 3
_NOT_OURS = (
    "This text was in the notebook that was submitted; it is not this exercise's:"
)


class Filled(NbGraderPreprocessor):
    """The first preprocessor of nbgrader's Autograde, which applies `filled`."""

    def preprocess(self, nb, resources):
        """Return the exercise with the answers of a submission."""
        source, folder = source_notebook(self, resources)
        if source is None:
            return nb, resources
        nb, notes = filled(nb, source)
        copied = _copied(nb, source, folder)
        notes += copied
        facts = {"notes": notes, "untouched": untouched(nb, source, self.config)}
        facts |= {"copied": bool(copied)}
        nb.metadata["distlab"] = facts
        for note in notes:
            self.log.warning("%s: %s", resources["nbgrader"]["student"], note)
        return nb, resources


def source_notebook(preprocessor, resources: dict):
    """Return the instructor's version of the converted notebook, and its folder.

    The notebook is None if there is none.
    """
    converter = getattr(preprocessor.parent, "parent", None)
    course = getattr(converter, "coursedir", None)
    if course is None:
        return None, None
    where = resources["nbgrader"]
    folder = course.format_path(course.source_directory, ".", where["assignment"])
    path = Path(folder, f"{where['notebook']}.ipynb")
    book = nbformat.read(path, as_version=4) if path.exists() else None
    return book, path.resolve().parent


def grade_id_of(cell) -> str | None:
    """Return nbgrader's id of a cell, or None."""
    described = cell.get("metadata") if isinstance(cell, dict) else None
    described = described.get("nbgrader") if isinstance(described, dict) else None
    name = described.get("grade_id") if isinstance(described, dict) else None
    return name if isinstance(name, str) else None


def filled(submitted, source) -> tuple:
    """Return the source with a submission's answers and own cells, and notes.

    submitted: a notebook as it was read, whose fields may hold anything.
    """
    cells = [cell for cell in submitted.get("cells", []) if isinstance(cell, dict)]
    notes = _kernel_notes(submitted, source)
    if len(cells) > MOST_CELLS:
        notes.append(f"{len(cells):,} cells, of which {MOST_CELLS:,} are read")
        cells = cells[:MOST_CELLS]
    known = {grade_id_of(cell): cell for cell in source.cells if grade_id_of(cell)}
    names = [grade_id_of(cell) for cell in cells]
    if not any(names):  # some tools keep no metadata that they do not know
        names = [cell.get("id") if cell.get("id") in known else None for cell in cells]
        if any(names):
            notes.append("nbgrader's metadata is lost, cells recognized by their ids")
    answers, own, after = {}, {None: []}, None
    given = {" ".join(_text(cell).split()): cell.get("id") for cell in source.cells}
    texts = {}  # the source's, by their ids and their first lines
    for cell in source.cells:
        if not _is_code(cell) and grade_id_of(cell) is None:
            texts |= dict.fromkeys((cell.get("id"), _first_line(cell)), cell)
    for name, cell in zip(names, cells, strict=True):
        words = " ".join(_text(cell).split())
        if name in known:
            answers[name], after = cell, known[name].get("id")
        elif words in given and not _is_code(cell):
            after = given[words]
        elif not _is_code(cell) and (old := _altered(cell, texts)):
            after = old.get("id")
            if said := _lines_not_in(old, cell):
                own.setdefault(after, []).append(new_markdown_cell(said))
        else:
            new = new_code_cell if _is_code(cell) else new_markdown_cell
            own.setdefault(after, []).append(new(_text(cell)))
    made = copy.deepcopy(source)
    made.cells = list(own[None])
    for cell in copy.deepcopy(source.cells):
        name = grade_id_of(cell)
        if name is not None and cell.metadata["nbgrader"]["solution"]:
            cell.source = _text(answers.get(name, {}))
        if name is not None or not _is_code(cell):  # the rest is in `own`, as it is now
            made.cells.append(cell)
        made.cells += own.get(cell.get("id"), [])
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return made, notes + _odd(names, answers, known)


def _first_line(cell):
    return _text(cell).strip().split("\n")[0].strip()


def _altered(cell, texts):
    """Return the source's text of which a text is an altered copy, or None."""
    found = texts.get(cell.get("id")) if cell.get("id") else None
    return found or (texts.get(_first_line(cell)) if _first_line(cell) else None)


def _lines_not_in(old, cell):
    """Return the lines that only an altered text has, as a quotation; "" if none."""
    known = {line.strip() for line in _text(old).splitlines()}
    lines = [line.strip() for line in _text(cell).splitlines()]
    quoted = "\n>\n".join(f"> {line}" for line in lines if line not in {*known, ""})
    return quoted and f"{_NOT_OURS}\n\n{quoted}"


def _copied(answered, source, folder):
    """Return [a note] if all answers are the solution of another contract, else []."""
    released, answers = contract_in(source.cells), _trees(answered.cells)
    if not released or answers in (None, _trees(source.cells)):
        return []
    try:
        published = published_cells(folder)
        choices = contract_of(published)
        first, *others = choices.all()
        made = [(each, with_contract(folder, published, each)) for each in others]
    except DistlabError:  # the published one is lost or edited, and so are the others
        return []
    for contract, cells in [(first, published), *made]:
        if _trees(cells) == answers:
            is_published = contract == first
            whose = "published solution" if is_published else "solution of a variant"
            clauses = choices.clauses(contract, released).replace("; ", " and ")
            return [f"is the {whose} that answers another contract: {clauses}"]
    return []


def _trees(cells):
    """Return the syntax trees of the solution cells, without docstrings."""
    trees = []
    for cell in cells:
        if grade_id_of(cell) and cell["metadata"]["nbgrader"]["solution"]:
            try:
                tree = ast.parse(_text(cell))
                for node in ast.walk(tree):
                    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                        del node.body[0]
                trees.append(ast.dump(tree))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
    return trees


def untouched(answered, source, config=None) -> bool:
    """Return True if every answer is blank, or the stub that was released."""
    clear = ClearSolutions(config=config).preprocess_cell
    stubs = {}
    for cell in copy.deepcopy(source.cells):
        if name := grade_id_of(cell):
            stubs[name] = clear(cell, {"language": "python"}, 0)[0].source.split()
    return all(
        cell.source.split() in ([], stubs[grade_id_of(cell)])
        for cell in answered.cells
        if grade_id_of(cell) and cell.metadata["nbgrader"]["solution"]
    )


def _text(cell):
    source = cell.get("source", "")
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return source.encode("utf-8", "replace").decode()  # no half of a surrogate pair


def _is_code(cell):
    return cell.get("cell_type") == "code"


def _odd(names, answers, known):
    """Return notes on a submission's changes to the exercise's cells."""
    notes = []
    there = [name for name in names if name in known]
    for name, count in Counter(there).items():
        if count > 1:
            notes.append(f"{name} is there {count} times, the last one counts")
    strangers = {name for name in names if name and name not in known}
    if strangers:
        notes.append(f"not cells of this exercise: {_listed(sorted(strangers))}")
    if missing := [name for name in known if name not in answers]:
        notes.append(f"missing, put back: {_listed(missing)}")
    once = list(dict.fromkeys(there))
    if once != [name for name in known if name in answers]:
        notes.append("cells in another order, put back into theirs")
    edited = [
        name
        for name, cell in known.items()
        if name in answers
        and not cell.metadata["nbgrader"]["solution"]
        and not _alike(_text(answers[name]), cell.source)
    ]
    if edited:
        notes.append(f"locked cells edited, put back: {_listed(edited)}")
    return notes


def _alike(submitted, source):
    """Return True if a locked cell is as released, or as the instructor wrote it."""
    shown = visible(source)
    return submitted.split() in (source.split(), shown.split())


def visible(source: str, config=None) -> str:
    """Return a source without its hidden regions, as a config delimits them."""
    hiding = ClearHiddenTests(config=config)
    ends = hiding.begin_test_delimeter, hiding.end_test_delimeter
    begin, end = map(re.escape, ends)
    return re.sub(rf"^[^\n]*{begin}.*?{end}[^\n]*$\n?", "", source, flags=re.M | re.S)


def _kernel_notes(submitted, source):
    metadata = submitted.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kernel, info = metadata.get("kernelspec"), metadata.get("language_info")
    kernel = kernel if isinstance(kernel, dict) else {}
    info = info if isinstance(info, dict) else {}
    language = str(info.get("name") or kernel.get("language") or "python").lower()
    name = str(kernel.get("name") or "python3")
    if language != "python":
        return [f"written for another language ({language}), run as Python"]
    wanted = source.metadata.get("kernelspec", {}).get("name", "python3")
    return [f"another kernel ({name}), run with {wanted}"] if name != wanted else []


def _listed(names):
    said = ", ".join(names[:_LISTED])
    return said + f" and {len(names) - _LISTED} more" * (len(names) > _LISTED)
