"""Every checker beside brute force, on thousands of small histories."""

import random
from collections import Counter

import pytest
from brute import (
    has_versions,
    is_causal,
    is_causal_by_axioms,
    is_linearizable,
    is_sequential,
)
from histories import CALLS, FRESH, corrupted, linearizable, once, shifted, weak
from soaks import repeats

from distlab import History
from distlab.agree import (
    CasRegister,
    KeyValue,
    Lock,
    Queue,
    Register,
    Set,
    check_causal,
    check_converged,
    check_linearizable,
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_sequential,
    check_writes_follow_reads,
)
from distlab.agree.checkers.forced_order import Forced

MODELS = {
    model.__name__: model
    for model in (Register, CasRegister, KeyValue, Queue, Lock, Set)
}
INITIAL = {"Queue": (), "Lock": False, "Set": frozenset()}
YES_NO = [True, False]
WRONG = {
    "Register": {"read": [None, 0, 1, 2]},
    "CasRegister": {"read": [None, 0, 1, 2, 3], "cas": YES_NO},
    "KeyValue": {"read": [None, "a", "b", "c", "ab", "ba", "aa"]},
    "Queue": {"dequeue": [None, 0, 1, 2]},
    "Lock": {"acquire": YES_NO, "release": YES_NO},
    "Set": {
        "contains": YES_NO,
        "add": [True, False, None],
        "remove": YES_NO,
        "read": [frozenset(), frozenset([0]), frozenset([0, 1])],
    },
}
GUARANTEES = {
    "read your writes": check_read_your_writes,
    "monotonic reads": check_monotonic_reads,
    "monotonic writes": check_monotonic_writes,
    "writes follow reads": check_writes_follow_reads,
}


def coarse(history):
    """Return the history with times so coarse that many are equal."""
    return History(
        o._replace(
            start=int(o.start * 2), end=None if o.end is None else int(o.end * 2)
        )
        for o in history
    )


def small(chance, name, number):
    """Return a small history of a model: right or wrong, of one key or two."""
    calls, fresh = CALLS[name], FRESH.get(name, lambda: None)
    about = chance.randrange(1, 8), chance.randrange(1, 5)
    unknown, keys = chance.choice([0, 0.2]), chance.choice([1, 1, 2])
    if name == "Register" and number % 3 == 0:
        return weak(chance, *about, keys, unknown, repeat=number % 2)
    history = linearizable(chance, *about, calls, fresh, unknown=unknown, keys=keys)
    if number % 2:
        history = corrupted(chance, history, WRONG[name], chance.choice([1, 2]))
    return coarse(history) if number % 3 == 1 else history


def without(history, part):
    """Return what is in a history and not in a part of it, and was not refused."""
    mine = {id(o) for o in part}
    return [o for o in history if id(o) not in mine and o.outcome != "failed"]


def hold_against(verdict, history, explains, counts):
    """Hold a verdict against brute force: `explains(operations, optional)`."""
    explained = explains(list(history), ())
    if verdict.ok:
        assert explained, verdict
    elif verdict.inconclusive:
        assert explained, "what cannot be explained is violated"
    else:
        assert not explained, verdict
        kept = list(verdict.smallest)
        assert not explains(kept, ())
        rest = [o for o in without(history, kept) if o.key in {k.key for k in kept}]
        judged = [o for o in history if o in kept or o in rest]
        certain = [o for o in rest if o.end is not None]
        assert not explains(judged, certain), "what was left out would explain it"
    counts[verdict.answer] += 1


@repeats(200, 1200)
@pytest.mark.parametrize("name", MODELS)
def test_linearizable_is_what_brute_force_says(name, count):
    counts = Counter()
    for number in range(count):
        history = small(random.Random(f"{name} {number}"), name, number)
        verdict = check_linearizable(history, MODELS[name]())

        def explains(operations, optional):
            return is_linearizable(operations, INITIAL.get(name), optional)

        hold_against(verdict, history, explains, counts)
        if verdict.violated and "Register" in name:
            kept = list(verdict.smallest)
            found = {o.result for o in kept if o.op == "read" and o.end} - {None}
            assert found & written(history, kept[0].key) <= written(kept, kept[0].key)
        if verdict.ok:
            order = verdict.witness
            pinned = [o._replace(start=i, end=i) for i, o in enumerate(order)]
            assert {id(o) for o in order} >= {id(o) for o in history if o.end}
            assert is_linearizable(as_if_answered(pinned, order), INITIAL.get(name))
            assert in_time(order)
    assert min(counts["ok"], counts["violated"]) > count / 6


@repeats(250, 1500)
def test_what_values_alone_refute_brute_force_refutes_too(monkeypatch, count):
    monkeypatch.setattr("distlab.agree.checkers.order_search._LONG", 1)
    refuted, counts = Counter(), Counter()
    for number in range(count):
        chance = random.Random(number)
        history = once(chance, chance.randrange(3, 9), 4, unknown=0.1)
        if number % 2:
            values = [None, *(o.value for o in history if o.op == "write")]
            history = corrupted(chance, history, {"read": values}, 2)
        if number % 3 == 0:
            history = coarse(history)
        done = [o for o in history if o.outcome != "failed"]
        alone = Forced(done, Register(), timed=True).refuted
        explained = is_linearizable(done, None)
        assert not (alone and explained)
        refuted[alone, explained] += 1
        hold_against(
            check_linearizable(history, Register()),
            history,
            lambda operations, optional: is_linearizable(operations, None, optional),
            counts,
        )
    assert min(counts["ok"], counts["violated"]) > count / 10
    assert refuted[True, False] > 0.8 * refuted[False, False]


@repeats(200, 1200)
@pytest.mark.parametrize("name", MODELS)
def test_sequential_is_what_brute_force_says(name, count):
    counts = Counter()
    for number in range(count):
        chance = random.Random(f"{name} {number} without time")
        history = small(chance, name, number)
        if chance.random() < 0.5:
            history = shifted(chance, history)
        verdict = check_sequential(history, MODELS[name]())

        def explains(operations, optional):
            return is_sequential(operations, INITIAL.get(name), optional)

        hold_against(verdict, history, explains, counts)
        if verdict.ok:
            order = verdict.witness
            pinned = [o._replace(start=i, end=i) for i, o in enumerate(order)]
            assert is_linearizable(as_if_answered(pinned, order), INITIAL.get(name))
            for client in history.clients:
                mine = [o for o in order if o.client == client and o.end is not None]
                assert mine == [o for o in history.of(client) if o.outcome == "ok"]
    assert min(counts["ok"], counts["violated"]) > count / 6


def written(operations, key):
    """Return the values that may have been written to a key."""
    mine = [o for o in operations if o.key == key and o.outcome != "failed"]
    plain = {o.value for o in mine if o.op == "write"}
    return plain | {o.value[1] for o in mine if o.op == "cas" and o.result is not False}


def as_if_answered(pinned, order):
    """Return the operations at moments of their own, each by another client."""
    return [
        o._replace(client=i) if was.end is not None else unanswered(o, i)
        for i, (o, was) in enumerate(zip(pinned, order, strict=True))
    ]


def unanswered(operation, number):
    """Return an operation that took effect, though nobody knows its answer."""
    return operation._replace(client=number, start=number, end=None)


def in_time(order):
    """Return whether no operation comes after one that was called after its answer."""
    return not any(
        later.end is not None and later.end < o.start
        for i, o in enumerate(order)
        for later in order[i:]
    )


def plain(explains):
    """Return `explains` with those that are left open as of unknown outcome."""

    def unsure(operations, optional):
        open_ = {id(o) for o in optional}
        return explains(
            [
                o._replace(end=None, outcome="unknown", result=None)
                if id(o) in open_
                else o
                for o in operations
            ]
        )

    return unsure


def loose(number, most=8):
    """Return a small history of reads and writes that may be of any weak model."""
    chance = random.Random(f"loose {number}")
    about = chance.randrange(2, most), chance.randrange(1, 5), chance.choice([1, 2])
    unknown, repeat = chance.choice([0, 0.2]), number % 3 == 0
    return weak(chance, *about, unknown, repeat, rough=chance.choice([0.3, 0.9]))


@repeats(300, 2500)
def test_causal_is_what_brute_force_says(count):
    counts = Counter()
    for number in range(count):
        history = loose(number)
        hold_against(check_causal(history), history, plain(is_causal), counts)
    assert min(counts["ok"], counts["violated"]) > count / 12


@repeats(100, 700)
def test_causal_is_what_the_axioms_say(count):
    counts = Counter()
    for number in range(count):
        history = loose(number, most=6)
        explains = plain(is_causal_by_axioms)
        hold_against(check_causal(history), history, explains, counts)
    assert min(counts["ok"], counts["violated"]) > count / 35


@repeats(300, 2000)
@pytest.mark.parametrize("name", GUARANTEES)
def test_session_guarantees_are_what_brute_force_says(name, count):
    counts = Counter()
    for number in range(count):
        history = loose(number, most=9)
        if number % 2:  # few clients that look at what the others wrote, and write
            chance = random.Random(number)
            history = weak(chance, 9, 2, chance.choice([1, 2]), 0.1, rough=0.5)

        def explains(operations):
            return has_versions(name, operations)

        verdict = GUARANTEES[name](history)
        hold_against(verdict, history, plain(explains), counts)
    assert min(counts["ok"], counts["violated"]) > count / 200


@repeats(100, 600)
def test_models_are_ordered_from_strong_to_weak(count):
    for number in range(count):
        chance = random.Random(number)
        history = once(chance, 12, 3, 2, unknown=0.1)
        if number % 3 == 0:
            history = weak(chance, 12, 3, 2)
        linear, sequential = (
            check(history, Register())
            for check in (check_linearizable, check_sequential)
        )
        causal = check_causal(history)
        assert not (linear.ok and sequential.violated)
        assert not (sequential.ok and causal.violated)
        for check in GUARANTEES.values():
            assert not (sequential.ok and check(history).violated)


@repeats(250, 1500)
def test_converged_is_what_the_definition_says(count):
    counts = Counter()
    for number in range(count):
        chance = random.Random(number)
        history = weak(chance, chance.randrange(2, 12), 3, 2, unknown=0.1)
        verdict = check_converged(history, quiet_s=0)
        final = {}
        for o in history:
            if o.op == "write":
                for other in [k for k in final if k[0] == o.key]:
                    del final[other]
            elif o.outcome == "ok":
                final[o.key, o.client] = o.result
        found = [
            {value for (k, _), value in final.items() if k == key}
            for key in {o.key for o in history if o.op == "write"}
        ]
        written = {o.value for o in history if o.op == "write"}
        lost = [  # nothing, though a write of the key was answered
            key
            for (key, _), value in final.items()
            if value is None
            and any(o.key == key and o.op == "write" and o.end for o in history)
        ]
        wrong = bool(lost) or any(len(values) > 1 for values in found)
        assert verdict.violated == wrong, verdict
        if verdict.ok:
            assert all(values <= written | {None} for values in found)
        counts[verdict.answer] += 1
    assert min(counts["ok"], counts["violated"]) > count / 30
