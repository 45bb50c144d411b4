"""Exercise 03: a checker of linearizability, and eight histories to tell apart.

The learner's checker judges histories drawn at random; what it says is compared with
what the library's says, here. In step 3 an answer is tried: its order has to explain
the history, and its few operations have to contradict the next stronger model.
"""

import re
import signal
from itertools import combinations, product
from math import inf
from string import ascii_lowercase

from distlab.checks.histories import EIGHT_HISTORIES, drawn, hard
from distlab.checks.kit import Hint, Wrong, call, called, check, modules_of
from distlab.history import History, timeline, told

# What answers the question is imported where it is needed, so that no process has it.
WITHOUT = ("distlab.agree", *modules_of("distlab.agree.checkers"))
LIMIT_S, SHORT = 3, 8  # of processor time, for a case; operations that can be read
STRONGER = {"sequential": "linearizable", "causal": "sequential", "eventual": "causal"}
STRONGER["none"] = "causal"


# ---- steps 1 and 2: is it linearizable? ----------------------------------------------


@check("{} histories of up to {} operations")
def linearizable(function, count, most):
    """Every operation has a response."""
    _compare(function, [drawn(most, 0) for _ in range(count)], memory=False)


@check("{} histories of up to {} operations, some without a response")
def fast_linearizable(function, count, most):
    """Some operations failed, or have no response; three long histories are hard."""
    long = most > SHORT
    histories = [drawn(most, 0.06 if long else 0.2) for _ in range(count)]
    histories += [hard(right) for right in (False, True, True) if long]
    _compare(function, histories, memory=True)


def _order(operations):
    """Return an order that explains the operations in real time, or None."""
    from distlab.agree import Register
    from distlab.agree.checkers.search import find_order

    kept = [one for one in operations if one.outcome != "failed"]
    return find_order(kept, Register(), inf).order


def _violates(model, operations):
    """Return whether the library says that operations violate a model."""
    from distlab import agree

    judge = getattr(agree, f"check_{model}")
    of = [agree.Register()] if model in ("linearizable", "sequential") else []
    return judge(History(operations), *of).violated


def _compare(function, histories, memory):
    """Raise if a learner's checker is wrong about a history, or has no answer."""
    histories = [[], *sorted(histories, key=lambda h: (len(h), len(_odd(h))))]
    answers, end = call(_answers, function, histories, without=WITHOUT)
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
        if call(_answers, function, [history], without=WITHOUT)[0] != [order is None]:
            found, facts["end"] = f"{found}\nAlone it is judged right.", "remembers"
        found = f"It returned {order is None} for this history:\n{shown}\n{found}"
        raise Wrong(found, **facts)
    if end == "raised":
        try:
            call(called, function, history, without=WITHOUT)
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
    """In a process: return what is said of histories, and what ended it, or ""."""
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


# ---- step 3: which model? ------------------------------------------------------------


@check("history {}")
def classified(answers, name):
    """An order proves the model, and a contradiction that no stronger one holds."""
    history, given = EIGHT_HISTORIES[name], call(dict, answers).get(name)
    try:
        fits = type(given) in (tuple, list) and len(given) == 3
        if not fits or given[0] not in ("linearizable", *STRONGER):
            raise Wrong(f"The answer is {given!r:.80}.", form=True)
        model, order, contradiction = given
        _explain(model, order, history)
        if model != "linearizable":
            _contradict(STRONGER[model], contradiction, history)
    except Wrong as wrong:
        found = f"{timeline(history)}\n{wrong.found}"
        raise Wrong(found, **wrong.facts) from None


def _explain(model, order, history):
    """Raise if the order, or the orders, that the learner gave do not prove a model."""
    if model in ("eventual", "none"):
        if _violates("converged", history) == (model == "eventual"):
            raise Wrong(f"The answer is {model!r}.", last_reads=True)
        return
    parts, orders = {"": history}, {"": order}
    if model == "causal":
        orders, parts = order, {o.client: [] for o in history if o.op == "read"}
        for client, part in parts.items():
            part += [o for o in history if client == o.client or o.op == "write"]
    if type(orders) is not dict or {*orders} != {*parts}:
        who = ", ".join(map(str, parts))
        raise Wrong(f"There has to be an order for each of: {who}.", incomplete=True)
    letters = dict(zip(history, ascii_lowercase, strict=False))
    before = _before(model, history)
    for client, part in parts.items():
        mine, values = _named(orders[client], history), {}
        if sorted(mine) != sorted(part):
            wanted = " ".join(letters[one] for one in part)
            found = f"{orders[client]!r:.60} has to name each of these once: {wanted}."
            raise Wrong(found, incomplete=True)
        for one in mine:
            if one.op == "write":
                values[one.key] = one.value
            elif one.result != (there := values.get(one.key)):
                found = f"{letters[one]}, {told(one)}, finds {there}."
                raise Wrong(f"In {orders[client]!r}, {found}", unexplained=True)
        for one, other in combinations(mine, 2):
            if (other, one) in before:
                found = f"{letters[other]} is after {letters[one]}."
                raise Wrong(f"In {orders[client]!r}, {found}", late=True)


def _named(letters, history):
    """Return the operations that are named, by "a c b", "acb", "a, c, b" or a list."""
    named = dict(zip(ascii_lowercase, history, strict=False))
    return [named[each] for each in re.findall("[a-z]", str(letters)) if each in named]


def _before(model, history):
    """Return the pairs of operations that each order of a model has to keep."""
    pairs = {(a, b) for a, b in product(history, repeat=2) if a.end < b.start}
    if model == "linearizable":
        return pairs
    pairs = {(a, b) for a, b in pairs if a.client == b.client}
    if model == "causal":
        pairs |= {(a, b) for a, b in product(history, repeat=2) if _reads(b, a)}
        while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
            pairs |= more
    return pairs


def _reads(read, write):
    read_is = read.op, write.op, read.key, read.result
    return read_is == ("read", "write", write.key, write.value)


def _contradict(model, letters, history):
    """Raise if the operations that the learner named do not contradict a model."""

    def with_sources(some):  # without its write, a read would be wrong in any model
        return {*some, *(one for one in history if any(_reads(o, one) for o in some))}

    some = with_sources(_named(letters, history))
    if not some:
        raise Wrong(f"Nothing is named that contradicts {model!r}.", unnamed=True)
    if not _violates(model, some):
        raise Wrong(f"Alone, {letters!r} are {model}.", consistent=True)
    for fewer in map(with_sources, combinations(some, len(some) - 1)):
        if len(fewer) < len(some) and _violates(model, fewer):
            found = f"Of {letters!r}, fewer are enough to contradict {model!r}."
            raise Wrong(found, too_many=True)


# ---- hints ---------------------------------------------------------------------------


def _wrong(end, feature=lambda history: True):
    """Fits where a checker is wrong in this way, and all such histories have that."""
    return lambda facts: facts["end"] == end and all(map(feature, facts["wrong"]))


def _each_read_alone(history):
    """Return whether each read could be explained if there were no other reads."""
    reads = [one for one in history if one.op == "read" and one.outcome == "ok"]
    alone = ([o for o in history if o.op == "write" or o is read] for read in reads)
    return all(_order(some) is not None for some in alone)


def _ties(history):
    """Return whether it is linearizable only if equal moments leave the order open."""
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
        "could be wrong. What do you return then?"]),
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
    Hint(_wrong("said yes", lambda history: not _violates("sequential", history)), [
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
        "An end and a start at one and the same moment leave the order open: one is "
        "before another only if its end is smaller than the other's start.",
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
    Hint(lambda f: f["form"], [
        "Is there one order of all operations that explains what was read, and keeps "
        "real time? An answer is three things: the word; the order, for 'causal' a "
        "dict of them; and the letters that contradict the next stronger model.",
        "For each read: which write has to be before it, and which must not be in "
        "between? If that can be kept together with real time, you have the order."]),
    Hint(lambda f: f["incomplete"], [
        "One order of all has every operation in it. In a causal history each client "
        "that reads has an order of its own: all writes, and what this client has "
        "read, as in {1: 'a b c', 2: 'b a d'}."]),
    Hint(lambda f: f["last_reads"], [
        "Eventual means that in the end all agree, and none that not even that is "
        "true. Write down, for each key and client, what its last read returned."]),
    Hint(lambda f: f["unexplained"], [
        "A read returns what was written to its key last before it, or None. If no "
        "place in any order is right for it, the model is too strong.",
        "Move the write that the read needs directly before it. Which rule does the "
        "new order break? If each one breaks a rule, go down a word."]),
    Hint(lambda f: f["late"], [
        "The order has to keep what is before what: for 'linearizable' in real time, "
        "for 'sequential' in each client's own order, for 'causal' along a chain of "
        "causes. If no order does and explains the reads, the model is too strong.",
        "For 'causal' draw an arrow from each operation to the next of its client, and "
        "from each write to the reads that returned it. Follow the arrows between the "
        "two."]),
    Hint(lambda f: f["unnamed"], [
        "A weaker model is only the strongest one if the next stronger one is "
        "violated. Which few operations show that?",
        "You tried to find an order for the stronger model, and got stuck. Which "
        "operations did you look at then? Begin with these."]),
    Hint(lambda f: f["consistent"], [
        "There is an order of these, for the stronger model. If there is nothing that "
        "would forbid it, nothing is wrong with the stronger model.",
        "Real time: a read of something old after something new was seen. Sequential: "
        "two clients that saw two things in opposite orders. Causal: something old, "
        "read behind a chain of arrows from something newer."]),
    Hint(lambda f: f["too_many"], [
        "Leave out what is not needed, until nothing can be left out: what is left is "
        "the reason. Cover one letter after another with a finger."]),
]
