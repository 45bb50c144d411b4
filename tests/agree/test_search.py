"""The search finds what is broken, makes it short, or says what it has explored."""

import copy
import json
import os
import pty
import random
import signal
import subprocess
import sys
from functools import partial

import pytest
from protocols import (
    BothSides,
    Counts,
    Echo,
    ForgetsToSave,
    LastToCome,
    Majority,
    ReadsOne,
    all_alike,
    all_count_alike,
    counts_well,
    nothing_stale,
    one_holder,
)

from distlab import Call, InvalidArgument, NotDeterministic
from distlab.agree import Quorum, Register, check_linearizable
from distlab.network import (
    Append,
    Client,
    EventSchedule,
    Node,
    Refuse,
    Reply,
    Send,
    Sync,
    replay,
    search,
    step_through,
)

READ = Call("read", "x")
READERS = [
    Client(0, [Call("write", "x", 1), Call("write", "x", 2)]),
    Client(1, [READ, READ]),
    Client(2, [READ]),
]
LOCKERS = [Client(0, [Call("lock")]), Client(1, [Call("lock")])]
COUNTERS = [Client(0, [Call("add", None, 5)]), Client(1, [Call("read")])]
ADDERS = [Client(0, [Call("add", None, 5)])]
SPLIT = {"splits": [([0], [1, 2])], "settled": True}
WRITERS = [Client(0, [Call("write", "x", 1), Call("write", "x", 2)])]

# name -> what is searched, its check and faults, and how many steps are enough
PLANTED = {
    "stale read": (ReadsOne, READERS, nothing_stale, {}, 6),
    "lost at a crash": (ForgetsToSave, READERS, nothing_stale, {"crashes": 1}, 13),
    "split brain": (BothSides, LOCKERS, one_holder, {"splits": 1}, 5),
    "doubled": (Counts, COUNTERS, counts_well, {"duplicates": 1}, 3),
    "overtaken": (LastToCome, WRITERS, all_alike, {"settled": True}, 6),
    "lost in a split": (Counts, ADDERS, all_count_alike, SPLIT, 4),
    "lost": (Counts, ADDERS, all_count_alike, {"drops": 1, "settled": True}, 3),
}


# What each must contain, so that every kind of step is seen to be needed.
KINDS = {
    "lost at a crash": {"crash", "restart"},
    "split brain": {"timer"},
    "doubled": {"duplicate"},
    "lost in a split": {"split", "heal"},
    "lost": {"drop"},
}


def searched(name, seed=0, **more):
    make, clients, check, faults, _ = PLANTED[name]
    return search(make, 3, clients, check, seed=seed, within_s=60, **faults, **more)


@pytest.fixture(scope="module")
def found():
    return {name: searched(name) for name in PLANTED}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_and_the_schedule_is_short(name, found):
    assert found[name]
    assert len(found[name].schedule) <= PLANTED[name][-1] <= 15
    assert KINDS.get(name, set()) <= {step.kind for step in found[name].schedule}
    words = repr(found[name])
    assert f"{len(found[name].schedule)}. " in words and found[name].why in words


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_found_plays_the_same_every_time_and_breaks_the_check(name, found):
    check = PLANTED[name][2]
    once, again = found[name].replay(), found[name].replay()
    assert once.trace.events == again.trace.events == found[name].outcome.trace.events
    assert list(once.history) == list(again.history)
    try:
        assert check(once) is False
    except AssertionError:
        pass
    times = {event.start for event in once.trace.events}
    assert times <= set(map(float, range(len(found[name].schedule))))
    assert once.trace.who == "node" and once.trace.clients == len(PLANTED[name][1])


@pytest.mark.parametrize("name", PLANTED)
def test_no_step_of_what_is_found_can_be_left_out(name, found):
    make, clients, check, faults, _ = PLANTED[name]
    steps = list(found[name].schedule)
    for at in range(len(steps)):
        rest = steps[:at] + steps[at + 1 :]
        played = fitting(make, clients, rest)
        outcome = replay(make, 3, clients, played, check)
        if faults.get("settled") and not is_settled(outcome):
            continue
        assert not outcome.violated, f"without {steps[at]}"


def fitting(make, clients, steps):
    """Return those of the steps that can be played one after another."""
    kept = []
    for step in steps:
        tried = replay(make, 3, clients, EventSchedule([*kept, step]))
        if not tried.stopped:
            kept.append(step)
    return EventSchedule(kept)


def is_settled(replayed):
    """Whether nothing is under way, and the network whole."""
    kinds = [step.kind for step in replayed.schedule]
    events = replayed.outcome.trace.events
    sent = {e.step for e in events if e.kind == "send"}
    lost = {e.step for e in events if e.label.startswith("dropped")}
    got = {e.step for e in events if e.kind == "recv"}
    return not sent - lost - got and kinds.count("split") == kinds.count("heal")


def test_the_same_seed_finds_the_same_schedule():
    assert searched("split brain").schedule == searched("split brain").schedule


def test_a_schedule_goes_through_json_and_is_read_by_sentences(found):
    for name, one in found.items():
        text = json.dumps(one.schedule.to_json())
        assert EventSchedule(text) == EventSchedule(json.loads(text)) == one.schedule
        make, clients, check, _, _ = PLANTED[name]
        assert replay(make, 3, clients, text, check).violated
    odd = EventSchedule(["node 1 gets 'it's 'x' from node 0' from node 2"])
    assert (odd[0].a, odd[0].b, odd[0].words) == (2, 1, "it's 'x' from node 0")
    assert str(odd[0]) == "node 1 gets 'it's 'x' from node 0' from node 2"


def test_on_a_mended_node_a_schedule_is_fine_or_says_where_it_no_longer_fits(found):
    schedule = found["stale read"].schedule
    mended = replay(Majority, 3, READERS, schedule, nothing_stale)
    assert not mended.violated
    assert "no longer" not in repr(mended) and 0 < mended.fits <= len(schedule)

    class SaysMore(ReadsOne):
        def on_message(self, sender, message):
            return super().on_message(sender, message[:3])

        def to_all(self, word, request, copy):
            return [Send(peer, (word, request, copy, "more")) for peer in self.peers]

    assert replay(SaysMore, 3, READERS, schedule, nothing_stale).violated
    silent = replay(Echo, 3, READERS, schedule)
    assert silent.fits == 1 and silent.stopped == "under way is nothing"
    assert f"1 steps fit; then '{schedule[1]}' does not" in repr(silent)


def test_nothing_is_found_in_a_right_protocol_and_it_is_said_what_was_explored():
    clients = [Client(0, [Call("write", "x", 1)]), Client(1, [READ])]
    nothing = search(Majority, 3, clients, nothing_stale, within_s=120)
    assert not nothing and nothing.explored.complete
    assert nothing.explored.states > 100
    assert "all schedules there are" in repr(nothing)
    short = search(Majority, 3, READERS, nothing_stale, crashes=1, within_s=0.5)
    assert not short and not short.explored.complete
    assert "at random" in repr(short) and "crashes=1 in each" in repr(short)
    cut = search(Majority, 3, clients[:1], nothing_stale, steps=4, within_s=120)
    assert not cut.explored.complete  # a schedule needs nine steps to its end


class Passes(Node):
    """Tells the others what it was asked, and answers when the first has heard it.

    What it answers is the order in which it has heard of things.
    """

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.heard, self.asked = [], {}

    def on_client(self, request, call):
        self.heard.append(call.value)
        self.asked[call.value] = request
        return [Send(peer, ("note", call.value)) for peer in self.peers]

    def on_message(self, sender, message):
        word, value = message
        if word == "note":
            self.heard.append(value)
            return [Send(sender, ("noted", value))]
        if value in self.asked:
            return [Reply(self.asked.pop(value), "".join(self.heard))]


@pytest.mark.parametrize("shape", [(2, "a", "b"), (2, "ab", ""), (3, "a", "b")])
def test_all_schedules_are_those_that_a_naive_search_goes_through(shape):
    """The twin copies the nodes and tries everything; what clients are told is equal.

    No state is recognised by it, none is frozen, and nothing is looked up.
    """
    size, *words = shape
    seen = set()

    def note(outcome):
        described = [[] for _ in words]
        for op in outcome.history:
            described[op.client].append(op.result)
        seen.add(tuple(map(tuple, described)))
        return True

    clients = [
        Client(n, [Call("say", None, letter) for letter in word])
        for n, word in enumerate(words)
    ]
    nothing = search(Passes, size, clients, note, within_s=120)
    assert nothing.explored.complete
    assert seen == naive(size, words)


def naive(size, words):
    results = set()
    peers = [[p for p in range(size) if p != n] for n in range(size)]
    nodes = [Passes(n, peers[n]) for n in range(size)]
    visit(nodes, [], [0] * len(words), [[] for _ in words], words, results)
    return results


def visit(nodes, under_way, asked, described, words, results):
    ended = True
    for client, word in enumerate(words):
        if asked[client] == len(described[client]) < len(word):
            ended = False
            twin = copy.deepcopy((nodes, under_way, asked, described))
            twin[2][client] += 1
            value = word[asked[client]]
            done = twin[0][client].on_client((client, value), Call("say", None, value))
            follow(twin, client, done, words, results)
    for at, (src, dst, message) in enumerate(under_way):
        ended = False
        twin = copy.deepcopy((nodes, under_way, asked, described))
        del twin[1][at]
        done = twin[0][dst].on_message(src, message)
        follow(twin, dst, done, words, results)
    if ended:
        results.add(tuple(map(tuple, described)))


def follow(twin, node, effects, words, results):
    nodes, under_way, asked, described = twin
    for effect in effects or []:
        if isinstance(effect, Send):
            under_way.append((node, effect.to, effect.message))
        else:
            described[effect.request[0]].append(effect.result)
    visit(nodes, under_way, asked, described, words, results)


def test_a_real_store_is_searched_with_a_real_checker_and_found_stale():
    reads_one = partial(Quorum, reads=1, write_back=False)
    clients = [Client(0, [Call("write", "x", 1)]), Client(1, [READ])]
    found = search(reads_one, 3, clients, linearizable, within_s=60)
    assert len(found.schedule) <= 15
    verdict = linearizable(found.replay())
    assert verdict.violated and verdict.why == found.why
    shown = found._repr_mimebundle_()
    assert "1. client 0 asks node 0: write x 1" in shown["text/html"]
    assert "<svg" in shown["text/html"] and shown["text/plain"] == repr(found)
    mended = replay(Quorum, 3, clients, found.schedule, linearizable)
    assert not mended.violated


def linearizable(outcome):
    return check_linearizable(outcome.history, Register())


def test_an_invariant_is_looked_at_after_every_step():
    def never_two(nodes):
        assert sum(node.holder == node.me for node in nodes if node) < 2, "two holders"

    found = search(BothSides, 3, LOCKERS, invariant=never_two)
    assert found.why.startswith("never_two raised AssertionError: two holders")
    assert [step.kind for step in found.schedule] == ["call", "call"]


def test_the_schedule_that_is_returned_is_the_shortest_there_is():
    def not_both_answered(outcome):
        return sum(op.outcome == "ok" for op in outcome.history) < 2

    clients = [Client(0, [Call("write", "x", 1)]), Client(1, [READ])]
    found = search(Majority, 3, clients, not_both_answered)
    assert len(found.schedule) == 10  # two calls, each with two round trips
    assert not not_both_answered(found.replay())


def test_a_node_that_raises_in_some_order_is_found_with_its_story():
    class Trusts(Node):
        def on_client(self, request, call):
            return [Send(1, ("first", 1)), Send(1, ("second", 2)), Reply(request)]

        def on_message(self, sender, message):
            word, value = message
            if word == "first":
                self.first = value
            else:
                assert self.first < value

    found = search(Trusts, 2, [Client(0, [Call("go")])], lambda outcome: True)
    assert [step.kind for step in found.schedule] == ["call", "deliver"]
    assert "node 1 (Trusts) raised AttributeError" in found.why
    outcome = found.replay()
    assert outcome.trace.events[-1].label == "raised AttributeError"


def test_clients_that_depend_on_their_answers_are_followed():
    def asks():
        answer = yield READ
        yield Call("write", "x", "seen" if answer == 1 else "not seen")

    def not_seen(outcome):
        return not any(op.value == "seen" for op in outcome.history)

    clients = [Client(0, [Call("write", "x", 1)]), Client(1, asks)]
    found = search(Majority, 3, clients, not_seen)
    assert found and not not_seen(found.replay())
    with pytest.raises(InvalidArgument, match="without calling it"):
        search(Majority, 3, [Client(0, asks())], nothing_stale)


def test_a_node_that_is_not_deterministic_is_told_instead_of_a_wrong_schedule():
    class Dice(Echo):
        def on_client(self, request, call):
            return [Reply(request, random.random())]

    with pytest.raises(NotDeterministic, match="not deterministic"):
        search(Dice, 2, WRITERS, lambda outcome: True)


def test_what_cannot_be_copied_is_named():
    class Holds(Echo):
        def on_start(self, saved):
            self.numbers = (n for n in range(9))

    with pytest.raises(InvalidArgument, match="holds a generator, in numbers"):
        search(Holds, 2, WRITERS, lambda outcome: True)


def test_a_search_goes_on_from_a_schedule():
    start = ["client 0 asks node 0: write x 1", "node 1 gets 'ask 1 None' from node 0"]
    found = search(ReadsOne, 3, READERS, nothing_stale, start=start)
    assert found.schedule.to_json()[:2] == start
    assert replay(ReadsOne, 3, READERS, found.schedule, nothing_stale).violated
    twice = "start does not fit: 'client 0 asks .*', but client 0 still waits"
    with pytest.raises(InvalidArgument, match=twice):
        search(ReadsOne, 3, READERS, nothing_stale, start=[start[0]] * 2)


class Wal(Node):
    """Appends what it is given, and answers before (or after) it is durable."""

    def __init__(self, me, peers, early=False):
        super().__init__(me, peers)
        self.early = early

    def on_start(self, saved):
        self.items = saved.get("items", [])

    def on_client(self, request, call):
        self.items.append(call.value)
        reply = [Reply(request)] if self.early else []
        return [Append("items", call.value), Sync(request), *reply]

    def on_synced(self, request):
        return None if self.early else [Reply(request)]


@pytest.mark.parametrize("fault", ["crashes", "power_losses", "disk_losses"])
@pytest.mark.parametrize("early", [False, True])
def test_disks_lose_in_a_search_what_no_sync_covers(fault, early):
    clients = [Client(0, [Call("add", None, 1), Call("add", None, 2)])]

    def kept(outcome):
        done = [op.value for op in outcome.history if op.outcome == "ok"]
        return all(node is None or {*done} <= {*node.items} for node in outcome.nodes)

    make = partial(Wal, early=early)
    found = search(make, 1, clients, kept, **{fault: 1}, within_s=60)
    assert bool(found) == (fault == "disk_losses" or (early and fault[0] == "p"))
    assert found or found.explored.complete


def test_a_link_is_cut_one_way_and_clocks_jump_only_as_steps():
    class Asks(Node):
        def on_start(self, saved):
            self.due_s, self.heard = 1.0, False

        def on_client(self, request, call):
            late = self.clock_s >= self.due_s
            return [Send(1, "ping"), Reply(request, "late" if late else "soon")]

        def on_message(self, sender, message):
            self.heard = True
            return [Send(0, "pong")] if self.me else None

    clients = [Client(0, [Call("ask")])]

    def half(outcome):
        return not (outcome.nodes[1].heard and not outcome.nodes[0].heard)

    def soon(outcome):
        return all(op.result != "late" for op in outcome.history)

    how = {"settled": True, "within_s": 60}
    assert not search(Asks, 2, clients, half, **how)
    cut = search(Asks, 2, clients, half, cuts=1, **how)
    assert "the link from node 1 to node 0 is cut" in cut.schedule.to_json()
    assert not search(Asks, 2, clients, soon, **how)
    late = search(Asks, 2, clients, soon, clock_jumps=1)
    clock, _ = late.schedule.to_json()
    assert clock == "the clock of node 0 reads 3600.0"


def test_clients_retry_in_a_search_with_the_same_request():
    class Once(Node):
        def on_start(self, saved):
            self.seen = []

        def on_client(self, request, call):
            if self.me == 0:
                return [Refuse(request, to=1)]
            self.seen.append(request)
            return [Reply(request)]

    def never_asked(nodes):
        return not nodes[1].seen

    clients = [Client(0, [Call("go")], retries=1)]
    found = search(Once, 2, clients, invariant=never_asked)
    asks = ["client 0 asks node 0: go", "client 0 asks node 1: go"]
    assert found.schedule.to_json() == asks
    (operation,) = found.outcome.history
    assert (operation.start, operation.end, operation.outcome) == (0.0, 1.0, "ok")
    assert not search(Once, 2, [Client(0, [Call("go")])], invariant=never_asked)
    with pytest.raises(InvalidArgument, match="client 0's retries"):
        search(Once, 2, [Client(0, [], retries=-1)], invariant=never_asked)


def test_the_next_step_is_picked_by_hand_and_taken_back(found):
    run = step_through(ReadsOne, 3, READERS, nothing_stale)
    first = run.take(1).schedule
    assert first.to_json() == ["client 0 asks node 0: write x 1"]
    assert str(run.steps[0]) == "node 1 gets 'ask 1 None' from node 0"
    run.take("node 2 crashes").back()
    assert run.schedule == first and run.nodes[2] is not None and not run.why
    for step in found["stale read"].schedule.to_json()[1:]:
        run.take(step)
    assert run.why == "nothing_stale returned False" and run.why in repr(run)
    assert nothing_stale(run.outcome()) is False
    with pytest.raises(InvalidArgument, match="'node 9 crashes' cannot be next"):
        run.take("node 9 crashes")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"check": None}, "give one of these"),
        ({"check": 3}, "check is a function"),
        ({"check": lambda outcome: "fine"}, "returned 'fine'"),
        ({"crashes": -1}, "crashes is a number from 0"),
        ({"splits": [([0], [1])]}, "have every node once"),
        ({"splits": "all"}, "splits is a number"),
        ({"within_s": None}, "within_s is a number of seconds"),
        ({"nodes": 1000}, "nodes is a number from 1 to 100"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    given = {"nodes": 3, "clients": READERS, "check": nothing_stale} | arguments
    with pytest.raises(InvalidArgument, match=words):
        search(Echo, **given)


def test_sentences_that_are_no_steps_are_named():
    with pytest.raises(InvalidArgument, match="'node 1 sleeps' is no step"):
        EventSchedule(["node 1 sleeps"])
    with pytest.raises(InvalidArgument, match="3 is no step"):
        EventSchedule([3])


LONG = """
from distlab import Call
from distlab.network import Client, search
import sys; sys.path.insert(0, {tests!r})
from protocols import Majority, nothing_stale
calls = [Call("write", "x", 1), Call("read", "x")]
clients = [Client(n, calls) for n in range(3)]
try:
    print(search(Majority, 3, clients, nothing_stale, within_s={within_s}))
except KeyboardInterrupt:
    print("back in the cell")
"""


def test_a_long_search_says_how_far_it_is_and_ctrl_c_ends_it():
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = LONG.format(tests=tests, within_s=100)
    terminal, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=theirs)
    os.close(theirs)
    written = b""
    while b"schedules" not in written:
        written += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    written += os.read(terminal, 4096)
    os.close(terminal)
    assert b"searching, " in written and b" of 100 s: " in written
    assert written.endswith(b"\r\x1b[K\rback in the cell\r\n")
