"""Hints: advice chosen by a check's facts, and `hint()`, which prints the next level.

`COMMON` is for failures that any function can have; an exercise's own `HINTS` are tried
before these.
"""

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from distlab.calls.message_html import plain, typeset
from distlab.calls.notebook_frontend import show_text
from distlab.errors import (
    Deadlock,
    InvalidArgument,
    MessageMismatch,
    RankDied,
    WorldTimeout,
)

__all__ = ["COMMON", "Hint", "advice_html", "hint", "in_lines", "remember"]

_WIDTH = 84  # of a printed line


@dataclass(frozen=True)
class Hint:
    """Advice for those wrong answers of which `when(facts)` is true.

    facts: a dict; a missing fact makes `when` raise KeyError, and the hint does not
    fit. levels: the first is shown with the verdict, `hint()` prints the others.
    """

    when: Callable[[dict], object]
    levels: Sequence[str]

    def fits(self, facts: dict) -> bool:
        """Return True if it is advice for these facts."""
        try:
            return bool(self.when(facts))
        except (LookupError, TypeError, ValueError, AttributeError):
            return False


def _cause(facts):
    return facts["failure"].cause


def _raised(kind, words=""):
    """Return a `when`: the learner's function raised `kind` with these words."""
    return lambda facts: isinstance(_cause(facts), kind) and words in str(_cause(facts))


def _unwritten(facts):
    own = isinstance(_cause(facts), NotImplementedError)
    return own and str(_cause(facts)) in ("", "write this step")


def _all_wait(*kinds):
    """Return a `when`: no rank can go on, and all wait in one of these calls."""

    def when(facts):
        failure = facts["failure"]
        stuck = isinstance(failure, Deadlock) or (
            isinstance(failure, WorldTimeout) and " was running" not in str(failure)
        )
        waits = set(re.findall(r"waited in (\w+)", str(failure)))
        return stuck and waits and waits <= set(kinds)

    return when


def _other_dtype(facts):
    mismatch = isinstance(_cause(facts), MessageMismatch)
    return mismatch and len(set(re.findall(r"bytes of (\w+)", str(_cause(facts))))) > 1


COMMON = [
    Hint(
        _unwritten,
        [
            "Nothing of your own is written yet. Take the smallest case: what goes in, "
            "and what has to come out?",
            "Draw that case on paper, with two of everything: who has what at first, "
            "who needs what in the end, and one thing that has to happen in between.",
        ],
    ),
    Hint(
        _raised(NotImplementedError, "this exercise asks"),
        [
            "Nothing of your own does the work: the algorithm itself is the exercise, "
            "and distlab's own is not available here.",
            "The message names the function. What would it do for you? Do that "
            "yourself.",
        ],
    ),
    Hint(
        lambda f: f["ready_made"],
        [
            "Write it from comm.send, comm.recv and comm.sendrecv: the algorithm is "
            "the exercise.",
            "The verdict names what was called. Draw one round of it for four ranks: "
            "each arrow is one message that you send yourself.",
        ],
    ),
    Hint(
        lambda f: isinstance(f["failure"], Deadlock) and not f["failure"].cycle,
        [
            "One rank left while others still wait for it. Does every rank make the "
            "same number of steps?",
            "The story says who returned, and at which line the others wait. How many "
            "messages does that rank send and receive, and how many do the others "
            "expect?",
        ],
    ),
    Hint(
        _all_wait("sendrecv"),
        [
            "All ranks wait. Does each rank's dst expect it as its src? Send to the "
            "right, receive from the left.",
            "The story names for each rank whom it sends to and receives from. Draw "
            "both as arrows for ranks 0 and 1: does the arrow that leaves one arrive "
            "at the other?",
        ],
    ),
    Hint(
        _all_wait("recv"),
        [
            "All ranks wait in a receive, and no message is on its way. Which rank can "
            "send before it has received anything?",
            "The story shows what each rank waits for. Follow it backwards: one rank "
            "must start with a send, or every rank must do both at once with "
            "comm.sendrecv.",
        ],
    ),
    Hint(
        _all_wait("send", "recv", "sendrecv", "wait"),
        [
            "All ranks wait. A send ends only when the receiver asks for it, so all "
            "ranks cannot send first; comm.sendrecv does both at once.",
            "The story shows what each rank waits in. Which of them could receive "
            "meanwhile?",
        ],
    ),
    Hint(
        _other_dtype,
        [
            "The buffer has another dtype than the message. torch.empty_like(tensor) "
            "makes one that fits.",
            "The verdict names both types. What do you make a buffer from, and which "
            "dtype does torch give it there?",
        ],
    ),
    Hint(
        lambda f: (
            isinstance(_cause(f), MessageMismatch) or "size of tensor" in str(_cause(f))
        ),
        [
            "Chunks can differ in length: receive into a buffer as long as the "
            "message.",
            "The verdict names both lengths. Which chunk does your neighbour send in "
            "this step, and which chunk is your buffer as long as?",
        ],
    ),
    Hint(
        _raised(NameError, "its cell ended early"),
        [
            "The cell that defines it ended with the error in brackets. Mend that cell "
            "first; what is in it was not graded.",
            "Python runs no line of a cell with a SyntaxError. Look at the line that "
            "it names, and at the end of the line before: a bracket, a colon?",
        ],
    ),
    Hint(
        lambda f: type(_cause(f)) is NameError,
        [
            "Is the name spelled right? A notebook is graded from top to bottom: what "
            "your function uses has to be defined above the check.",
            "The message gives the name. Restart the kernel, run all cells up to the "
            "check, and see whether it is there.",
        ],
    ),
    Hint(
        _raised(TypeError, "does not take that"),
        [
            "The message shows the first line of your function as it is now. Which "
            "arguments did it have in the exercise?",
            "A check passes exactly the arguments that the text names, in their order.",
        ],
    ),
    Hint(
        _raised(TypeError, "made a generator"),
        [
            "A function with yield in it only makes a generator. What should it return "
            "instead?",
            "Nothing in it runs until a value is asked for, and here nothing asks. "
            "Search your function for the word yield.",
        ],
    ),
    Hint(
        lambda f: isinstance(f["failure"], RankDied),
        [
            "A process ended, and nothing can tell at which line. Which call of yours "
            "ends one, as os._exit and os.kill do, or crashes in compiled code?",
            "Put a print with flush=True before each line that you suspect, and run "
            "your function in a cell of its own: the last line printed was before the "
            "end.",
        ],
    ),
    Hint(
        lambda f: isinstance(f["failure"], WorldTimeout),
        [
            "It was still running when the time was over. The story says in which line "
            "each rank was: does that loop end, and is it this slow on your own run?",
            "Time your function on this case in a cell of its own. If it is right and "
            "needs longer, set the environment variable DISTLAB_CHECK_SECONDS.",
        ],
    ),
    Hint(
        lambda f: isinstance(_cause(f), InvalidArgument) or f["failure"],
        [
            "The message above names the line, and who was at it.",
            "Read its first line: who raised what, and in which line of yours? Then go "
            "through your function for that one, with this input, up to that line.",
        ],
    ),
    Hint(
        lambda f: f["exceeded"],
        [
            "Something grows in each round of a loop, or starts processes in it. Is "
            "there a last round?",
            "The verdict names what was too much. Print its size in each round, on "
            "your own run with a small input.",
        ],
    ),
    Hint(
        lambda f: f["silent"],
        [
            "What a rank learns has to arrive through comm.",
            "No message was seen. Does your function return before its loop, or is its "
            "loop empty for this number of ranks?",
        ],
    ),
    Hint(
        lambda f: f["misshapen"],
        [
            "Write into what you are given, and leave its length and type as they are.",
            "The verdict names the rank. Which line changes the length or the type of "
            "the tensor, or puts another object in its place?",
        ],
    ),
]


# ---- hint() --------------------------------------------------------------------------

_BEFORE = "Nothing has been checked yet. Run a step's check first, then ask again."
_PASSED = "The last check passed: there is nothing to hint at."
_NO_MORE = "There is no more to say about this verdict than it says itself."
_ALL_SAID = (
    "That is all there is to say without giving it away. Change one thing, however "
    "small, run the check again, and compare what it finds with what it found."
)


class _Last:
    """The last check's hint: its levels, and the number already printed."""

    levels: Sequence[str] = ()
    said = 0
    then = _BEFORE


def remember(passed: bool, levels: Sequence[str]) -> None:
    """Make `hint()` continue after the first of these levels."""
    _Last.levels, _Last.said = levels, 1
    _Last.then = _PASSED if passed else _ALL_SAID if len(levels) > 1 else _NO_MORE


def hint() -> None:
    """Print the next level of the hint for the last verdict that did not pass."""
    if _Last.said < len(_Last.levels):
        level = _Last.levels[_Last.said]
        _Last.said += 1
        head = f"Hint {_Last.said} of {len(_Last.levels)}"
        show_text(in_lines("", f"{head}: {level}"), advice_html(head, level))
    else:
        show_text(in_lines("", _Last.then), f"<p>{typeset(_Last.then)}</p>")


def in_lines(head: str, words: str) -> str:
    """Return `head` with words after it, wrapped and indented to a notebook's width."""
    aside = " " * len(head)
    how = {"initial_indent": aside, "subsequent_indent": aside}
    words = " ".join(plain(words).split())
    return head + textwrap.fill(words, _WIDTH, **how)[len(head) :]


def advice_html(head: str, words: str, more: str = "") -> str:
    """Return a level of a hint as HTML; more: HTML after it."""
    return f'<p style="margin:0 0 0 2ch"><b>{head}:</b> {typeset(words)}{more}</p>'
