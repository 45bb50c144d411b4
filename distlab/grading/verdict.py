"""Verdicts, and the points they are worth."""

import contextlib
import io
from dataclasses import dataclass

__all__ = ["Verdict", "grade", "grade_each"]


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    outcome: "pass", "fail" or "inconclusive".
    title: what was tried, such as "4 ranks, 10 numbers".
    found: what was seen where it differs from what was expected.
    hint: a first nudge that fits what was seen.
    """

    outcome: str
    title: str
    found: str = ""
    hint: str = ""

    def __post_init__(self):
        assert self.outcome in ("pass", "fail", "inconclusive"), self.outcome

    def __str__(self):
        sign = {"pass": "✓", "fail": "✗", "inconclusive": "?"}[self.outcome]
        lines = [f"{sign} {self.title}: {self.outcome}"]
        lines += [f"    {line}" for line in self.found.splitlines()]
        if self.hint:
            lines.append(f"  Hint: {self.hint}")
        return "\n".join(lines)


def grade(points: float, checks) -> float:
    """Run checks up to the first that does not pass; return all the points, or none.

    A check has a `title` and a `judge()` that returns a `Verdict`. Whatever a check
    raises is inconclusive, and shown.
    """
    passed = True
    for check in checks:
        verdict = _judged(check)
        print(verdict)
        if verdict.outcome != "pass":
            passed = False
            break
    earned = float(points) if passed else 0.0
    print(f"\n{earned:g} of {points:g} points")
    return earned


def grade_each(points: int, checks) -> float:
    """Run all checks; return the part of the points that they earned, rounded down."""
    verdicts = []
    for check in checks:
        verdicts.append(_judged(check))
        print(verdicts[-1])
    passed = sum(verdict.outcome == "pass" for verdict in verdicts)
    earned = float(points * passed // len(verdicts))
    print(f"\n{passed} of {len(verdicts)}: {earned:g} of {points:g} points")
    return earned


def _judged(check):
    """Return the check's verdict; what it writes to stderr would cost every point."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return check.judge()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Verdict(
            "inconclusive", check.title, f"the check could not be made\n{said}"
        )
