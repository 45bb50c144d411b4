"""Where a failure is in the learner's own code: frames, cells and lines of source.

A frame is (file name, line number, function name).
"""

import linecache
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["learners_frames", "source_lines", "whereabouts"]

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
        code = linecache.getline(name, line).strip()
        lines += [f"        {code}"] if code else []
    return lines


def whereabouts(stack: Iterable) -> str:
    """Return in half a sentence where in the learner's code a rank is, if anywhere."""
    frames = learners_frames(stack)
    if not frames:
        return ""
    name, line, _ = frames[0]
    code = linecache.getline(name, line).strip()
    code = code if len(code) <= 76 else code[:75] + "…"
    return f", {_place(name, line)}" + (f": {code}" if code else "")


def _is_learners(name):
    ours = name.startswith(("<frozen", "<string>", _PACKAGE))
    ours = ours or name.endswith((".pyx", ".pxi"))  # compiled: a library's
    return not (ours or "/site-packages/" in name or name.startswith(_LIBRARIES))


def _is_algorithm(name, _, function):
    """Whether a frame is one of the collectives, and not the search for one."""
    search = name.endswith("__init__.py") or function == "<module>"
    return "/collectives/" in name and not search


def _place(name, line):
    """Return where a line is, in the words of the notebook if it is in a cell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        cell = shell.compile.format_code_name(name)
        if cell:
            return f"{' '.join(cell)}, line {line}"
    return f"{Path(name).name}, line {line}"
