"""A monitor remembers what crashes erase: in a search, in random runs, in a replay."""

import pytest

from distlab import Call, InvalidArgument
from distlab.network import (
    Client,
    Monitor,
    Node,
    Reply,
    Save,
    fuzz,
    replay,
    search,
    step_through,
)


class Counts(Node):
    """Counts its calls; what it has counted is lost in a crash, unless it is saved."""

    saves = False

    def on_start(self, saved):
        self.count = saved.get("count", 0)

    def on_client(self, request, call):
        self.count += 1
        kept = [Save("count", self.count)] if self.saves else []
        return [*kept, Reply(request, self.count)]


class Saves(Counts):
    saves = True


class NeverLess(Monitor):
    def __init__(self):
        self.most = {}

    def observe(self, nodes, node):
        if nodes[node] is None:
            return True
        before = self.most.get(node, 0)
        self.most[node] = nodes[node].count
        if nodes[node].count < before:
            raise AssertionError(f"node {node} forgot its count")


CLIENTS = [Client(0, [Call("count")] * 2), Client(1, [Call("count")])]


def found_by(how, make):
    if how == "search":
        return search(make, 2, CLIENTS, monitors=[NeverLess], crashes=1, within_s=60)
    faults = {"crashes": 2, "runs": 300, "within_s": 60}
    return fuzz(make, 2, CLIENTS, monitors=[NeverLess()], **faults)


@pytest.mark.parametrize("how", ["search", "fuzz"])
def test_what_a_crash_erases_is_remembered_by_a_monitor(how):
    found = found_by(how, Counts)
    assert found.why.startswith("NeverLess raised AssertionError: node ")
    assert [s.kind for s in found.schedule] == ["call", "crash", "restart"]
    assert not found_by(how, Saves)


def test_a_monitor_sees_the_same_events_in_a_search_and_a_replay():
    found = found_by("search", Counts)
    again = replay(Counts, 2, CLIENTS, found.schedule, monitors=NeverLess)
    assert again.violated and again.why == found.why
    assert not replay(Saves, 2, CLIENTS, found.schedule, monitors=NeverLess).violated
    run = step_through(Counts, 2, CLIENTS, monitors=[NeverLess], start=found.schedule)
    assert run.why == found.why and f"Wrong: {found.why}" in repr(run)


def test_a_monitor_is_called_once_for_each_event_with_the_node_that_has_acted():
    seen = []

    class Notes(Monitor):
        def observe(self, nodes, node):
            seen.append((node, [bool(each) for each in nodes]))

    steps = ["client 1 asks node 1: count", "node 1 crashes", "node 1 starts again"]
    replay(Counts, 2, CLIENTS, steps, monitors=[Notes])
    both, one = [True, True], [True, False]
    assert seen == [(0, one), (1, both), (1, both), (1, one), (1, both)]


class Mute(Monitor):
    pass


class Holds(NeverLess):
    def __init__(self):
        super().__init__()
        self.source = (n for n in range(3))


@pytest.mark.parametrize(
    "monitors, words",
    [
        ([3], "subclasses of Monitor with an observe.*got 3"),
        (Mute, "with an observe"),
        ([Holds], "Holds holds a generator, in source"),
        ([], "give one of these"),
    ],
)
@pytest.mark.parametrize("find", [search, fuzz])
def test_what_is_no_monitor_is_named(monitors, words, find):
    with pytest.raises(InvalidArgument, match=words):
        find(Counts, 2, CLIENTS, monitors=monitors)
