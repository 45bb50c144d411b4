"""What a marked cell shows: verdicts and pictures, as outputs of a notebook's cell."""

import json
from collections import Counter

from distlab.grading.hinting import general, in_lines
from distlab.grading.marking.outputs import inert
from distlab.grading.verdict import Sheet, Verdict

__all__ = ["MARK", "Listed", "Paper", "score", "text", "visible"]

MARK = "distlab"  # in the metadata of an output: {"hidden": bool, "told": str}
_SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}
_MOST_PICTURE_BYTES = 2**22


class Listed(Sheet):
    """Counts the checks that a cell would make."""

    def __init__(self):
        self.checks = Counter()

    def grade(self, points: float, checks) -> float:
        """Take part as `grade` and as `grade_each`."""
        self.checks.update(map(repr, checks))
        return 0.0


class Paper(Sheet):
    """Collects outputs; what concerns a hidden case is marked.

    shown: the checks that a student may know of.
    """

    def __init__(self, shown: Counter):
        self.outputs = []
        self._shown = shown.copy()

    def show(self, verdict: Verdict, check) -> None:
        """Add what `check` found."""
        case = repr(check)
        hidden = not self._shown[case]
        self._shown[case] -= 1
        said = str(verdict) + "\n"
        if hidden:
            told = f"{_SIGNS[verdict.outcome]} a case that is not shown: "
            told += f"{verdict.outcome}\n"
            if verdict.hint:
                told += in_lines("  Hint: ", general(verdict.hint)) + "\n"
            self._display({"text/plain": said}, told)
        else:
            self._print(said)
        drawn = inert(verdict.drawn()) if verdict.outcome != "pass" else {}
        if drawn and len(json.dumps(drawn)) < _MOST_PICTURE_BYTES:
            self._display(drawn, "" if hidden else None)

    def total(self, earned: float, points: float, passed: str = "") -> None:
        """Add the line with the points."""
        told = f"{passed}: " * bool(passed)
        self._print(f"\n{told}{earned:g} of {points:g} points\n")

    def _print(self, said):
        if self.outputs and self.outputs[-1]["output_type"] == "stream":
            self.outputs[-1]["text"] += said
        else:
            self.outputs.append(text(said))

    def _display(self, data, told):
        """Add something of many kinds; told: what a student sees instead, or None."""
        mark = {"hidden": told is not None, "told": told or ""}
        display = {"output_type": "display_data", "data": data}
        self.outputs.append(display | {"metadata": {MARK: mark}})


def text(said: str) -> dict:
    """Return what is printed as an output."""
    return {"output_type": "stream", "name": "stdout", "text": said}


def score(earned: float) -> dict:
    """Return a cell's value as an output: what nbgrader reads."""
    value = {"output_type": "execute_result", "execution_count": None}
    mark = {MARK: {"hidden": False, "told": ""}}
    return value | {"data": {"text/plain": repr(float(earned))}, "metadata": mark}


def visible(source: str, begin: str, end: str) -> str:
    """Return a source without its hidden regions."""
    lines, hidden = [], False
    for line in source.split("\n"):
        if begin in line:
            hidden = True
        elif end in line:
            hidden = False
        elif not hidden:
            lines.append(line)
    return "\n".join(lines)
