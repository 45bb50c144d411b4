"""The place of a failure in the learner's own code: frames, cells and source lines.

A frame is (file name, line number, function name).

`described` returns the facts of an exception, from which a report is made.
"""

import linecache
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from distlab.cell_sources import are_described, title_of

__all__ = ["Described", "described", "learners_frames", "source_lines", "whereabouts"]

_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"
_LIBRARIES = (sys.prefix + "/lib/", sys.base_prefix + "/lib/")


def learners_frames(frames: Iterable) -> list[tuple[str, int, str]]:
    """Return the frames of the learner's code, or else those of the collectives."""
    frames = [tuple(frame) for frame in frames]
    own = [frame for frame in frames if _is_learners(frame[0])]
    return own or [frame for frame in frames if _is_algorithm(*frame)]


def source_lines(frames: Iterable) -> list[str]:
    """Return the learner's frames, outermost first, each with its line of source."""
    lines = []
    for name, line, function in learners_frames(frames)[-8:]:
        inside = "" if function == "<module>" else f", in {function}"
        lines.append(f"    {_place(name, line)}{inside}")
        code = _code(name, line)
        lines += [f"        {code}"] if code else []
    return lines


def whereabouts(stack: Iterable) -> str:
    """Return ", FILE, line N: SOURCE" of the learner's outermost frame, or ""."""
    frames = learners_frames(stack)
    if not frames:
        return ""
    name, line, _ = frames[0]
    code = _code(name, line)
    code = code if len(code) <= 76 else code[:75] + "…"
    return f", {_place(name, line)}" + (f": {code}" if code else "")


def _code(name, line):
    """Return a line of source.

    A failure that another process reports could name any file, to have it shown: then
    it is only read if it is a cell, or distlab's own.
    """
    own = title_of(name) or os.path.normpath(name).startswith(_PACKAGE)
    return "" if are_described() and not own else linecache.getline(name, line).strip()


def _is_learners(name):
    ours = name.startswith(("<frozen", "<string>", _PACKAGE))
    ours = ours or name.endswith((".pyx", ".pxi"))  # compiled: a library's
    return not (ours or "/site-packages/" in name or name.startswith(_LIBRARIES))


def _is_algorithm(name, _, function):
    """Return True if a frame is in a collective, and not in the search for one."""
    search = name.endswith("__init__.py") or function == "<module>"
    return "/collectives/" in name and not search


def _place(name, line):
    """Return a line's place, such as "Cell In[3], line 2" or "file.py, line 2"."""
    return f"{title_of(name) or Path(name).name}, line {line}"


class Described(Exception):
    """An exception of another process. facts: as that process `described` it."""

    def __init__(self, facts: dict):
        super().__init__(facts)
        self.facts = facts

    def __str__(self):
        return self.facts["message"]


def described(error: BaseException) -> dict:
    """Return a dict: type, message, frames (file, line, function) and cause."""
    if isinstance(error, Described):
        return error.facts
    frames = traceback.extract_tb(error.__traceback__)
    context = None if error.__suppress_context__ else error.__context__
    chain = error.__cause__ or context
    return {
        "type": type(error).__name__,
        "message": _message(error),
        "frames": [(f.filename, f.lineno, f.name) for f in frames],
        "because": f"{type(chain).__name__}: {chain}" if chain else "",
    }


def _message(error):
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r}) was called"
    return str(error)
