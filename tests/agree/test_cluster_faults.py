"""Links cut in one direction, pauses, clocks and clients that ask again."""

from clusters import Gossip, described, patient, until

from distlab import Call, network
from distlab.faults import ClockDrift, ClockJump, Crash, Cut, Pause
from distlab.network import Client, Delivery, Node, Refuse, Reply, SetTimer, session_of
from distlab.network.cluster.clients import ClusterClients

AT_ONCE = Delivery((0.0, 0.0))


def between(events, src, dst, span):
    """Return the kinds of the events of messages from one node to another."""
    sent = [e for e in events if (e.kind, e.rank, e.peer) == ("send", src, dst)]
    come = [e for e in events if (e.kind, e.rank, e.peer) == ("recv", dst, src)]
    return {e.kind for e in sent + come if span.start <= e.start < span.end}


def test_a_cut_drops_what_goes_one_way_and_passes_what_comes_back():
    with network.Cluster(Gossip, 3, delivery=AT_ONCE) as cluster:
        cluster.cut(0, 1)
        heard = described(cluster, 1)
        until(lambda: described(cluster, 0).get(1, 0) > 20)
        until(lambda: described(cluster, 1).get(2, 0) > heard.get(2, 0) + 20)
        after = described(cluster, 1)
        assert after.get(0) == heard.get(0)
        cluster.heal()
        until(lambda: described(cluster, 1).get(0, 0) > heard.get(0, 0) + 20)
    events = cluster.outcome().trace.events
    (cut,) = [e for e in events if e.label == "cut off from node 1"]
    assert cut.rank == 0
    assert between(events, 0, 1, cut) == {"send"}
    for src, dst in ((1, 0), (0, 2), (2, 1)):
        assert between(events, src, dst, cut) == {"send", "recv"}


def test_planned_cuts_and_pauses_strike_and_end_by_the_clock_of_the_nodes():
    faults = [Cut(0.1, 2, 0, until_s=0.3), Pause(1, 0.15, 0.35)]
    faults += [Crash(3, 0.1, loses="disk")]
    client = patient(0, [Call("read")] * 30, pause_s=0.02)
    outcome = network.run(Gossip, 4, client, faults=faults, delivery=AT_ONCE)
    assert [e.label for e in outcome.trace.of(3, "mark")][-1] == "disk loses everything"
    events = outcome.trace.events
    (cut,) = [e for e in events if e.label == "cut off from node 0"]
    assert cut.start >= 0.1 and cut.end >= 0.3
    assert between(events, 2, 0, cut) == {"send"}
    assert between(events, 0, 2, cut) == {"send", "recv"}
    paused, resumed = (
        next(e for e in events if e.rank == 1 and e.label == label)
        for label in ("paused", "resumed")
    )
    assert paused.start >= 0.15 and resumed.start >= 0.35
    lane = [e.start for e in events if e.rank == 1 and e.kind in ("send", "recv")]
    # Where a signal takes long to arrive, the first half of the pause has events.
    middle = (paused.start + resumed.start) / 2
    assert not [at for at in lane if middle < at < resumed.start]
    assert max(lane) > resumed.start and outcome.nodes[1] is not None


def test_delays_are_drawn_from_any_distribution_and_none_is_below_its_least():
    class AboutATenth:
        mean_s = 0.1

        def draw(self, chance):
            return 0.1 * chance.choice((1, 1, 1, 2))

    client, delivery = patient(0, [Call("read")] * 30, pause_s=0.01), AboutATenth()
    outcome = network.run(Gossip, 2, client, delivery=Delivery(delay_s=delivery))
    between = [e for e in outcome.trace.events if max(e.rank, e.peer or 0) < 2]
    sent = {e.step: e.start for e in between if e.kind == "send"}
    took = [e.start - sent[e.step] for e in between if e.kind == "recv"]
    assert len(took) > 10 and min(took) >= 0.1 and max(took) >= 0.2


class Clocked(Node):
    """Answers with its clock; notes its readings as it sets and hears a timer."""

    def on_start(self, saved):
        self.set_at, self.fired_at = self.clock_s, None
        return [SetTimer("alarm", 0.2)]

    def on_timer(self, name):
        self.fired_at = self.clock_s

    def on_client(self, request, call):
        return [Reply(request, self.clock_s)]


def test_a_clock_drifts_and_its_timers_with_it():
    faults = [ClockDrift(1, 0.25), ClockDrift(2, 10.0)]
    with network.Cluster(Clocked, 3, faults=faults) as cluster:
        for _ in range(3):
            before, slow, fast, after = (described(cluster, n) for n in (0, 1, 2, 0))
            assert before <= slow / 0.25 <= fast / 10 <= after
        until(lambda: described(cluster, 1) > 0.25)
        nodes = cluster.outcome().nodes
    for node in nodes:
        assert node.fired_at - node.set_at >= 0.2


def test_a_clock_jumps_alone_and_keeps_its_error_while_its_node_is_dead():
    faults = [ClockJump(1, 0.0, -3600.0)]
    with network.Cluster(Clocked, 2, faults=faults) as cluster:

        def ahead():
            one, other = (described(cluster, n) for n in (1, 0))
            return round((one - other) / 1800)

        until(lambda: ahead() == -2)
        cluster.move_clock(1, 7200.0)
        until(lambda: ahead() == 2)
        cluster.kill(1)
        cluster.move_clock(1, -5400.0)
        cluster.restart(1)
        assert ahead() == -1
    lane = [e.label for e in cluster.outcome().trace.of(1, "mark")]
    jumps = [label for label in lane if label.startswith("clock jumps")]
    assert jumps == [f"clock jumps {by} s" for by in ("-3600", "+7200", "-5400")]


class Leader(Node):
    """Only node 2 answers; node 0 knows it, and node 1 is silent."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.asked = []

    def on_client(self, request, call):
        self.asked.append(request)
        if self.me == 0:
            return [Refuse(request, "I do not lead", to=2)]
        return [Reply(request, call.value)] if self.me == 2 else []


def test_a_client_asks_again_where_a_refusal_sends_it_with_the_same_request():
    calls = [Call("write", "x", number) for number in range(3)]
    clients = [patient(0, calls[:1], retries=1), patient(0, calls[:1])]
    outcome = network.run(Leader, 3, clients)
    ends = {one.client: (one.outcome, one.result) for one in outcome.history}
    assert ends == {0: ("ok", 0), 1: ("failed", None)}
    (request,) = outcome.nodes[2].asked
    assert request in outcome.nodes[0].asked and session_of(request) == (0, 1)
    lane = [e for e in outcome.trace.events if e.rank == 3]
    seen = [(e.kind, e.peer) for e in lane]
    assert seen == [("send", 0), ("recv", 0), ("send", 2), ("recv", 2)]
    assert not [e for e in outcome.trace.events if "dropped" in e.label]


def test_a_client_asks_the_next_node_after_a_time_out_and_has_one_operation():
    client = Client(1, [Call("write", "x", 7)] * 2, timeout_s=0.3, retries=20)
    outcome = network.run(Leader, 3, client)
    assert [(o.outcome, o.result) for o in outcome.history] == [("ok", 7)] * 2
    asked = [node.asked for node in outcome.nodes]
    assert session_of(asked[1][0]) == (0, 1) and asked[1][0] in asked[2]
    assert set(map(session_of, asked[2])) == {(0, 1), (0, 2)}
    first = outcome.history[0]
    assert first.end - first.start >= 0.3


def test_a_client_whose_attempts_are_over_has_an_unknown_operation():
    faults = [Crash(2, 0.0)]
    calls = [Call("write", "x", 1)]
    client = Client(1, calls, start_s=0.3, timeout_s=0.1, retries=2)
    outcome = network.run(Leader, 3, client, faults=faults)
    assert [one.outcome for one in outcome.history] == ["unknown"]
    sends = [e.peer for e in outcome.trace.events if (e.rank, e.kind) == (3, "send")]
    assert sends == [1, 2, 0]


def test_a_late_success_after_a_refusal_ends_a_call_and_begins_the_next_once():
    clients = ClusterClients(3, lambda: 0.0)
    calls = [Call("write", "x", number) for number in range(2)]
    clients.add([Client(0, calls, retries=5)], 0.0)
    clients.tick()
    clients.answered(0, 1, 1, "failed", None, 1)
    clients.answered(0, 2, 1, "ok", None, None)
    clients.tick()
    sent = [(node, request) for node, _, request, _ in clients.to_send]
    assert sent == [(0, 1), (1, 1), (1, 2)]
    assert [one.outcome for one in clients.done] == ["ok"]
