"""CRDTs: their laws over random values, their meaning, and convergence by search."""

import random
from functools import partial, reduce

import pytest

from distlab.agree.crdts import (
    GCounter,
    LWWMap,
    OperationBased,
    ORSet,
    PNCounter,
    StateBased,
    operation,
)
from distlab.errors import InvalidArgument
from distlab.network import Client, search, simulate
from distlab.trace import Call

REPLICAS = 3
KINDS = [GCounter, PNCounter, ORSet, LWWMap]


NAMES = ["add", "decrement", "increment", "put", "remove"]


class Updates:
    """Random operations on three replicas, and which of them each replica knows.

    log: every operation, with the set of the earlier ones that its replica knew.
    """

    def __init__(self, kind, seed):
        self.chance, self.log = random.Random(seed), []
        self.values, self.known = [kind.empty(REPLICAS)] * REPLICAS, [set()] * REPLICAS

    def step(self):
        here, there = self.chance.choices(range(REPLICAS), k=2)
        value, key = self.values[here], self.chance.choice("abc")
        name = self.chance.choice([n for n in NAMES if hasattr(value, n)])
        if self.chance.random() < 0.4:
            self.values[here] = value.merge(self.values[there])
            self.known[here] = self.known[here] | self.known[there]
        elif name != "remove" or key in value.value:
            item = {"add": key, "remove": key, "put": (key, len(self.log))}
            argument = item.get(name, self.chance.randrange(5))
            self.values[here] = getattr(value, name)(here, argument)
            self.log.append((name, argument, here, self.known[here]))
            self.known[here] = self.known[here] | {len(self.log) - 1}


def counted(log, known):
    signs = {"increment": 1, "decrement": -1}
    return sum(signs[log[at][0]] * log[at][1] for at in known)


def added(log, known):
    """Return the set by its definition: some add of the element is in no removal."""
    removals = [log[at] for at in known if log[at][0] == "remove"]
    gone = {(at, element) for _, element, _, before in removals for at in before}
    adds = [(at, log[at][1]) for at in known if log[at][0] == "add"]
    return {element for at, element in adds if (at, element) not in gone}


def put_last(log, known):
    """Return the map of the last writes, by logical times that are counted anew."""
    times, last = [], {}
    for _, _, replica, before in log:
        times.append((1 + max((times[at][0] for at in before), default=0), replica))
    for at in sorted(known, key=lambda at: times[at]):
        name, argument, *_ = log[at]
        last |= {argument: None} if name == "remove" else dict([argument])
    return {key: value for key, value in last.items() if value is not None}


MEANING = {GCounter: counted, PNCounter: counted, ORSet: added, LWWMap: put_last}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_a_value_is_what_the_known_operations_make_it(kind, seed):
    updates = Updates(kind, seed)
    for _ in range(60):
        updates.step()
        for value, known in zip(updates.values, updates.known, strict=True):
            assert value.value == MEANING[kind](updates.log, known)


@pytest.mark.parametrize("kind", KINDS)
def test_a_merge_is_commutative_associative_idempotent_and_inflationary(kind):
    updates, values = Updates(kind, 0), [kind.empty(REPLICAS)]
    for step in range(60):
        before = list(updates.values)
        updates.step()
        for old, new in zip(before, updates.values, strict=True):
            assert old.merge(new) == new, "an update is no less than what it updates"
        values += updates.values if step % 15 == 14 else []
    for a in values:
        assert a.merge(a) == a
        for b in values:
            assert a.merge(b) == b.merge(a)
            assert a.merge(a.merge(b)) == a.merge(b)
            for c in values:
                assert a.merge(b).merge(c) == a.merge(b.merge(c))


def test_a_set_that_was_emptied_keeps_nothing_of_its_elements():
    empty = ORSet.empty(1)
    for element in range(50):
        empty = empty.add(0, element).remove(0, element)
    assert empty == ORSet((50,), ())


INCREMENT, DECREMENT = Call("increment", "k"), Call("decrement", "k", 2)
ADD, REMOVE = Call("add", "k", "milk"), Call("remove", "k", "milk")
PUT, PUT_TOO, DROP = (
    Call(name, "k", item)
    for name, item in [("put", ("a", 1)), ("put", ("a", 2)), ("remove", "a")]
)
CLIENTS = {
    GCounter: [Client(0, [INCREMENT]), Client(1, [INCREMENT])],
    PNCounter: [Client(0, [INCREMENT]), Client(1, [DECREMENT])],
    ORSet: [Client(0, [ADD, REMOVE]), Client(1, [ADD])],
    LWWMap: [Client(0, [PUT, DROP]), Client(1, [PUT_TOO])],
}


def held(node):
    return getattr(node, "held", None) or getattr(node, "copies", {})


def converged(outcome):
    """Compare the replicas' values."""
    first, *others = (held(node) for node in outcome.nodes)
    values = [node["k"].value for node in map(held, outcome.nodes) if node]
    assert all(each == first for each in others), f"the replicas hold {values}"


def exchanged(outcome):
    """Compare what the replicas hold when each has received from all, in its order."""
    values = [node.held.get("k", node.nothing) for node in outcome.nodes if node]
    orders = (values[at:] + values[:at] for at in range(len(values)))
    ends = [reduce(type(values[0]).merge, order) for order in orders]
    assert all(end == ends[0] for end in ends), f"the replicas hold {ends}"


def equal_if_equally_old(nodes):
    """Compare the replicas that have taken the same operations."""
    copies = {}
    for node in filter(None, nodes):
        assert copies.setdefault(node.clock, node.copies) == node.copies


@pytest.mark.parametrize("store", [StateBased, OperationBased])
@pytest.mark.parametrize("kind", KINDS)
def test_two_replicas_converge_under_every_schedule_there_is(kind, store):
    make, limits = partial(store, kind=kind), {"duplicates": 1, "timers": 1}
    found = search(make, 2, CLIENTS[kind], converged, settled=True, **limits)
    assert not found, found
    assert found.explored.complete


@pytest.mark.parametrize("kind", [PNCounter, ORSet, LWWMap])
@pytest.mark.parametrize(
    ("store", "rule"),
    [
        (StateBased, {"check": exchanged}),
        (OperationBased, {"invariant": equal_if_equally_old}),
    ],
)
def test_three_replicas_converge_whatever_crashes_or_is_dropped(kind, store, rule):
    make, faults = partial(store, kind=kind), {"crashes": 1, "drops": 1}
    found = search(make, 3, CLIENTS[kind], **rule, **faults, within_s=0.2)
    assert not found, found


class AddsWhatItReceives(GCounter):
    def merge(self, other):
        pairs = zip(self.counts, other.counts, strict=True)
        return self._replace(counts=tuple(a + b for a, b in pairs))


class RemovesByValue(ORSet):
    @operation
    def remove(self, replica, element):
        return ("by value", element)

    def applied(self, prepared):
        if prepared[0] != "by value":
            return super().applied(prepared)
        left = tuple(each for each in self.entries if each[1] != prepared[1])
        return self._replace(entries=left)


class TimesOnly(LWWMap):
    def merge(self, other):
        latest = {entry[0]: entry for entry in self.entries}
        for entry in other.entries:
            mine = latest.get(entry[0])
            if mine is None or entry[1][0] > mine[1][0]:
                latest[entry[0]] = entry
        return self._replace(entries=tuple(latest.values()))


class NeverSaves(StateBased):
    def on_start(self, saved):
        return super().on_start({})


def nothing_lost(outcome):
    """Check that an exchange brings out every acknowledged increment."""
    counts = [node.held.get("k", node.nothing) for node in outcome.nodes]
    answered = sum(each.outcome == "ok" for each in outcome.history)
    assert reduce(GCounter.merge, counts).value >= answered


WRONG = {
    "adds what it receives": (StateBased, AddsWhatItReceives, converged, {}),
    "removes by value": (OperationBased, RemovesByValue, converged, {}),
    "compares times only": (StateBased, TimesOnly, converged, {}),
    "never saves": (NeverSaves, GCounter, nothing_lost, {"crashes": 1, "drops": 1}),
}


@pytest.mark.parametrize("name", WRONG)
def test_at_most_seven_steps_break_one_that(name):
    store, kind, check, faults = WRONG[name]
    clients = next(CLIENTS[right] for right in KINDS if issubclass(kind, right))
    make = partial(store, kind=kind)
    found = search(make, 2, clients, check, settled=True, **faults)
    assert found, found
    assert len(found.schedule) <= 7, found
    with pytest.raises(AssertionError):
        check(found.replay())


MAP = LWWMap.empty(1).put(0, ("a", "old"), 7)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: GCounter.empty(2).increment(0, -1), "decrement a PNCounter"),
        (lambda: GCounter.empty(2).increment(2), "replica 2 is unknown"),
        (lambda: PNCounter.empty(2).decrement(0, 0.5), r"0\.5"),
        (lambda: GCounter.empty(2).merge(GCounter.empty(3)), "same replicas"),
        (lambda: ORSet.empty(2).remove(1, "milk"), "replica 1 does not have 'milk'"),
        (lambda: ORSet.empty(2).add(0, ["milk"]), "cannot change"),
        (lambda: ORSet.empty(2).add("left", "milk"), "replica 'left' is unknown"),
        (lambda: LWWMap.empty(2).remove(0, "a"), "replica 0 does not have 'a'"),
        (lambda: LWWMap.empty(2).put(0, "a"), "a pair"),
        (lambda: LWWMap.empty(2).put(5, ("a", 1)), "replica 5 is unknown"),
        (lambda: MAP.put(0, ("a", 2), float("nan")), "no time"),
        (lambda: MAP.remove(0, ["a"]), "cannot change"),
        (lambda: MAP.put(0, ("a", 2), 7), "'a' at time 7: it did so before"),
        (lambda: LWWMap.empty(0), "replicas is a number.*got 0"),
    ],
)
def test_bad_input_is_named(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        wrong()


def test_a_clock_that_jumped_back_loses_the_later_write():
    assert MAP.put(0, ("a", "new"), 6.5) == MAP


@pytest.mark.parametrize("store", [StateBased, OperationBased])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_replica_refuses_what_it_cannot_do_and_serves_the_rest(store, nodes):
    calls = [REMOVE, ADD, Call("add", "k", []), INCREMENT, Call("read", "k")]
    client = Client(nodes - 1, calls)
    history = simulate(partial(store, kind=ORSet), nodes, client).history
    assert [each.outcome for each in history] == [
        "failed",
        "ok",
        "failed",
        "failed",
        "ok",
    ]
    assert list(history)[-1].result == {"milk"}
