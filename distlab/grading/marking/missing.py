"""Why a name is not there that a step is judged by: what became of its cell.

All of this is the submission's own text; no check is known here.
"""

import re

__all__ = ["first_line", "why_missing"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_IN_A_FILE = re.compile(r" \([^()]*, line (\d+)\)$")
_LINE = re.compile(r"\bCell In\[\d+\], line (\d+)")
_MOST_TRACEBACK, _MOST_WORDS, _MOST_LINE = 20_000, 200, 40
_NOT_INSTALLED = (
    ": where this is graded it is not installed, nor was a file of that name handed in"
)
_NOBODY = "asks for input{}, and nobody answers while it is graded"


def why_missing(name: str, cells: list) -> str:
    """Return what the cell did that should have defined a name, as part of a sentence.

    cells: the submission's, with the outputs that they have so far.
    """
    makes = _making(name)
    own = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]
    defining = [cell for cell in own if makes.search(cell.source)]
    for cell in reversed(defining or own):
        errors = [o for o in cell.get("outputs", []) if o.output_type == "error"]
        if errors and (did := _did(errors[-1])):
            if defining:
                return f"the cell that defines `{name}` {did}"
            return (
                f"`{name}` is not defined, and the cell `{first_line(cell.source)}` "
                f"{did}"
            )
    return f"`{name}` is not defined"


def first_line(source: str) -> str:
    """Return the line by which people know a cell, cut where it is long."""
    return _cut(next(filter(str.strip, source.split("\n")), ""), _MOST_LINE)


def _making(name):
    """Return what finds a line that defines the name; cells need not be sound Python.

    No pattern looks at a character more than a few times, however long the line.
    """
    blank = r"[ \t]"
    defines = rf"(?:async{blank}+)?(?:def|class){blank}+{name}\b"
    assigns = rf"(?:\w+{blank}*,{blank}*)*{name}{blank}*(?:[,:][^=\n(]*)?=(?!=)"
    imports = rf"(?:from{blank}+\S+{blank}+)?import\b[^\n]*\b{name}\b"
    return re.compile(rf"^{blank}*(?:{defines}|{assigns}|{imports})", re.MULTILINE)


def _did(error):
    """Return what a cell with this error as its last output did; "" if it is unsaid."""
    if error.ename == "CellEnded":
        subject, _, did = error.evalue.partition("This cell ")
        return "" if subject else _cut(did.partition(". ")[0]).rstrip(".")
    trace = _COLOURS.sub("", "\n".join(error.traceback)[:_MOST_TRACEBACK])
    place = _IN_A_FILE.search(error.evalue) or _LINE.search(trace)
    line = f" (line {place[1]})" if place else ""
    if error.ename == "StdinNotImplementedError":
        return _NOBODY.format(line)
    words = _cut(_IN_A_FILE.sub("", error.evalue))
    said = f"{_cut(error.ename)}: {words}" if words else _cut(error.ename)
    advice = _NOT_INSTALLED * (error.ename == "ModuleNotFoundError")
    return f"ended with {said}{line}{advice}"


def _cut(words, most=_MOST_WORDS):
    """Return words on one line, of letters that can be shown, and not too many."""
    words = words[: 2 * most].split()
    words = "".join(letter for letter in " ".join(words) if letter.isprintable())
    return words if len(words) <= most else f"{words[:most]}..."
