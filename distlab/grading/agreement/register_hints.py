"""From a learner's wrong answers about histories to a first nudge."""

from collections.abc import Sequence

from distlab.grading.agreement.wrong_ideas import REAL_TIME_IDEAS, UNKNOWN_IDEAS
from distlab.processes.answers import Raised
from distlab.trace import Operation

__all__ = ["HINTS", "kind_of_raised", "likeness"]


def likeness(
    pairs: Sequence[tuple], wrong: Sequence[int], smallest: list[Operation]
) -> str:
    """Return the key of the hint for wrong answers.

    pairs: (history, truth, call) of all that were answered; wrong: places in it.
    smallest: a history that is answered wrongly, of which nothing can be left out.
    """
    if len({call.value for _, _, call in pairs}) == 1:
        return "same"
    if not smallest:
        return "empty"
    told = any(one.outcome != "ok" for one in smallest)
    ideas = UNKNOWN_IDEAS if told else REAL_TIME_IDEAS
    short = [pair for pair in pairs if len(pair[0]) < 7]
    if not told:
        short = [pair for pair in short if _all_ok(pair[0])]
    for kind, functions in ideas.items():
        if any(_same(function, short) for function in functions):
            return kind
    return _by_features([pairs[number] for number in wrong], smallest, told)


def _all_ok(history):
    return all(one.outcome == "ok" for one in history)


def _same(idea, pairs):
    """Whether all answers are those of an idea."""
    return all(idea(history) == call.value for history, _, call in pairs)


def _by_features(wrong, smallest, told):
    """Return the key of a hint for what the wrongly answered have in common."""
    histories = [history for history, _, _ in wrong]
    strict = not any(call.value for _, _, call in wrong)
    generous = all(call.value for _, _, call in wrong)
    if told:
        lost = {one.op for one in smallest if one.outcome == "unknown"}
        if "write" not in lost:
            return "reads told none" if lost else "failed done"
        return "never" if strict else "generous unknown" if generous else "unknown"
    if all(map(_twice_written, histories)):
        return "one write each"
    if strict and all(map(_touches, histories)):
        return "touching"
    if all(any(_reads_none(one) for one in history) for history in histories):
        return "initial"
    if strict:
        return "greedy" if all(map(_all_ok, (h for h, _, _ in wrong))) else "strict"
    return "generous" if generous else "mixed"


def _twice_written(history):
    values = [one.value for one in history if one.op == "write"]
    return len(set(values)) < len(values)


def _touches(history):
    ends = {one.end for one in history}
    return any(one.start in ends for one in history)


def _reads_none(one):
    return one.op == "read" and one.outcome == "ok" and one.result is None


def kind_of_raised(call: Raised, history: list[Operation]) -> str:
    """Return the key of the hint for a function that raised."""
    if call.kind == "NotImplementedError":
        return "unwritten"
    if "are locked" in call.said:
        return "locked"
    if "(a side effect)" in call.said:
        return "side effect"
    if call.kind in ("SystemExit", "KeyboardInterrupt"):
        return "died"
    if call.kind in ("RecursionError", "MemoryError"):
        return call.kind
    if call.kind == "TypeError" and "positional argument" in call.said:
        return "unfit" if len(call.frames) < 3 else "raised"
    if call.kind == "TypeError" and "unhashable" in call.said:
        return "unhashable"
    if call.kind == "TypeError" and "'NoneType'" in call.said:
        return "no end" if not _all_ok(history) else "initial"
    if not history or "empty" in call.said:
        return "empty"
    return "raised"


HINTS = {
    "unwritten": "Nothing of your own is written yet. Which operations can be the "
    "first in an order? For each of them, what is left?",
    "travel": "The function is called in another Python. It travels there with what "
    "it uses.",
    "locked": "The library's own checkers are locked where your function runs: the "
    "search itself is the exercise.",
    "side effect": "A checker looks at a history and says True or False. It needs no"
    " files, programs or connections.",
    "died": "Return an answer. A function that ends its process gives none.",
    "RecursionError": "A search goes one step deeper for each operation, and never "
    "has more than these. Is an operation that has been placed taken out of what is "
    "left?",
    "MemoryError": "It needed more than 2 GB. Try orders one after another, and do "
    "not make a list of them all.",
    "unhashable": "A set holds what cannot change: a tuple or a frozenset, no list "
    "or set. The numbers of the operations that are done will do.",
    "no end": "An operation that was never answered has no end: its end is None, "
    "which is neither smaller nor larger than a number. Nothing comes after it in "
    "time.",
    "empty": "A history without operations, or what is left when all are placed, has"
    " nothing that is wrong. What do you return then?",
    "raised": "The message above names the line. The history above it is the one.",
    "changed": "The list that you were given is another one afterwards. It is the "
    "caller's: work on a copy, or take nothing out.",
    "no bool": "Return True or False, and nothing that only looks like it.",
    "none": "It returned None, as a function does that reaches its end without a "
    "return. On one way through it, something is not returned.",
    "remembers": "Your function remembers something from one history to the next, and "
    "what is true of one is not true of the next. Begin each call with nothing.",
    "endless": "So few operations have few orders. Is there a loop that never ends?",
    "all orders": "14 operations have 87 billion orders. Do not make them all: which"
    " operations can be the first at all, if one that had ended before another began"
    " is before it? Try only these, and go on in the same way with what is left.",
    "memory": "The search comes to the same place on many ways: the same operations "
    "are done, and the register has the same value. What follows is then the same. "
    "Remember the places from which nothing was found, and do not search them again."
    " A read that was never answered says nothing, and only makes more places.",
    "same": "It gives one and the same answer for all of them. Look for one order of"
    " all operations in which every read finds the value that was written last "
    "before it.",
    "written": "Your function asks whether each value that was read has been "
    "written, which is the same as whether any order explains the reads, whatever "
    "the times. What had ended before something else began has to be before it.",
    "clients' order": "Your function keeps the order of each client, and lets the "
    "clients shift against each other. That is sequential consistency. What had "
    "ended before something of another client began has to be before it, too.",
    "start": "Your function takes operations in the order of their starts. Of two "
    "that overlap, the one that was called later may take effect first.",
    "end": "Your function takes operations in the order of their ends. Of two that "
    "overlap, the one that was answered later may have taken effect first.",
    "fixed": "Your function has every write take effect at one end of its time, and "
    "every read at one end. Each may have its moment anywhere in between.",
    "overlapping write": "Your function gives a read only what had been written "
    "before it began. A write that overlaps the read may have taken effect already.",
    "each read alone": "Each read for itself may return this. Two reads one after "
    "another cannot: who has seen the new value makes it true for all that come "
    "later. Look for one order of all operations in which every read finds the value"
    " it needs.",
    "touching": "Look at the operations that end at the moment at which another "
    "begins. Nobody can say which was first, so either order is allowed: one is "
    "before another only if its end is smaller than the other's start.",
    "initial": "Before anything is written the register holds None. A read may "
    "return None as long as no write has to be before it.",
    "greedy": "There is an order, and your search did not find it. If several "
    "operations can be the next, the first of them may be the wrong one: when it "
    "leads nowhere, take it back and try another one.",
    "one write each": "Two writes here write the same value. A value that was read "
    "does not tell which of them it is from: either will do.",
    "generous": "No order explains this history, and your function takes it for "
    "right. Which order did it accept? Is every operation that had ended before "
    "another began before it, and does each read return what was written last?",
    "mixed": "Follow your function on this history with a pencil. Look for one order"
    " of all operations in which every read finds the value that was written last "
    "before it, and in which real time is kept.",
    "strict": "There is an order, and your search did not find it. Does it take back"
    " a choice that leads nowhere? And if it remembers where it has been: the same "
    "operations with another value in the register are another place.",
    "never": "A write that was never answered may have taken effect all the same, at "
    "once or long after its client went on, and a read may have seen it.",
    "any time": "A write that was never answered has no end, but it has a start: it "
    "cannot take effect before it was called.",
    "failed done": "An operation that failed was told that nothing was done. It has "
    "no place in an order.",
    "all done": "The outcome matters. What failed has no place in an order, and what"
    " is unknown may have one or not.",
    "reads told none": "A read that was not answered has a result of None, which is "
    "not what it returned: it returned nothing, and says nothing.",
    "generous unknown": "No order explains this history. A write that was never "
    "answered takes effect once or never, and not before its start.",
    "unknown": "A write of unknown outcome may be in the order, anywhere after what "
    "had ended before it began, or may be left out. All that was answered has to be "
    "in.",
    "unfit": "The function is called with one argument, the list of operations.",
    "long only": "Short histories it gets right. In a long one, a search that stops "
    "before it has looked everywhere knows nothing; and if yours remembers where it "
    "has been, the same operations with another value in the register are another "
    "place.",
}
