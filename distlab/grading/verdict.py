"""Verdicts, where they are shown, and the points they are worth."""

import contextlib
import io
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from distlab.errors import JailExceeded
from distlab.grading import hinting
from distlab.launch import kept_ranks

__all__ = ["CELL", "Sheet", "Verdict", "grade", "grade_each", "judged"]


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    outcome: "pass", "fail" or "inconclusive".
    title: what was tried, such as "4 ranks, 10 numbers".
    found: what was seen where it differs from what was expected.
    hint: a first nudge that fits what was seen.
    picture: what was seen, as something with `_repr_mimebundle_`, or None.
    """

    outcome: str
    title: str
    found: str = ""
    hint: str = ""
    picture: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        assert self.outcome in ("pass", "fail", "inconclusive"), self.outcome

    def __str__(self):
        sign = {"pass": "✓", "fail": "✗", "inconclusive": "?"}[self.outcome]
        lines = [f"{sign} {self.title}: {self.outcome}"]
        lines += [f"    {line}" for line in self.found.splitlines()]
        if self.hint:
            lines.append(hinting.in_lines("  Hint: ", self.hint))
        return "\n".join(lines)

    def drawn(self) -> dict:
        """Return the picture by MIME type; nothing if it cannot be drawn."""
        if self.picture is None:
            return {}
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                return self.picture._repr_mimebundle_()
        except Exception:
            return {}


class Sheet:
    """Where verdicts are shown: printed and displayed in the cell around."""

    def show(self, verdict: Verdict, check) -> None:
        """Show what `check` found."""
        print(verdict)
        if verdict.outcome == "pass":
            return
        if hinting.failed(verdict, check):
            print("  hint() tells more.")
        if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
            drawn = verdict.drawn()
            if drawn:
                sys.modules["IPython"].display.display(drawn, raw=True)

    def total(self, earned: float, points: float, passed: str = "") -> None:
        """Show what was earned; passed: such as "6 of 8", where each check counts."""
        told = f"{passed}: " * bool(passed)
        print(f"\n{told}{earned:g} of {points:g} points")


CELL = Sheet()


def grade(points: float, checks, sheet: Sheet = CELL) -> float:
    """Run checks up to the first that does not pass; return all the points, or none.

    A check has a `title` and a `judge()` that returns a `Verdict`. Whatever a check
    raises is inconclusive, and shown.
    """
    hinting.begin()
    passed = True
    with kept_ranks():
        for check in checks:
            verdict = judged(check)
            sheet.show(verdict, check)
            if verdict.outcome != "pass":
                passed = False
                break
    earned = float(points) if passed else 0.0
    sheet.total(earned, points)
    return earned


def grade_each(points: int, checks, sheet: Sheet = CELL) -> float:
    """Run all checks; return the part of the points that they earned, rounded down."""
    hinting.begin()
    verdicts = []
    with kept_ranks():
        for check in checks:
            verdicts.append(judged(check))
            sheet.show(verdicts[-1], check)
    passed = sum(verdict.outcome == "pass" for verdict in verdicts)
    earned = float(points * passed // len(verdicts))
    sheet.total(earned, points, f"{passed} of {len(verdicts)}")
    return earned


def judged(check) -> Verdict:
    """Return the check's verdict; what it writes to stderr would cost every point.

    A check may have a `picture()` of what it judged last, for a verdict without one.
    """
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            verdict = check.judge()
            if verdict.outcome == "fail" and verdict.picture is None:
                verdict = replace(verdict, picture=_picture_of(check))
            return verdict
    except JailExceeded as error:
        found = (
            f"Your function was ended, with all that it started: {error.why}.\n"
            "Does something grow in each round of a loop, and is there a last round?"
        )
        return Verdict("fail", check.title, found)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Verdict(
            "inconclusive", check.title, f"the check could not be made\n{said}"
        )


def _picture_of(check):
    try:
        return check.picture() if hasattr(check, "picture") else None
    except Exception:  # a picture explains a verdict and never decides one
        return None
