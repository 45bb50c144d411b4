"""Playing a schedule on real nodes: what was found, or what was pasted into a cell."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from distlab.errors import NotDeterministic
from distlab.network.arguments import check_again, check_clients, check_nodes
from distlab.network.client import Client
from distlab.network.compare import compare
from distlab.network.outcome import Outcome
from distlab.network.schedules.frozen import freeze
from distlab.network.schedules.judge import Judge
from distlab.network.schedules.rehearsal import Rehearsal
from distlab.network.schedules.schedule import Schedule
from distlab.network.schedules.states import Lives, State

__all__ = ["Replayed", "checked_replay", "replay"]


@dataclass
class Replayed:
    """What came of a schedule on nodes that may have been mended since.

    outcome: up to its end, or to where it no longer fits. why: what is wrong with it,
    "" if nothing is. fits: how many steps could be played; stopped: why the next one
    could not, in a sentence, "" if all could.
    """

    schedule: Schedule
    outcome: Outcome
    why: str
    fits: int
    stopped: str

    @property
    def violated(self) -> bool:
        """Whether something is wrong with the outcome."""
        return bool(self.why)

    def __repr__(self):
        if self.stopped:
            step = self.schedule[self.fits]
            fit = f"{self.fits} steps fit; then '{step}' does not: {self.stopped}. "
        else:
            fit = f"All {self.fits} steps fit. "
        return fit + (self.why if self.why else "Nothing is wrong with the outcome.")


def replay(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client],
    schedule: Schedule | Iterable[str] | str,
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    seed: int = 0,
) -> Replayed:
    """Play a schedule on nodes made by make(me, peers), as far as it fits them.

    schedule: as a search has found it, or its sentences, as `to_json` returns them. The
        n-th step happens at the n-th second. A message that has been given more to say
        is recognised by its first word.
    check, invariant: as in a search; each is asked once, at the end.

    Raises: InvalidArgument for a schedule that is none.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes)
    check_again(clients)
    schedule = schedule if isinstance(schedule, Schedule) else Schedule(schedule)
    rehearsal = Rehearsal(make, nodes, clients, seed)
    rehearsal.play(schedule)
    outcome = rehearsal.outcome()
    at, stopped = rehearsal.stopped or (len(schedule), "")
    why = str(rehearsal.failed) if rehearsal.failed else ""
    if check or invariant:
        judge = Judge(check, invariant, None)
        why = why or judge.of_nodes(outcome.nodes) or judge.of_outcome(outcome)
    return Replayed(schedule, outcome, why, at, stopped)


def checked_replay(
    make: Callable,
    nodes: int,
    clients: list[Client],
    schedule: Schedule,
    seed: int,
    lives: Lives,
    state: State,
) -> Outcome:
    """Return the outcome of a schedule, played twice, and compared with a state.

    Raises: NotDeterministic if any of the three is not as the others.
    """
    logs = []
    for _ in range(2):
        rehearsal = Rehearsal(make, nodes, clients, seed)
        rehearsal.log = []
        rehearsal.play(schedule)
        logs.append(rehearsal.log)
    parted = compare(*logs, rehearsal.failed, rehearsal.hosts)
    if parted:
        raise parted
    failed = rehearsal.failed is not None
    if rehearsal.stopped or failed != bool(state.failed):
        at, why = rehearsal.stopped or (len(schedule) - 1, str(rehearsal.failed))
        raise _other_memory(rehearsal, 0, float(at), f"at '{schedule[at]}', {why}")
    for node, memory in enumerate(state.nodes):
        host = rehearsal.hosts[node]
        if memory and not failed and freeze(host) != lives.shelf.frozen(memory):
            told = _difference(lives.shelf[memory].node, host.node)
            raise _other_memory(rehearsal, node, rehearsal.now, told)
    return rehearsal.outcome()


def _difference(one, other):
    """Return the first attribute that two objects of a node do not have alike."""
    ours, theirs = vars(one), vars(other)
    for name in ours | theirs:
        pair = [freeze(each.get(name)) for each in (ours, theirs)]
        if name != "random" and pair[0] != pair[1]:
            return f"its {name} is {theirs.get(name)!r}, and was {ours.get(name)!r}"
    return "it has drawn other random numbers"


def _other_memory(rehearsal, node, at_s, told):
    host = rehearsal.hosts[node]
    kind = f" ({host.kind})" if host else ""
    return NotDeterministic(
        f"node {node}{kind} is not deterministic: in the same schedule, {told}\n\n"
        "    A search lets nodes go on from copies of what they remember. Does a node\n"
        "    go through a set? Do nodes share something, such as a list of the class?",
        node=node,
        at_s=at_s,
        first="",
        second=told,
    )
