"""What nodes do wrong is told: which node, in which method, at what, and where."""

import random
import threading

import pytest

from distlab import Call, InvalidArgument, NodeFailed
from distlab.network import (
    Append,
    CancelTimer,
    Client,
    Node,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
    Truncate,
    simulate,
    watchdog,
)
from distlab.network.copies import NotPlain, plain_copy
from distlab.network.node_host import NodeHost, make_node

ONE = [Client(1, [Call("write", "x", 1)])]


def node_that(body):
    """Return a class of nodes that answer a client's call with what `body` returns."""

    class Naughty(Node):
        def on_client(self, request, call):
            return body(self, request)

    return Naughty


def story_of(make):
    with pytest.raises(NodeFailed) as caught:
        simulate(make, 3, ONE)
    error = caught.value
    assert error.node == 1 and error.trace.who == "node"
    return str(error)


@pytest.mark.parametrize(
    "body, words",
    [
        (lambda node, r: Send(0, "hello"), "put it into a list: [Send(to=0"),
        (lambda node, r: "abc", "returned 'abc'"),
        (lambda node, r: 42, "returned 42"),
        (lambda node, r: [None], "None is no effect"),
        (lambda node, r: (i for i in [7]), "yielded 7"),
        (lambda node, r: [Send(9, "hello")], "sent a message to node 9"),
        (lambda node, r: [Send("0", "hello")], "sent a message to node '0'"),
        (lambda node, r: [Send(True, "hello")], "sent a message to node True"),
        (lambda node, r: [Send(0, {"a": [node]})], "at ['a'][0] of it"),
        (lambda node, r: [Send(0, (x for x in []))], "That is a generator"),
        (lambda node, r: [Send(0, itself())], "contains itself"),
        (lambda node, r: [Reply(99)], "answered request 99"),
        (lambda node, r: [Reply(r), Reply(r)], "had answered it before"),
        (lambda node, r: [Refuse(r), Reply(r)], "had answered it before"),
        (lambda node, r: [Reply(r, open)], "answered <built-in"),
        (lambda node, r: [Save("x", node)], "saved <"),
        (lambda node, r: [Save(3, 1)], "under the name 3"),
        (lambda node, r: [Append(3, 1)], "under the name 3"),
        (lambda node, r: [Append("x", node)], "saved <"),
        (lambda node, r: [Truncate("x", -1)], "cut 'x' to -1 items"),
        (lambda node, r: [Sync([])], "named a sync []"),
        (lambda node, r: [Refuse(r, to=9)], "sent a client on to node 9"),
        (lambda node, r: [SetTimer("t", -1)], "set the timer 't' to -1"),
        (lambda node, r: [SetTimer("t", "soon")], "set the timer 't' to 'soon'"),
        (lambda node, r: [SetTimer("t", float("nan"))], "set the timer 't' to nan"),
        (lambda node, r: [SetTimer([], 1)], "named a timer []"),
        (lambda node, r: [CancelTimer({})], "named a timer {}"),
    ],
)
def test_nonsense_is_told_with_its_node_and_method(body, words):
    story = story_of(node_that(body))
    assert words in story
    assert story.startswith("node 1 (Naughty) ")
    assert "in on_client, as it took the call 'write x 1' (request 1)" in story


def itself():
    value = []
    value.append(value)
    return value


def test_an_async_method_is_told_to_be_none():
    class Waits(Node):
        async def on_client(self, request, call):
            return []

    assert "Leave `async` away" in story_of(Waits)


def test_effects_without_end_are_told():
    def forever(node, request):
        while True:
            yield Send(0, "again")

    assert "gave too many effects" in story_of(node_that(forever))


@pytest.mark.parametrize("lazy", [False, True])
def test_what_a_node_raises_is_told_with_its_own_frames_only(lazy):
    def fails(node, request):
        return [Reply(request, {}["missing"])]

    def fails_later(node, request):
        yield Send(0, "first")
        raise KeyError("missing")

    story = story_of(node_that(fails_later if lazy else fails))
    assert "node 1 (Naughty) raised KeyError: 'missing' in on_client" in story
    assert "test_effects.py, line" in story and "effects.py, line 9" not in story
    assert "/distlab/" not in story


def test_an_exit_ends_the_run_and_not_the_notebook():
    def leaves(node, request):
        raise SystemExit(3)

    assert "sys.exit(3) was called" in story_of(node_that(leaves))


def loops(node, request):
    while True:
        pass


def sleeps_and_catches(node, request):
    import time

    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass


@pytest.mark.parametrize("body", [loops, sleeps_and_catches])
@pytest.mark.parametrize("where", ["main thread", "another thread"])
def test_a_node_that_never_returns_is_ended_and_told_with_its_line(
    body, where, monkeypatch
):
    cpu_s, clock_s = (0.4, 1e9) if body is loops else (1e9, 0.4)
    monkeypatch.setattr(watchdog, "_CPU_S", cpu_s)
    monkeypatch.setattr(watchdog, "_CLOCK_S", clock_s)
    stories = []
    if where == "main thread":
        stories.append(story_of(node_that(body)))
    else:
        thread = threading.Thread(
            target=lambda: stories.append(story_of(node_that(body)))
        )
        thread.start()
        thread.join()
    assert (
        "did not return from on_client, as it took the call 'write x 1'" in stories[0]
    )
    assert f"in {body.__name__}" in stories[0]


def test_a_receiver_and_a_disk_get_copies():
    class Sender(Node):
        def on_client(self, request, call):
            self.kept = {"list": [1]}
            yield Send(0, self.kept)
            yield Send(2, self.kept)
            yield Save("kept", self.kept)
            self.kept["list"].append(2)
            yield Reply(request, self.kept)

        def on_message(self, sender, message):
            message["list"].append(self.me)
            self.got = message

    outcome = simulate(Sender, 3, [Client(1, [Call("go")])])
    assert outcome.nodes[0].got == {"list": [1, 0]}
    assert outcome.nodes[2].got == {"list": [1, 2]}
    assert outcome.saved[1] == {"kept": {"list": [1]}}
    assert outcome.nodes[1].kept == {"list": [1, 2]}
    assert outcome.history.operations[0].result is not outcome.nodes[1].kept


def test_plain_data_is_copied_where_it_can_change_and_only_there():
    for value in (1, "a", None, (1, ("b", 2.0)), frozenset({1}), b"x"):
        assert plain_copy(value) is value
    for value in ([1, [2]], {1: [2]}, {3}, (1, [2])):
        twin = plain_copy(value)
        assert twin == value and twin is not value and type(twin) is type(value)
    with pytest.raises(NotPlain) as caught:
        plain_copy([0, {"a": (1, object())}])
    assert caught.value.where == "[1]['a'][1]"


def test_a_restarted_node_may_answer_what_was_asked_before_its_crash():
    class Late(Node):
        def on_start(self, saved):
            return [Reply(saved["asked"], "late")] if saved else None

        def on_client(self, request, call):
            return [Save("asked", request)]

    from distlab import Crash

    calls = [Call("write", "x", 1), Call("write", "x", 2)]
    clients = [Client(1, calls, timeout_s=0.5)]
    outcome = simulate(Late, 2, clients, faults=[Crash(1, 0.1, until_s=0.2)])
    assert [op.outcome for op in outcome.history] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda me: None, "does not take that"),
        (lambda me, peers: 5, "returned 5, which is no Node"),
        (3, "nodes are made by a class"),
        (Node(0, [1]), "every node needs an object of its own"),
    ],
)
def test_what_makes_no_node_is_told(make, words):
    with pytest.raises(InvalidArgument, match=words):
        simulate(make, 2, ONE)


def test_a_node_without_number_and_one_with_other_arguments_are_told():
    class Nameless(Node):
        def __init__(self, me, peers):
            pass

    class Other(Node):
        def on_message(self, message):
            return []

    with pytest.raises(InvalidArgument, match=r"super\(\).__init__\(me, peers\)"):
        make_node(Nameless, 0, 2)
    with pytest.raises(InvalidArgument, match=r"on_message\(sender, message\)"):
        make_node(Other, 0, 2)


def test_a_failure_in_the_constructor_is_one_of_the_node():
    class Fails(Node):
        def __init__(self, me, peers):
            raise ValueError("no")

    with pytest.raises(NodeFailed, match="raised ValueError: no in __init__"):
        simulate(Fails, 2)


def test_the_same_seed_gives_a_node_the_same_chance():
    draws = [
        NodeHost(Node(1, [0]), 1, 2, seed=s).node.random.random() for s in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]
    assert draws[0] == random.Random("1 1").random()


def test_an_item_is_added_only_to_a_list():
    wrong = node_that(lambda node, r: [Save("x", 1), Append("x", 2)])
    with pytest.raises(InvalidArgument, match="saved as 'x' is 1, and no list"):
        simulate(wrong, 3, ONE)
