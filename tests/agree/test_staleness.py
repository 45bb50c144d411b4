"""How old a read is, against the definition read aloud."""

import random
from collections import Counter

from distlab.agree import workload
from distlab.agree.staleness import staleness
from distlab.history import History
from distlab.trace import Operation


def read_aloud(operations):
    """The definition, one read and one pair of writes at a time."""
    ages = []
    for read in operations:
        if read.op != "read" or read.outcome != "ok":
            continue
        writes = [w for w in operations if w.op == "write" and w.key == read.key]
        values = read.result if isinstance(read.result, tuple) else [read.result]
        per_value = []
        for value in values:
            (seen,) = [w for w in writes if w.value == value] or [None]
            later = [
                w
                for w in writes
                if w.outcome == "ok"
                and (seen is None or (seen.end is not None and w.start > seen.end))
                and w.end < read.start
            ]
            per_value.append(max((read.start - w.end for w in later), default=0.0))
        ages.append(min(per_value))
    return ages


def some_history(dice):
    operations, written = [], {"x": [None], "y": [None]}
    for number in range(dice.randrange(1, 12)):
        key, start = dice.choice("xy"), dice.random()
        outcome = dice.choice(["ok", "ok", "ok", "unknown", "failed"])
        end = None if outcome == "unknown" else start + dice.random() / 3
        if dice.random() < 0.5:
            if outcome != "failed":
                written[key].append(number)
            each = ("write", key, number, start, end, outcome)
            operations.append(Operation(number, *each))
        else:
            result = dice.choice(written[key])
            if dice.random() < 0.2 and len(written[key]) > 2:
                result = tuple(dice.sample(written[key][1:], 2))
            each = ("read", key, None, start, end, outcome, result)
            operations.append(Operation(number, *each))
    return operations


def test_a_read_is_as_old_as_the_definition_says():
    met, dice = Counter(), random.Random(1)
    for _ in range(3000):
        history = History(some_history(dice))
        ages = staleness(history)
        assert ages == read_aloud(list(history))
        met.update("stale" if age else "fresh" for age in ages)
    assert min(met["stale"], met["fresh"]) > 500


def test_a_workload_never_writes_a_value_twice_and_is_the_same_for_the_same_seed():
    clients = workload(3, 7, operations=30, keys=4, seed=5)
    calls = [call for client in clients for call in client.calls]
    values = [call.value for call in calls if call.op == "write"]
    assert len(calls) == 210 and len(values) == len(set(values)) > 60
    assert {call.key for call in calls} == set("xyzu")
    assert Counter(client.node for client in clients) == {0: 3, 1: 2, 2: 2}
    assert clients == workload(3, 7, operations=30, keys=4, seed=5)
    assert clients != workload(3, 7, operations=30, keys=4, seed=6)
