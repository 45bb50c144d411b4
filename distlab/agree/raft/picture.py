"""`play_logs`: a schedule of Raft, played with each node's log after each step."""

from collections.abc import Callable, Iterable
from typing import Any

from distlab.agree.raft.monitors import raft_view
from distlab.errors import InvalidArgument
from distlab.network import Client, EventSchedule, Node, replay
from distlab.show import Player
from distlab.show.player import LogAnimation, NodeLog

__all__ = ["play_logs"]


def play_logs(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client],
    schedule: EventSchedule | Iterable[str],
    title: str = "",
    *,
    view: Callable[[Node], Any] = raft_view,
    seed: Any = 0,
) -> Player:
    """Play a schedule, with terms, commit index and leader on each node's log.

    schedule: one that was found, as in `play_logs(*found.what, found.schedule)`, or
        that a `step_through` has taken; it is replayed up to each of its steps.
    view: as in the monitors.

    Raises: InvalidArgument for a schedule that does not fit.
    """
    schedule, what = EventSchedule(schedule), (make, nodes, clients)
    parts = (schedule[:count] for count in range(len(schedule) + 1))
    runs = [replay(*what, EventSchedule(part), seed=seed) for part in parts]
    if runs[-1].stopped:
        raise InvalidArgument(f"this schedule does not fit. {runs[-1]!r}")
    states = [_logs(run.outcome.nodes, view) for run in runs]
    return Player(LogAnimation(runs[-1].outcome.trace, title, states))


def _logs(nodes, view):
    return [node and _log(node, view(node)) for node in nodes]


def _log(node, seen):
    role = "leader" if seen.leads else getattr(node, "role", "follower")
    terms = tuple(entry[0] for entry in seen.entries)
    return NodeLog(role, seen.term, terms, seen.base, seen.commit)
