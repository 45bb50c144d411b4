"""The coordinator of a two-phase commit killed at five points, and what follows.

Prepare 1, Prepare 2    points 1 and 2: before the first, before the second
Voted, Voted
log "committed"         point 3: before it
outcome 1, outcome 2    points 4 and 5: before the first, before the second
"""

import time
from collections.abc import Iterable

from distlab.agree.commit.two_phase import COMMITTED, Prepare, Status, TwoPhaseCommit
from distlab.errors import InvalidArgument
from distlab.faults import Crash
from distlab.network import Client, Cluster, Note, Save, simulate
from distlab.patience import patience
from distlab.trace import Call

__all__ = ["POINTS", "StopsAtPoint", "crash_points"]

# point -> the effect before which a coordinator that does not abort stops, and how
# many like it came
POINTS = {
    "before prepare": (Prepare, 0),
    "after one prepare": (Prepare, 1),
    "before the decision is on disk": (Save, 0),
    "before the decision is sent": (Status, 0),
    "after one has the decision": (Status, 1),
}
_LIMIT_S, _ATTEMPTS = 10.0, 10


def _up_to_point(method):
    def handle(self, *event):
        if method == "on_client":
            self.point, self.passed = event[1].key, 0
        kind, before = POINTS.get(self.point, ((), 0))
        for effect in getattr(super(StopsAtPoint, self), method)(*event) or ():
            what = getattr(effect, "message", effect)
            state = getattr(what, "state", COMMITTED)
            if isinstance(what, kind) and state == COMMITTED:
                if self.passed == before and not self.stopped:
                    yield Note(f"stops {self.point}")
                self.stopped, self.passed = self.passed >= before, self.passed + 1
            if self.stopped:
                return
            yield effect

    return handle


class StopsAtPoint:
    """A base before a protocol: a call's key names the point where its node stops.

    stopped: from then on the node does nothing, so that a kill from outside, whenever
    it comes, is one at that point. passed: effects of the point's kind so far.
    """

    point, passed, stopped = None, 0, False
    on_client, on_message, on_timer, on_synced = map(
        _up_to_point, ("on_client", "on_message", "on_timer", "on_synced")
    )


def crash_points(
    protocol: type[TwoPhaseCommit] = TwoPhaseCommit,
    points: Iterable[str] = POINTS,
    *,
    real: bool = False,
) -> dict[str, tuple[str, str, str]]:
    """Kill the coordinator of a transfer at each point, then restart it.

    real: whether the nodes are processes, killed with SIGKILL; else simulated.

    Returns: point -> (node 1, node 2, outcome): the participants without a coordinator,
    "no vote", "blocked", "committed" or "aborted", and the outcome after its restart.
    Raises: InvalidArgument for an unknown point.
    """
    if unknown := set(points) - set(POINTS):
        known = ", ".join(map(repr, POINTS))
        raise InvalidArgument(
            f"no point is called {unknown.pop()!r}; there are {known}."
        )
    make = type(protocol.__name__, (StopsAtPoint, protocol), {})
    if not real:
        return {point: _simulated(make, point) for point in points}
    with Cluster(make, 3) as cluster:
        return {point: _killed(cluster, point) for point in points}


def _simulated(make, point):
    crashes = (Crash(0, make.patience_s / 2, until_s) for until_s in (None, 0.5))
    runs = (simulate(make, 3, _client(point), faults=crash) for crash in crashes)
    return _row(*(run.nodes for run in runs), 0)


def _client(point):
    return Client(0, [Call("transfer", point, {1: -10, 2: 10})])


def _killed(cluster, point):
    def settled(nodes):
        unseen = point != "before prepare" and _state(nodes[1], since) == "no vote"
        return not unseen and all(n.blocked or n.locked_by is None for n in nodes[1:])

    def arrived_or_ended(nodes):
        return nodes[0].stopped or cluster.history[-1].end is not None

    nodes = cluster.outcome().nodes
    for _ in range(_ATTEMPTS):  # a vote that is late can end the transfer before
        since = max((txn for node in nodes for txn in node.log), default=0)
        cluster.start(_client(point))
        nodes = _wait(cluster, arrived_or_ended)
        if nodes[0].stopped:
            break
    cluster.kill(0)
    dead = _wait(cluster, settled)
    cluster.restart(0)
    after = _wait(cluster, lambda nodes: all(n.locked_by is None for n in nodes))
    return _row(dead, after, since)


def _wait(cluster, until):
    """Return copies of the nodes once they are as they should be, or time is over."""
    end_s = time.monotonic() + patience(_LIMIT_S)
    while not until(nodes := cluster.outcome().nodes) and time.monotonic() < end_s:
        time.sleep(0.02)
    return nodes


def _row(dead, after, since):
    ends = {_state(node, since) for node in after} - {"no vote"} or {"aborted"}
    states = (_state(node, since) for node in dead[1:])
    return *states, " and ".join(sorted(ends))


def _state(node, since):
    """Return a node's state in the transaction that came after another."""
    states = [record.state for txn, record in node.log.items() if txn > since]
    return "blocked" if node.blocked else states[-1] if states else "no vote"
