"""What an autograded notebook tells about how its grading went."""

import re

from nbformat.notebooknode import NotebookNode

from distlab.grading.marking.missing import first_line

__all__ = ["busy_of", "isolation_of", "notes_of"]

_NO_ISOLATION = "none"
_ENDED = ("CellEnded", "CellTimeoutError")
_LOST = re.compile(r"✗ (.*), so this step could not be judged\.")
_LATE = re.compile(r"CellEnded: This cell (did not end within .*)")
_MOST_LETTERS = 160
# What the marker, or else nbgrader's own Execute, says in the output of a cell.
_SAYS = {
    "CellTimeoutError": "deadline in {}",
    "ended its kernel": "kernel ended in {}",
    "printed more than is kept": "printed without end in {}",
    "made no sense": "forged answers in {}",
    "no kernel was left": "no kernel left at {}",
    "the time was over": "time over at {}",
    "your instructor can see why": "{} could not be judged, see the log",
}


def notes_of(notebook: NotebookNode) -> list[str]:
    """Return what stopped cells: "kernel ended in step-two (`import os`)", each once.

    And why steps could not be judged: "step-one-check could not be judged: ...".
    """
    found = {}
    for number, cell in enumerate(notebook.cells, 1):
        name = cell.metadata.get("nbgrader", {}).get("grade_id", f"cell {number}")
        graded = cell.metadata.get("nbgrader", {}).get("grade", False)
        if not graded:
            name = f"{name} (`{first_line(cell.source)}`)"
        for output in cell.get("outputs", []):
            said = _said(output, graded)
            for words, note in _SAYS.items():
                if words in said:
                    found.setdefault(note, note.format(name))
            if late := _LATE.match(said):
                found.setdefault("late", f"{name} {_plain(late[1]).rstrip('.')}")
            if lost := _LOST.fullmatch(said.strip()):
                why = f"could not be judged: {_plain(lost[1])}"
                found.setdefault(why, f"{name} {why}")
    return list(found.values())


def isolation_of(notebook: NotebookNode) -> str:
    """Return the isolation that was in force while it was graded."""
    found = notebook.metadata.get("distlab", {}).get("isolation") or [_NO_ISOLATION]
    return ", ".join(found)


def busy_of(notebook: NotebookNode) -> dict[str, float]:
    """Return the seconds of processor time that the checks of each step took."""
    return dict(notebook.metadata.get("distlab", {}).get("busy_s", {}))


def _plain(why):
    """Return a reason, some of which a submission can word, as part of one line."""
    why = "".join(letter for letter in why if letter.isprintable())
    return why if len(why) <= _MOST_LETTERS else f"{why[:_MOST_LETTERS]}..."


def _said(output, graded):
    """Return what nbgrader or the marker put into a cell's output; no student can."""
    if output.output_type == "error" and output.ename in _ENDED:
        return f"{output.ename}: {output.evalue}"
    if graded and output.output_type == "stream":
        return "".join(output.text)
    return ""
