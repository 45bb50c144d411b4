"""`play_logs`: a schedule of Raft, played with the log of every node after each step."""

from collections.abc import Callable, Iterable
from typing import Any

from distlab.agree.raft.monitors import raft_view
from distlab.network import Client, EventSchedule, Node, replay, step_through
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
        that a `step_through` has taken. view: as in the monitors.

    Raises: InvalidArgument for a schedule that does not fit.
    """
    schedule = EventSchedule(schedule)
    run = step_through(make, nodes, clients, seed=seed)
    states = [_logs(run.nodes, view)]
    for step in schedule:
        states.append(_logs(run.take(step).nodes, view))
    trace = replay(make, nodes, clients, schedule, seed=seed).outcome.trace
    return Player(LogAnimation(trace, title, states))


def _logs(nodes, view):
    return [node and _log(node, view(node)) for node in nodes]


def _log(node, seen):
    role = "leader" if seen.leads else getattr(node, "role", "follower")
    terms = tuple(entry[0] for entry in seen.entries)
    return NodeLog(role, seen.term, terms, seen.base, seen.commit)
