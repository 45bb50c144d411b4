"""Exercise 03, steps 1 and 2: a checker of linearizability.

The learner's checker judges histories drawn at random; its verdicts are compared with
the library's. Hints follow from the properties that all misjudged histories share. Step
3 is in `eight_histories`.
"""

import signal
from math import inf
from random import SystemRandom
from string import ascii_lowercase

from distlab.checks.kit import Hint, Wrong, call, called, check, modules_of
from distlab.history import History, timeline
from distlab.trace import Operation

# The solution is imported where it is needed, so that no process has it.
WITHOUT = modules_of("distlab.agree.checkers")
_LACKED = ("distlab.agree", *WITHOUT)  # which names the checkers as well
LIMIT_S, SHORT = 2, 8  # of processor time for a case; operations that are readable
random = SystemRandom()


@check("{} histories of up to {} operations")
def linearizable(function, count, most):
    """Check histories in which every operation has a response."""
    _compare(function, [_drawn(most, 0) for _ in range(count)], memory=False)


@check("{} histories of up to {} operations, some without a response")
def fast_linearizable(function, count, most):
    """Check histories with failed or pending operations, and three long, hard ones."""
    long = most > SHORT
    histories = [_drawn(most, 0.06 if long else 0.2) for _ in range(count)]
    histories += [_hard(right) for right in (False, True, True) if long]
    _compare(function, histories, memory=True)


def operation(client, op, key, said, start, end):
    """Return an operation with a response; said: the value written, or read."""
    value, result = (said, None) if op == "write" else (None, said)
    when = float(start), float(end)
    return Operation(int(client), op, key, value, *when, "ok", result)


def _drawn(most, unknown):
    """Draw a history of one register; in most of them one read's result is changed.

    Times are small whole numbers, so that many are equal.
    """
    free, effects = [0] * random.choice((1, 2, 3, 4, 5)), []
    for _ in range(most - random.randrange(5)):
        client, op = random.randrange(len(free)), random.choice(("read", "write"))
        start = free[client] + random.randrange(3)
        end = late = start + random.choice((1, 2, 3, 5, 8))
        free[client] = end + 1
        one = operation(client, op, None, random.randint(1, most), start, end)
        if random.random() < 1.5 * unknown:
            one = one._replace(outcome=random.choice(("failed", "unknown", "unknown")))
        if one.outcome == "unknown":
            one, late = one._replace(end=None), start + random.choice((1, 3, 9, 30))
        point = random.choice((start, late, random.uniform(start, late)))
        effects.append((point, random.random(), one))
    operations, value = [], None
    for *_, one in sorted(effects):
        if one.op == "read":
            one = one._replace(result=value if one.outcome == "ok" else None)
        elif one.outcome == "ok" or (one.end is None and random.random() < 0.6):
            value = one.value
        operations.append(one)
    reads = [n for n, o in enumerate(operations) if (o.op, o.outcome) == ("read", "ok")]
    if reads and random.random() < 0.7:
        n, values = random.choice(reads), [None, *{one.value for one in operations}]
        operations[n] = operations[n]._replace(result=random.choice(values))
    return sorted(operations, key=lambda one: one.start)


def _hard(right):
    """Return a history in which an early wrong choice shows only at the very end.

    In each of nine rounds five clients write at once, and then one reads. A read of the
    first round's value and a write, read at the end if it is right, overlap them all.
    """
    history = [operation(5, "write", None, 99, -1, 89)]
    history.append(operation(6, "read", None, 2, -1, 89))
    for first, at in zip(range(0, 45, 5), range(0, 90, 10), strict=True):
        for client in random.sample(range(5), 5):
            history.append(operation(client, "write", None, first + client, at, at + 5))
        history.append(operation(0, "read", None, first + 2, at + 6, at + 7))
    return [*history, operation(0, "read", None, 99 if right else 0, 90, 91)]


def _order(operations):
    """Return an order that explains the operations in real time, or None."""
    from distlab.agree import Register
    from distlab.agree.checkers.order_search import find_order

    kept = [one for one in operations if one.outcome != "failed"]
    return find_order(kept, Register(), inf).order


def violates(model, operations):
    """Return True if operations violate a model by the library's checker."""
    from distlab import agree

    judge = getattr(agree, f"check_{model}")
    of = [agree.Register()] if model in ("linearizable", "sequential") else []
    return judge(History(operations), *of).violated


def _compare(function, histories, memory):
    """Raise if a learner's checker is wrong about a history, or has no answer."""
    histories = [[], *sorted(histories, key=lambda h: (len(h), len(_odd(h))))]
    answers, end = call(_answers, function, histories, without=_LACKED)
    pairs = zip(answers, histories, strict=False)
    wrong = [h for said, h in pairs if said != (_order(h) is not None)]
    if not wrong and len(answers) == len(histories):
        return
    history = wrong[0] if wrong else histories[len(answers)]
    facts = {"end": end, "memory": memory, "wrong": wrong[:200] or [history]}
    shown = f"  ({len(history)} operations)"
    if len(history) <= SHORT:
        shown, facts["picture"] = timeline(history), History(history)
    if wrong:
        order, facts["end"] = _order(history), "said yes"
        found = "No order explains it: it is not linearizable."
        if order is not None:
            letter = dict(zip(map(id, history), ascii_lowercase, strict=False))
            names = " ".join(letter.get(id(one), "…") for one in order[:SHORT]) or "-"
            facts["end"] = "said no"
            found = f"This order explains it, so it is linearizable: {names}"
        if call(_answers, function, [history], without=_LACKED)[0] != [order is None]:
            found, facts["end"] = f"{found}\nAlone it is judged right.", "remembers"
        found = f"It returned {order is None} for this history:\n{shown}\n{found}"
        raise Wrong(found, **facts)
    if end == "raised":
        try:
            call(called, function, history, without=_LACKED)
        except Wrong as raised:
            found = f"{raised.found}\nIt was called with this history:\n{shown}"
            raise Wrong(found, **raised.facts | facts) from None
    if end == "slow":
        end = f"took {LIMIT_S} s of processor time for {len(answers)} histories, and"
        raise Wrong(f"It {end} was not done with this one:\n{shown}", **facts)
    raise Wrong(f"It {end} with this history:\n{shown}", **facts)


def _odd(history):
    return [one for one in history if one.outcome != "ok"]


def _answers(function, histories):
    """Return a checker's answers about histories, and why it ended early or ""."""
    answers = []
    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        for history in histories:
            given = list(history)
            said = called(function, given)
            if given != history:
                return answers, "changed the list"
            if type(said).__name__ not in ("bool", "bool_"):  # numpy's is one too
                return answers, f"returned {said!r:.60}"
            answers.append(bool(said))
    except TimeoutError:
        return answers, "slow"
    except Exception:
        return answers, "raised"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return answers, ""


def _too_slow(*_):
    raise TimeoutError


def _wrong(end, feature=lambda history: True):
    """Return a `when`: wrong in this way, and all such histories have the feature."""
    return lambda facts: facts["end"] == end and all(map(feature, facts["wrong"]))


def _each_read_alone(history):
    """Return True if each read could be explained without the other reads."""
    reads = [one for one in history if one.op == "read" and one.outcome == "ok"]
    alone = ([o for o in history if o.op == "write" or o is read] for read in reads)
    return all(_order(some) is not None for some in alone)


def _ties(history):
    """Return True if it is linearizable only if equal times leave the order open."""
    ends = {one.end for one in history}
    moved = [o._replace(start=o.start + (o.start in ends) / 2) for o in history]
    return _order(sorted(moved, key=lambda one: one.start)) is None


# fmt: off
HINTS = [
    Hint(lambda f: type(f["failure"].cause) is NotImplementedError
            and str(f["failure"].cause) in ("", "write this step"), [
        "Nothing of your own is written yet. Which operations can be the first in an "
        "order? For each of them, what is left?",
        "Place a write first: what does the register hold then, and which operations "
        "are left? It is the same question again, for a shorter list."]),
    Hint(lambda f: f["end"].startswith(("returned", "changed")), [
        "Return True or False on every way through the function, and leave the list, "
        "which is the caller's, as it is.",
        "Go through your function with this history: at which return does it end, and "
        "which line takes something out of the list, or sorts it in place?"]),
    Hint(lambda f: f["end"] == "remembers", [
        "Your function remembers something from one history to the next, and what is "
        "true of one is not true of the next. Begin each call with nothing.",
        "Look for a list, set or dict made outside of the function, or as the default "
        "of an argument. It is made once, and keeps what the last history left."]),
    Hint(lambda f: f["end"] == "slow" and f["memory"] and len(f["wrong"][0]) > SHORT, [
        "The search reaches the same state on many paths: the same operations are "
        "done, and the register has the same value. Remember the states from which "
        "nothing was found, and do not search them again.",
        "Print how often your search is in the same state. Every time but the first is "
        "for nothing. A read without a response says nothing: leave it out."]),
    Hint(lambda f: f["end"] == "slow" and len(f["wrong"][0]) > SHORT, [
        "14 operations have 87 billion orders. Do not make them all: which operations "
        "can be the first, if what ended before another began is before it?",
        "Take the earliest end of all that is left. What starts after it cannot be the "
        "first. Try only the others, and go on in the same way with what is left."]),
    Hint(lambda f: f["end"] == "slow" or type(f["failure"].cause) is RecursionError, [
        "So few operations have few orders, and a search goes one step deeper for "
        "each. Is an operation that has been placed taken out of what is left?",
        "Does every call inside of your function get a shorter list than its caller, "
        "and does every loop end, also when nothing fits?"]),
    Hint(lambda f: f["wrong"] == [[]] and (
            f["end"] != "raised" or "empty" in str(f["failure"].cause)), [
        "In a history without operations, or when all are placed, nothing is left that "
        "could be wrong. What do you return then?",
        "What should the first line of your search do if its list is empty? min() of "
        "an empty list raises, and a loop over it falls through to what stands "
        "below."]),
    Hint(lambda f: f["end"].startswith("said") and len(f["wrong"][0]) > SHORT, [
        "Short histories it gets right. In a long one, a search that stops before it "
        "has looked everywhere knows nothing.",
        "Does it stop at a number of steps, a depth or a time? What it says then is a "
        "guess. If it remembers states: is the register's value part of each?"]),
    Hint(lambda f: all(map(_odd, f["wrong"])) and (
            f["end"] != "raised" or "NoneType" in str(f["failure"].cause)), [
        "Without a response, end is None. Such a write may have taken effect all the "
        "same, at any time after its start, or never; such a read says nothing. What "
        "failed never took effect.",
        "Real time puts nothing after an operation without an end. Can your search "
        "place such a write late, or leave it out? It is done when everything with a "
        "response is placed."]),
    Hint(_wrong("said yes", _each_read_alone), [
        "Each read for itself may return this. Two reads one after another cannot: "
        "once one has seen the new value, no later one sees the old. Look for one "
        "order.",
        "Find the write that two reads overlap. When did it take effect, if the first "
        "has seen it? What may the second return?"]),
    Hint(_wrong("said yes", lambda history: not violates("sequential", history)), [
        "One order that keeps each client's own would explain this: that is sequential "
        "consistency. What ended before something of another client began has to be "
        "before it, too.",
        "Client 0 writes 1 and is done at second 1. Client 1 reads None at second 2. "
        "Is there a single copy that could have answered so?"]),
    Hint(_wrong("said yes"), [
        "It is not enough that each value that was read has been written: what ended "
        "before something else began has to be before it, in one order of all.",
        "A write of 1 ends at 2, a write of 2 ends at 4, a read at 5 returns 1. Each "
        "value was written. Which order is there?"]),
    Hint(_wrong("said no", _ties), [
        "An end and a start at the same time leave the order open: one precedes "
        "another only if its end is smaller than the other's start.",
        "Find the two numbers that are equal. Does your function compare with < or "
        "<=?"]),
    Hint(lambda f: f["end"] == "said no" and f["memory"], [
        "There is an order that your search does not find. If it remembers states: the "
        "same operations with another value in the register are another state.",
        "Writes a and b are done. After a, b the register holds b's value, and after "
        "b, a it holds a's. From which of the two can a read of a's value go on?"]),
    Hint(_wrong("said no"), [
        "There is an order that your search does not find. The operation that starts "
        "or ends first need not be the next: when a choice leads nowhere, take it back "
        "and try another one.",
        "On the history above, write down the first two choices of your search. What "
        "happens when the second leads nowhere? Before the first write a read returns "
        "None, and two writes of one value are two choices."]),
]
