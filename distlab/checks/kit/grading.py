"""Verdicts: the result of a check, the hint that fits, and the points.

    grade ──▶ judge(check, function, case) ──▶ Verdict ──▶ VerdictDisplay: shows it
                 Wrong(found, **facts) ─▶ the first Hint that fits

A verdict is pass, fail or inconclusive, and only a pass counts.
"""

import contextlib
import inspect
import io
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from distlab.calls.message_html import lines_html
from distlab.calls.notebook_frontend import cell_number, show_text
from distlab.calls.progress import Progress
from distlab.checks.kit.contracts import PUBLISHED
from distlab.checks.kit.hints import COMMON, advice_html, in_lines, remember
from distlab.errors import ProcessServerFailed, WorldTimeout
from distlab.launch import kept_ranks

__all__ = [
    "Inconclusive",
    "Verdict",
    "VerdictDisplay",
    "Wrong",
    "check",
    "grade",
    "grade_each",
    "is_drawn",
    "judge",
    "showing_on",
]

_SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


class Wrong(Exception):
    """A wrong result of a learner's function.

    found: lines that show expected and yours. facts: the input of hints' `when`, with
    the check's own names. Some have hints for all exercises: `silent=True`, no message
    was sent; `misshapen=True`, a result of another length or type. A run that fails
    adds its own: `failure`, `n`, `ready_made`, `exceeded`.
    picture: of the run, an object with `_repr_mimebundle_`, or None.
    """

    def __init__(self, found: str, *, picture: Any = None, **facts: Any):
        super().__init__(found)
        self.found, self.picture, self.facts = found, picture, facts


class Inconclusive(Exception):
    """A run that proves nothing: a fault did not happen, or the machine was busy."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check in one case.

    outcome: "pass", "fail" or "inconclusive". title: the case in words.
    found: the difference from the expected. hints: levels of the hint that fits.
    picture: of the run, an object with `_repr_mimebundle_`, or None.
    """

    outcome: str
    title: str
    found: str = ""
    hints: Sequence[str] = ()
    picture: Any = field(default=None, repr=False, compare=False)

    def __str__(self):
        lines = [self._found()]
        if self.hints:
            lines.append(in_lines("  Hint: ", self.hints[0]))
        if len(self.hints) > 1:
            lines.append("  hint() tells more.")
        return "\n".join(lines)

    def html(self) -> str:
        """Return it as HTML."""
        shown = lines_html(self._found())
        for level in self.hints[:1]:
            more = " <code>hint()</code> tells more." * (len(self.hints) > 1)
            shown += advice_html("Hint", level, more)
        return shown

    def _found(self):
        head = f"{_SIGNS[self.outcome]} {self.title}: {self.outcome}"
        return "\n    ".join([head, *self.found.splitlines()])

    def drawn(self) -> dict:
        """Return the picture by MIME type; nothing if it cannot be drawn."""
        if self.picture is None:
            return {}
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                return self.picture._repr_mimebundle_()
        except Exception:  # a picture explains a verdict and never decides one
            return {}


class Points(float):
    """The value of a graded cell, which a notebook shows as a sentence.

    nbgrader reads its plain text, a number.
    """

    line = ""

    def _repr_html_(self):
        return lines_html(self.line)


class VerdictDisplay:
    """An output for verdicts: printed and displayed in the cell that runs."""

    _is_new = True

    def show(self, verdict: Verdict, hidden: bool) -> None:
        """Show a verdict; hidden: True for a case that learners do not see."""
        Progress.make_room()
        show_text(str(verdict), verdict.html())
        drawn = {} if verdict.outcome == "pass" else verdict.drawn()
        if drawn and "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
            sys.modules["IPython"].display.display(drawn, raw=True)

    def total(self, earned: float, line: str) -> float:
        """Return the points, shown with `line` and, once, that no sandbox was used."""
        if self._is_new:
            line += "\n(Checked without the sandbox in which submissions are graded.)"
        self._is_new = False
        if cell_number() is not None:
            earned = Points(earned)
            earned.line = line
            return earned
        print(f"\n{line}")
        return earned


_draws = ContextVar("draws", default=True)
_sheet = ContextVar("display", default=VerdictDisplay())  # noqa: B039, it has no state


@contextlib.contextmanager
def showing_on(display: VerdictDisplay):
    """Show verdicts on this sheet during the body."""
    token = _sheet.set(display)
    try:
        yield display
    finally:
        _sheet.reset(token)


def check(title: str) -> Callable:
    """Make a function `(function, *case)` a check, by its title.

    title: a format string for the case: "{} ranks, {} elements".
    """

    def decorate(function):
        function.title = title
        return function

    return decorate


def grade(
    points: float,
    check: Callable,
    function: Any,
    cases: Iterable,
    hidden: Iterable = (),
    contract: Mapping[str, str] = PUBLISHED,
) -> float:
    """Check cases up to the first that does not pass; return all the points, or none.

    function: the learner's, or a tuple of several. cases: tuples, or single values.
    hidden: further cases, which only the instructor's notebook has.
    contract: the choices of this course, see `distlab.checks.kit.contracts`.
    """
    verdicts = []
    for verdict in _verdicts(check, function, cases, hidden, contract):
        verdicts.append(verdict)
        if verdict.outcome != "pass":
            break
    passed = bool(verdicts) and verdicts[-1].outcome == "pass"
    earned = float(points) if passed else 0.0
    return _sheet.get().total(earned, f"{earned:g} of {points:g} points")


def grade_each(
    points: int, check: Callable, function: Any, cases: Iterable, hidden: Iterable = ()
) -> float:
    """Check all cases; return the passed share of the points, rounded down."""
    verdicts = list(_verdicts(check, function, cases, hidden))
    passed = sum(verdict.outcome == "pass" for verdict in verdicts)
    earned = float(points * passed // max(1, len(verdicts)))
    described = f"{passed} of {len(verdicts)}: {earned:g} of {points:g} points"
    return _sheet.get().total(earned, described)


def _verdicts(check, function, cases, hidden, contract=PUBLISHED):
    """Yield the verdict on each case, and report the progress."""
    both = [(case, False) for case in cases] + [(case, True) for case in hidden]
    with kept_ranks(), Progress() as progress:
        for number, (case, is_hidden) in enumerate(both, 1):
            said = f"case {number} of {len(both)}"
            progress.show(lambda said=said: said, (number - 1) / len(both))
            case = case if isinstance(case, tuple) else (case,)
            verdict = judge(check, function, case, contract)
            remember(verdict.outcome == "pass", verdict.hints)
            _sheet.get().show(verdict, is_hidden)
            yield verdict


def judge(
    check: Callable, function: Any, case: tuple, contract: Mapping = PUBLISHED
) -> Verdict:
    """Return a check's verdict on one case; a learner's mistake never raises."""
    title = _title(check, case)
    hints = (*getattr(sys.modules[check.__module__], "HINTS", ()), *COMMON)
    asked = _Asked(contract, set())
    how = {"contract": asked} if contract else {}
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # a line there costs all points
            check(function, *case, **how)
    except Wrong as wrong:
        levels = _advice_on_contract(check, function, case, asked, wrong.facts)
        fitting = next((each for each in hints if each.fits(wrong.facts)), None)
        levels = levels or (fitting.levels if fitting else ())
        return Verdict("fail", title, wrong.found, levels, wrong.picture)
    except Inconclusive as unknown:
        return Verdict("inconclusive", title, str(unknown))
    except ProcessServerFailed as error:
        return Verdict("inconclusive", title, str(error))
    except Exception as error:
        at = _last_line_in(check, error)
        found = f"the check could not be made\n{at}{type(error).__name__}: {error}"
        return Verdict("inconclusive", title, found)
    return Verdict("pass", title)


class _Asked(dict):
    """A contract; `read` gets the names of the choices that a check looks at."""

    def __init__(self, contract, read):
        super().__init__(contract)
        self.read = read

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)


def _advice_on_contract(check, function, case, contract, facts):
    """Return the hint's levels if the function keeps to another contract, else ()."""
    timed_out = isinstance(facts.get("failure"), WorldTimeout)
    if not contract or timed_out or facts.get("exceeded"):
        return ()
    choices = sys.modules[check.__module__].CONTRACT
    token = _draws.set(False)
    try:
        for other in choices.others(contract):
            differ = {name for name in other if other[name] != contract[name]}
            if differ - contract.read:  # no run of the check has come so far
                continue
            with contextlib.suppress(Wrong, Inconclusive, ArithmeticError, LookupError):
                with contextlib.redirect_stderr(io.StringIO()):
                    check(function, *case, contract=_Asked(other, contract.read))
                return choices.advice(contract, other)
    finally:
        _draws.reset(token)
    return ()


def is_drawn() -> bool:
    """Return False during a run that is no verdict, and needs no picture."""
    return _draws.get()


def _last_line_in(check, error):
    """Return "FILE, line N: " for an error's last line in a check's file, or ""."""
    file = inspect.getfile(check)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f"{os.path.basename(file)}, line {lines[-1]}: " if lines else ""


def _title(check, case):
    said = getattr(check, "title", check.__name__).format(*case)
    said = re.sub(r"\b1 (\w+?)(?<=ch)es\b|\b1 (\w+?)s\b", r"1 \1\2", said)
    return textwrap.shorten(said, 120, placeholder=" …")
