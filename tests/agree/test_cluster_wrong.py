"""What goes wrong with clusters is told in plain words, and leaves nothing behind."""

import os
import random
import resource
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from clusters import Echo, Gossip, writes

from distlab import Call, Crash, network
from distlab.errors import (
    ClusterClosed,
    InvalidArgument,
    NodeFailed,
    SwitchFailed,
)
from distlab.network import Client, Delivery, Node, Reply, Save, Send
from distlab.network.delays import UniformDelay

ONE_CALL = [Client(0, [Call("read", "x")], timeout_s=0.2)]


class Divides(Node):
    def on_client(self, request, call):
        return self.deeper()

    def deeper(self):
        return [1 / 0]


class Loops(Node):
    def on_client(self, request, call):
        return [Send(1, "around")]

    def on_message(self, sender, message):
        while True:
            pass


class Nonsense(Node):
    def on_client(self, request, call):
        return ["yes"]


class SendsAFile(Node):
    def on_client(self, request, call):
        return [Send(1, ("file", sys.stdout))]


class Leaves(Node):
    def on_client(self, request, call):
        os._exit(3)


class FillsItsDisk(Node):
    def on_client(self, request, call):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        return [Save("x", 1), Reply(request)]


class NeverMade(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        if me == 1:
            raise ValueError("not me")


@pytest.mark.parametrize(
    ("kind", "node", "method", "words"),
    [
        (
            Divides,
            0,
            "on_client",
            ["ZeroDivisionError", "'read x'", "return [1 / 0]", "in deeper"],
        ),
        pytest.param(
            Loops,
            1,
            "on_message",
            ["did not return", "'around' from node 0", "while"],
            marks=pytest.mark.soak,  # test_effects.py has shorter limits
        ),
        (Nonsense, 0, "on_client", ["'yes' is no effect"]),
        (SendsAFile, 0, "on_client", ["no plain data"]),
        (Leaves, 0, "", ["exit status 3"]),
        (FillsItsDisk, 0, "", ["File too large", "node0/journal", "TMPDIR"]),
        (NeverMade, 1, "__init__", ["ValueError: not me"]),
    ],
)
def test_a_node_that_fails_is_told_with_what_it_did(kind, node, method, words):
    with pytest.raises(NodeFailed) as caught:
        network.run(kind, 2, ONE_CALL)
    error = caught.value
    assert (error.node, error.method) == (node, method)
    assert f"node {node}" in str(error)
    assert all(word in str(error) for word in words)
    assert "distlab/network" not in str(error)
    faults = [e for e in error.trace.events if e.kind == "fault"]
    assert [e.rank for e in faults] == [node]
    if kind is Divides:
        assert isinstance(error.cause, ZeroDivisionError)
        assert faults[0].label == "raised ZeroDivisionError"


def test_after_a_failure_the_cluster_says_so_and_keeps_its_history():
    with pytest.raises(NodeFailed), network.Cluster(Divides, 2) as cluster:
        with pytest.raises(NodeFailed):
            cluster.call(0, "read")
        with pytest.raises(NodeFailed, match="ZeroDivisionError"):
            cluster.kill(1)
        assert [one.outcome for one in cluster.outcome().history] == ["unknown"]


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        ((3, 2, []), {}, "class"),
        ((Echo, 1000, []), {}, "from 1 to 64"),
        ((Echo, 2, [Client(0, iter(["read"]))]), {}, "no Call"),
        ((Echo, 2, []), {"faults": [Crash(5, 0.1)]}, "the last is 1"),
        ((Echo, 2, []), {"delivery": 3}, "Delivery"),
        ((Echo, 2, []), {"timeout_s": "soon"}, "seconds"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, more, words):
    with pytest.raises(InvalidArgument, match=words):
        network.run(*arguments, **more)


def test_what_cannot_be_done_by_hand_is_refused_and_changes_nothing():
    with network.Cluster(Echo, 3) as cluster:
        wrong = [
            (lambda: cluster.split([0], [0, 1]), "twice"),
            (lambda: cluster.split(0), "a side is a list"),
            (lambda: cluster.split(), "who is on which side"),
            (lambda: cluster.split([7]), "the last is 2"),
            (lambda: cluster.kill(3), "no node 3"),
            (lambda: cluster.kill("1"), "no node '1'"),
            (lambda: cluster.kill(1, loses="all"), "loses is one of"),
            (lambda: cluster.cut(0, 0), "twice"),
            (lambda: cluster.cut(0, 5), "the last is 2"),
            (lambda: cluster.move_clock(0, "back"), "number of seconds"),
            (lambda: cluster.move_clock(0, float("inf")), "number of seconds"),
            (lambda: cluster.move_clock(7, 1.0), "no node 7"),
            (lambda: cluster.restart(0), "kill it first"),
            (lambda: cluster.resume(0), "not paused"),
            (lambda: cluster.call(0, "write", "x", print), "plain data"),
            (lambda: cluster.call(9, "read"), "no node 9"),
            (lambda: cluster.start([Client(0, ["read"])]), "no Call"),
            (lambda: setattr(cluster, "delivery", 1), "Delivery"),
        ]
        for wrongly, words in wrong:
            with pytest.raises(InvalidArgument, match=words):
                wrongly()
        cluster.kill(0)
        with pytest.raises(InvalidArgument, match="dead already"):
            cluster.kill(0)
        with pytest.raises(InvalidArgument, match="does not run"):
            cluster.pause(0)
        assert cluster.states == ["killed", "running", "running"]
        assert cluster.call(1, "write", "x", 1).result == 1


def test_after_its_end_a_cluster_tells_and_does_nothing():
    with network.Cluster(Echo, 1) as cluster:
        cluster.call(0, "write", "x", 1)
    for late in (
        lambda: cluster.call(0, "read"),
        lambda: cluster.kill(0),
        lambda: cluster.split([0]),
        lambda: cluster.start(Client(0, writes(1))),
    ):
        with pytest.raises(ClusterClosed, match="has ended"):
            late()
    cluster.close()
    assert len(cluster.history) == len(cluster.outcome().history) == 1
    assert repr(cluster) == "Cluster: ended"


def test_a_generators_own_exception_comes_out_and_ends_the_run():
    def client():
        yield Call("read")
        raise LookupError("of mine")

    with pytest.raises(LookupError, match="of mine"):
        network.run(Echo, 1, Client(0, client))


def test_a_killed_switch_is_told_as_such():
    with pytest.raises(SwitchFailed), network.Cluster(Echo, 2) as cluster:
        nodes = set(cluster.pids)
        helpers = psutil.Process().children(recursive=True)
        (switch,) = (
            one
            for one in helpers
            if one.ppid() == psutil.Process(cluster.pids[0]).ppid()
            and one.pid not in nodes
        )
        switch.kill()
        with pytest.raises(SwitchFailed, match="SIGKILL"):
            cluster.call(0, "read", timeout_s=20)
        with pytest.raises(SwitchFailed):
            cluster.kill(1)


class NoDelay(UniformDelay):
    def draw(self, random):
        raise LookupError("no sample")


def test_a_distribution_that_draws_no_delay_is_named_with_its_link():
    delivery = Delivery(NoDelay(0, 1))
    words = r"NoDelay.* for a message from node \d to node \d: LookupError: no sample"
    with pytest.raises(SwitchFailed, match=words):
        network.run(Gossip, 2, ONE_CALL, delivery=delivery)


def test_nodes_that_answer_each_other_for_ever_do_not_keep_a_run_from_ending():
    class Storm(Node):
        def on_client(self, request, call):
            return [Send(1, "again"), Reply(request)]

        def on_message(self, sender, message):
            return [Send(sender, "again")]

    outcome = network.run(Storm, 2, Client(0, [Call("read")], timeout_s=30))
    assert [one.outcome for one in outcome.history] == ["ok"]
    assert len(outcome.trace.of(1, "recv")) > 10


def test_interrupts_at_random_moments_leave_nothing():
    draw = random.Random(3)
    clients = [Client(node, [Call("read")] * 10**5) for node in range(2)]
    for _ in range(4):
        delay_s = draw.uniform(0.0, 0.3)
        timer = threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            network.run(Gossip, 2, clients)
            timer.join()
        timer.join()
    assert network.run(Echo, 2, ONE_CALL).elapsed_s >= 0


KERNEL = """
import os, time
from distlab import Call, network

class Saves(network.Node):
    def on_client(self, request, call):
        print(os.getpid())
        return [network.Save("x", 1), network.Reply(request)]

cluster = network.Cluster(Saves, 2)
for node in range(2):
    cluster.call(node, "write")
print(cluster._supervisor.folder, flush=True)
time.sleep(1000)
"""


def test_when_the_kernel_is_killed_its_nodes_and_files_go_too():
    command = [sys.executable, "-c", KERNEL]
    kernel = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pids = [int(kernel.stdout.readline().split()[-1]) for _ in range(2)]
    folder = kernel.stdout.readline().strip()
    assert os.path.exists(folder)
    tree = psutil.Process(kernel.pid).children(recursive=True)
    assert set(pids) < {one.pid for one in tree}
    kernel.kill()
    kernel.wait()
    kernel.stdout.close()
    assert not psutil.wait_procs(tree, timeout=10)[1]
    assert not os.path.exists(folder)


def test_a_cluster_that_nobody_has_any_more_ends():
    cluster = network.Cluster(Echo, 2)
    nodes = [psutil.Process(pid) for pid in cluster.pids]
    del cluster
    assert not psutil.wait_procs(nodes, timeout=20)[1]
