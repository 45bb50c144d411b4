"""`hint()`: more about the last verdict that did not pass, a level at a time.

The first level is the verdict's own hint, a nudge. What follows on it stands in a text
file of the exercise's name in the folder `more`:

    checks: AllReduceSums, AllReduceTraffic
    ---
    nudge:
    One share is missing. How many steps does
    a chunk need to pass every rank?
    more:
    What to look at.
    more:
    A small instance, or a question that leads to the point.
    ---

A nudge stands there word for word, with {} for what is filled in. Checks of several
exercises may have the same nudge: the file that names the check is looked at first.
"""

import re
import textwrap
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

__all__ = ["begin", "failed", "general", "hint", "in_lines", "shelves"]

_WIDTH = 84  # of an output in a notebook; a longer line is broken within a word

_NUMBERS = re.compile(r"\d+(?:, \d+)*(?![\d.]*\.\w)")  # but not in "10.bias"
_BEFORE = "Nothing has been judged yet. Run a step's check first, and ask again then."
_PASSED = "The last check has passed: there is nothing to hint at."
_NO_MORE = "There is no more to say of this verdict than stands in it."
_ALL_SAID = (
    "That was all there is to say without giving it away. Change one thing, however "
    "small, run the check again, and compare what it finds now with what it found."
)


class Shelf(NamedTuple):
    """What one file holds: the names of checks, and nudge -> further levels."""

    checks: set[str]
    levels: dict[str, list[str]]


class _State:
    """What `hint` says next; there is one, since it is asked without arguments."""

    def __init__(self):
        self.waiting: list[str] = []
        self.then = _BEFORE


_state = _State()


def begin() -> None:
    """Forget the last verdict: something else is judged now."""
    _state.waiting, _state.then = [], _PASSED


def failed(verdict, check) -> bool:
    """Remember a verdict that did not pass; return whether `hint` has more on it."""
    levels = _levels(verdict.hint, type(check).__name__)
    _state.waiting = [
        f"Hint {number} of {len(levels) + 1}: {level}"
        for number, level in enumerate(levels, 2)
    ]
    _state.then = _ALL_SAID if levels else _NO_MORE
    return bool(levels)


def general(nudge: str) -> str:
    """Return a nudge without the numbers in it that are those of a case."""
    known = sorted((k for s in shelves() for k in s.levels), key=lambda k: "{}" in k)
    for each in known:
        found = _pattern(each).fullmatch(nudge)
        if found:
            filled = (_NUMBERS.sub("…", part) for part in found.groups())
            return "".join(chain(*zip(each.split("{}"), [*filled, ""], strict=True)))
    return _NUMBERS.sub("…", nudge)


def hint() -> None:
    """Say more about the last verdict that did not pass, one level at each call."""
    print(in_lines("", _state.waiting.pop(0) if _state.waiting else _state.then))


def in_lines(head: str, words: str) -> str:
    """Return `head` and, beside it, words in lines that fit a notebook."""
    aside = " " * len(head)
    lines = [
        textwrap.fill(line, _WIDTH, initial_indent=aside, subsequent_indent=aside)
        for line in words.splitlines()
    ]
    return head + "\n".join(lines)[len(head) :]


def _levels(nudge, check):
    """Return what follows on a nudge of a check."""
    ordered = sorted(shelves(), key=lambda shelf: check not in shelf.checks)
    for shelf in ordered if nudge else []:
        for known, levels in shelf.levels.items():
            if _pattern(known).fullmatch(nudge):
                return levels
    return []


@cache
def _pattern(nudge):
    parts = (re.escape(part) for part in nudge.split("{}"))
    return re.compile("(.*?)".join(parts), re.DOTALL)


@cache
def shelves() -> list[Shelf]:
    """Return what all the files hold."""
    folder = files("distlab.grading") / "more"
    found = [path for path in folder.iterdir() if path.name.endswith(".txt")]
    ordered = sorted(found, key=lambda path: path.name)
    return [_shelf(path.read_text("utf-8")) for path in ordered]


def _shelf(text):
    head, *blocks = re.split(r"^---+$", text, flags=re.MULTILINE)
    checks = head.partition("checks:")[2].replace(",", " ").split()
    levels = {}
    for block in blocks:
        words = re.split(r"^(?:nudge|more):$", block, flags=re.MULTILINE)
        before, nudge, *more = (" ".join(part.split()) for part in words)
        assert not before and nudge not in levels, block
        levels[nudge] = more
    return Shelf(set(checks), levels)
