"""A submitted notebook's cells beside the exercise's: missing, twice, moved, edited.

The marker puts right what it can, and trusts no metadata. Here it is only said, for the
table, and cells that no tool can read are made such that one can.
"""

import json
from collections import Counter
from dataclasses import dataclass

from nbformat.notebooknode import NotebookNode, from_dict

from distlab.grading.marking.paper import visible

__all__ = ["Reference", "mend", "reference_of"]

_LISTED = 3


@dataclass(frozen=True)
class Reference:
    """An exercise's notebook as the gradebook has it.

    cells: the names of the cells that nbgrader knows, in the exercise's order.
    kernel: the kernel's name, language: what it speaks. kinds: "code" or "markdown", by
    name. given: what those cells say that nobody is to change, as it was handed out
    and, for who hands in the solution, as it is.
    """

    cells: tuple[str, ...]
    kernel: str
    language: str
    kinds: dict[str, str]
    given: dict[str, tuple[str, str]]


def reference_of(notebook, source: dict | None, hiding: tuple[str, str]) -> Reference:
    """Return what the gradebook's `notebook` says of its cells.

    source: the instructor's notebook, which knows their order; the gradebook does not.
    hiding: what begins and what ends a part of a cell that is not handed out.
    """
    known = [cell.name for cell in notebook.source_cells]
    order = [_id_of(cell) for cell in (source or {}).get("cells", [])]
    known.sort(key=lambda name: order.index(name) if name in order else len(order))
    kernel = json.loads(notebook.kernelspec or "{}")
    given = {
        cell.name: (visible(cell.source, *hiding), cell.source)
        for cell in notebook.source_cells
        if cell.locked
    }
    kinds = {cell.name: cell.cell_type for cell in notebook.source_cells}
    name, language = kernel.get("name", ""), kernel.get("language", "")
    return Reference(tuple(known), name, language, kinds, given)


def mend(notebook: NotebookNode, reference: Reference) -> list[str]:
    """Make the cells such that nbgrader can read them; return what is odd in them."""
    notes = _kernel_notes(notebook, reference)
    cells = [cell for cell in notebook.cells if isinstance(cell, dict)]
    known = not any(map(_id_of, cells)) and _recognised(cells, reference)
    notebook.cells = [_sound(cell) for cell in notebook.cells if isinstance(cell, dict)]
    names = [name for cell in notebook.cells if (name := _id_of(cell))]
    if known:
        notes.append("nbgrader's marks are lost, cells recognised by their ids")
    strangers = [name for name in dict.fromkeys(names) if name not in reference.cells]
    if strangers:
        notes.append(f"not cells of this exercise, not graded: {_listed(strangers)}")
    for name, count in Counter(names).items():
        if count > 1 and name in reference.cells:
            notes.append(f"{name} is there {count} times, the last one counts")
    there = [name for name in dict.fromkeys(reversed(names)) if name in reference.cells]
    there.reverse()
    if moved := _moved(there, [name for name in reference.cells if name in there]):
        notes.append(f"cells in another order, moved back: {_listed(moved)}")
    missing = [name for name in reference.cells if name not in there]
    if missing:
        cells = "1 cell" if len(missing) == 1 else f"{len(missing)} cells"
        notes.append(f"{cells} missing: {_listed(missing)}")
    return notes + _changes(notebook, reference)


def _moved(there, right):
    """Return the fewest cells whose moving back puts all in the right order."""
    longest = []  # the longest run in the right order that ends with each cell so far
    for name in there:
        before = [run for run in longest if right.index(run[-1]) < right.index(name)]
        longest.append([*max(before, key=len, default=[]), name])
    kept = max(longest, key=len, default=[])
    return [name for name in right if name not in kept]


def _alike(source, given):
    return source.split() == given.split()


def _changes(notebook, reference):
    """Return which cells are of another type, and which say what they did not."""
    last = {name: cell for cell in notebook.cells if (name := _id_of(cell))}
    there = {name: last[name] for name in reference.cells if name in last}
    kinds, given = reference.kinds, reference.given
    turned = [name for name, cell in there.items() if cell.cell_type != kinds[name]]
    edited = [
        name
        for name, cell in there.items()
        if name in given and not any(_alike(cell.source, one) for one in given[name])
    ]
    notes = []
    if turned:
        notes.append(f"cells of another type, put right: {_listed(turned)}")
    if edited:
        notes.append(f"locked cells edited, put back: {_listed(edited)}")
    return notes


def _recognised(cells, reference):
    """Have cells claim what they are by their ids; return whether one does.

    Some tools save a notebook without the metadata that they do not know.
    """
    found = [cell for cell in cells if cell.get("id") in reference.cells]
    for cell in found:
        claim = dict.fromkeys(("grade", "solution", "locked", "task"), False)
        claim |= {"grade_id": cell["id"], "schema_version": 3}
        cell["metadata"] = {"nbgrader": claim}
    return bool(found)


def matches(notebook: NotebookNode, reference: Reference) -> int:
    """Return how many of the exercise's cells a notebook has."""
    cells = [cell for cell in notebook.get("cells", []) if isinstance(cell, dict)]
    return len({_id_of(cell) for cell in cells} & {*reference.cells})


def _kernel_notes(notebook, reference):
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        metadata = notebook.metadata = from_dict({})
    kernel = metadata.get("kernelspec")
    info = metadata.get("language_info")
    kernel = kernel if isinstance(kernel, dict) else {}
    info = info if isinstance(info, dict) else {}
    language = str(info.get("name") or kernel.get("language") or "").lower()
    name = str(kernel.get("name", ""))
    for key in ("kernelspec", "language_info"):
        metadata.pop(key, None)
    wanted = (reference.language or "python").lower()
    if language and language != wanted:
        return [f"written for another language ({language}), run as {wanted}"]
    if name and reference.kernel and name != reference.kernel:
        return [f"another kernel ({name}), run with {reference.kernel}"]
    return []


def _sound(cell):
    """Return the cell with fields of the right type, and without its outputs."""
    kind = cell.get("cell_type")
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(map(str, source))
    # half of a surrogate pair is valid JSON, and can be written in no file
    source = str(source).encode("utf-8", "replace").decode()
    metadata = cell.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    if _id_of(cell) is None:
        metadata.pop("nbgrader", None)
    sound = {
        "cell_type": kind if kind in ("code", "markdown") else "raw",
        "metadata": metadata,
        "source": source,
    }
    if kind == "code":
        sound |= {"execution_count": None, "outputs": []}
    return from_dict(sound)


def _id_of(cell):
    metadata = cell.get("metadata")
    ours = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = ours.get("grade_id") if isinstance(ours, dict) else None
    return name if isinstance(name, str) else None


def _listed(names):
    said = ", ".join(names[:_LISTED])
    return said + (f" and {len(names) - _LISTED} more" * (len(names) > _LISTED))
