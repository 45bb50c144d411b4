"""From what was seen of a sample of lines to what it is in words, and a first nudge."""

from distlab.dataflow.trial import Odd
from distlab.grading.jobs.check import ONCE, TRIED_AGAIN

__all__ = ["fault_in", "hint_for_difference", "hint_for_slant"]


def fault_in(value: object, right: int, known: set | None, times: int):
    """Return (what is wrong, nudge) with one file's lines, or None.

    right: how many are to be drawn. known: the file's lines that are not blank, None if
    there is no such file. times: how many values the file has.
    """
    if known is None:
        return "There is no such file.", "The key is the name of the file, as given."
    if value is None and right:
        return "This file is missing.", "Does every line of a file get a pair?"
    if times > 1:
        return (
            f"This file has {times} values.",
            "A reducer that yields gives a key several values. Return one list.",
        )
    if type(value) is not list:
        kind = value.kind if isinstance(value, Odd) else type(value).__name__
        return f"The value is a {kind}, and no list.", _KINDS.get(kind, _NO_LIST)
    foreign = [line for line in value if line not in known]
    if foreign and type(foreign[0]) is str and not foreign[0].strip():
        return f"{foreign[0]!r} is a blank line.", "Blank lines are left out."
    if foreign:
        told = f"{foreign[0]!r} is no line of this file."
        return told, _NO_LIST if type(foreign[0]) is not str else _FOREIGN
    if len(set(value)) < len(value):
        line = next(line for line in value if value.count(line) > 1)
        return f"{line!r} is drawn more than once.", _TWICE
    if len(value) != right:
        return f"{len(value)} lines are drawn.", _FEW if len(value) < right else _MANY
    return None


_KINDS = {
    "set": "A set of strings has another order in every Python. Return a list.",
    "NoneType": "The reducer returned nothing. The method sort of a list does not.",
}
_NO_LIST = "The value of a file is a list of its lines, each a string."
_FOREIGN = "Draw whole lines as they stand, of the file that is the key."
_TWICE = (
    "A line that is in the file several times counts once. Is it given one number each "
    "time? Two pairs of a line with two numbers are not equal."
)
_FEW = (
    "Draw as many as are asked for, or all different lines if the file has fewer. A "
    "share of the lines, such as one in ten, is another task."
)
_MANY = "The reducer keeps no more lines than are asked for."

_SLANTS = {
    ("place", False): "Lines near the beginning of a file",
    ("place", True): "Lines near the end of a file",
    ("alphabet", False): "Lines that come first in the alphabet",
    ("alphabet", True): "Lines that come last in the alphabet",
    ("length", False): "Short lines",
    ("length", True): "Long lines",
}


def hint_for_slant(what: str, mean: float, folded: bool) -> tuple[str, str]:
    """Return (what is wrong, nudge) for lines of which chance would not draw so many.

    what: by which the file's lines are ranked. mean: of the ranks of those drawn or, if
    folded, of their distances from the middle rank.
    """
    if folded:
        some = "both ends" if mean > 0.5 else "the middle"
        lines, measure = f"Lines at {some} of an order", "distance from the middle rank"
        scale = "the middle to 1 for both ends"
    else:
        lines = _SLANTS.get((what, mean > 0.5), "Lines with some letters")
        measure, scale = "rank", "the first to 1 for the last"
    return (
        f"{lines} are drawn more often than others: by {what}, the mean {measure} "
        f"of the lines drawn is {mean:.2f}, from 0 for {scale}.",
        "Give every line a number that has nothing to do with where it stands or how "
        "it looks, and that is the same again for the same line.",
    )


def hint_for_difference(why: str) -> tuple[str, str]:
    """Return (which two runs differ, nudge)."""
    return _DIFFERENCES[why]


_OTHER_PROCESS = (
    "Another process does what the dead one had done, and has another memory. A pair "
    "may depend on the line and on nothing that came before it."
)
_DIFFERENCES = {
    "hash": (
        "The two runs are clean, in two Pythons with different hash seeds.",
        "hash() of a string is another number in every Python that is started, and a "
        "set of strings has another order. zlib.crc32 is the same everywhere.",
    ),
    "random": (
        "The two runs are clean and the same in everything.",
        "Something is different each time: random numbers, the time, the number of the "
        "process. What looks random has to follow from the line itself.",
    ),
    "nothing left": (
        "One run is without your combiner, the other with it, and lacks a file.",
        f"The combiner gave no value at all. {ONCE}",
    ),
    "no value": (
        "One run is without your combiner, the other with it.",
        "The reducer takes what the combiner gives for what the mapper gives. The "
        "combiner yields values alone, without the key, and as the mapper makes them.",
    ),
    "combiner": (
        "One run is without your combiner, the other with it.",
        "What the combiner leaves out no reducer gets back. Which lines can it leave "
        "out, whatever the other splits hold?",
    ),
    "workers": (
        "One run is on one worker, the other on three.",
        "Which lines a process has seen before depends on how many there are. A number "
        "that is drawn may depend on the line, and on nothing that came before it.",
    ),
    "cut": (
        "The same lines, once in large splits and once in small ones.",
        "Another cut, another order and other groups. Neither the line's number in its "
        "split nor the order of the values may decide.",
    ),
    "again": (
        "In one run a map task failed half-way, and was tried again by its worker.",
        TRIED_AGAIN,
    ),
    "map": ("In one run a worker was killed in a map task.", _OTHER_PROCESS),
    "reduce": (
        "In one run a worker was killed in a reduce task, and what it had mapped was "
        "mapped again.",
        _OTHER_PROCESS,
    ),
    "backup": (
        "In one run a map task was slow, and got a backup on another worker.",
        _OTHER_PROCESS,
    ),
}
