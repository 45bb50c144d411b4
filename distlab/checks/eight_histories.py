"""Exercise 03, step 3: the strongest model of eight histories, and its proof.

    "C": ("sequential", "a c b d", "a b c")
           the model     an order   operations that contradict the next stronger model

The order has to explain the history, and the operations have to violate the stronger
model by themselves, so that a guessed word is not enough.
"""

import re
from itertools import combinations, product
from string import ascii_lowercase

from distlab.checks.consistency_models import operation, violates
from distlab.checks.kit import Hint, Wrong, call, check
from distlab.history import described, timeline

STRONGER = {"sequential": "linearizable", "causal": "sequential", "eventual": "causal"}
STRONGER["none"] = "causal"


def _history(line):
    words = [one.split() for one in line.split(", ")]
    read = [[*w[:3], None if w[3] == "None" else int(w[3]), *w[4:]] for w in words]
    return tuple(sorted((operation(*w) for w in read), key=lambda one: one.start))


EIGHT_HISTORIES = {
    "A": "0 write x 1 0 9, 2 write x 2 1 8, 1 read x 2 2 3, 1 read x 1 4 5, "
    "2 read x 1 10 11",
    "B": "0 write x 1 0 1, 0 write x 2 2 9, 2 read x 1 3 6, 1 read x 2 4 5, "
    "1 read x 2 7 8",
    "C": "0 write x 1 0 1, 0 write x 2 2 3, 1 read x 1 4 5, 1 read x 2 6 7",
    "D": "0 write x 1 0 1, 0 write x 2 2 9, 1 read x 2 3 4, 2 read x 1 5 6, "
    "2 read x 2 7 8",
    "E": "0 write x 1 0 2, 1 write x 2 1 3, 2 read x 1 4 6, 3 read x 2 5 7, "
    "2 read x 2 8 10, 3 read x 1 9 11",
    "F": "0 write x 1 0 2, 1 write y 1 1 3, 0 read y None 4 6, 1 read x None 5 7, "
    "0 read y 1 8 10, 1 read x 1 9 11",
    "G": "0 write x 1 0 1, 1 read x 1 2 3, 1 write y 2 4 5, 2 read y 2 6 7, "
    "2 read x None 8 9, 2 read x 1 10 11",
    "H": "0 write x 1 0 1, 0 write x 2 2 3, 1 read x 2 4 5, 2 read x 2 4 7, "
    "1 read x 1 6 8",
}
EIGHT_HISTORIES = {name: _history(line) for name, line in EIGHT_HISTORIES.items()}


@check("history {}")
def classified(answers, name):
    """Check an order that proves the model, and a contradiction to a stronger one."""
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
        if violates("converged", history) == (model == "eventual"):
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
                found = f"{letters[one]}, {described(one)}, finds {there}."
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
    if not violates(model, some):
        raise Wrong(f"Alone, {letters!r} are {model}.", consistent=True)
    for fewer in map(with_sources, combinations(some, len(some) - 1)):
        if len(fewer) < len(some) and violates(model, fewer):
            found = f"Of {letters!r}, fewer are enough to contradict {model!r}."
            raise Wrong(found, too_many=True)


# fmt: off
HINTS = [
    Hint(lambda f: f["form"], [
        "Is there one order of all operations that explains what was read, and keeps "
        "real time? An answer is three things: the word; the order, for 'causal' a "
        "dict of them; and the letters that contradict the next stronger model.",
        "For each read: which write has to be before it, and which must not be in "
        "between? If that can be kept together with real time, you have the order."]),
    Hint(lambda f: f["incomplete"], [
        "One order of all has every operation in it. In a causal history each client "
        "that reads has an order of its own: all writes, and what this client has "
        "read, as in {1: 'a b c', 2: 'b a d'}.",
        "Count the letters of your order, and compare them with those of the "
        "history. For 'causal' do it for each client: all writes of everyone, and no "
        "read of another client."]),
    Hint(lambda f: f["last_reads"], [
        "Eventual means that in the end all agree, and none that not even that is "
        "true. Write down, for each key and client, what its last read returned.",
        "Look at one key at a time. Do the last reads of all clients, long after the "
        "last write, return one value? If they do for every key, it is eventual."]),
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
        "the reason. Cover one letter after another with a finger.",
        "Take one letter away, and look for an order of the others in the stronger "
        "model. If there is none, the letter was not needed; if there is one, put it "
        "back and try the next."]),
]
