"""Scenarios of Raft: a run up to where one rule decides, and a search from there.

    steps taken by name ─▶ start: a schedule ─▶ search from its end ─▶ what breaks

All have three nodes, no pre-votes, and one entry in a message.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from distlab.agree.raft.monitors import clients_linearizable, raft_monitors
from distlab.agree.raft.raft import Raft
from distlab.errors import InvalidArgument
from distlab.network import Client, search, step_through
from distlab.network.schedules.counterexample import Counterexample, NotFound
from distlab.network.schedules.stepping import SteppedRun
from distlab.trace import Call

__all__ = ["PROPERTIES", "elect", "lose", "replicate", "search_scenarios", "take"]
__all__ += ["violated_property"]

PROPERTIES = (
    "election safety",
    "log matching",
    "leader completeness",
    "state machine safety",
)


def take(run: SteppedRun, *beginnings: str) -> SteppedRun:
    """Take the first possible step that begins with these words, for each of them.

    Raises: InvalidArgument if no possible step does.
    """
    for words in beginnings:
        step = next((step for step in run.steps if str(step).startswith(words)), None)
        if step is None:
            raise InvalidArgument(
                f"after {len(run.schedule)} steps the next one should begin with "
                f"{words!r}, and none that is possible does: does a rule of this class "
                f"refuse too much? Possible are:\n{run.steps!r}"
            )
        run.take(step)
    return run


def elect(run: SteppedRun, node: int, *voters: int) -> SteppedRun:
    """Let a node stand for election, and lead with the votes of others."""
    take(run, f"the timer 'election' of node {node}", f"node {node} has synced")
    for voter in voters:
        take(run, f"node {voter} gets 'RequestVote", f"node {voter} has synced")
    for _ in voters:
        take(run, f"node {node} gets 'Vote")
    return run


def replicate(run: SteppedRun, leader: int, *followers: int) -> SteppedRun:
    """Let the leader's last entries reach its disk and those of followers."""
    take(run, f"node {leader} has synced")
    for node in followers:
        take(run, f"node {node} gets 'AppendEntries", f"node {node} has synced")
        take(run, f"node {leader} gets 'AppendReply")
    return run


def lose(run: SteppedRun, sender: int, *receivers: int) -> SteppedRun:
    """Drop the messages under way from a node to others."""
    for step in run.steps:
        if step.kind == "drop" and step.a == sender and step.b in receivers:
            run.take(step)
    return run


def search_scenarios(
    make: type[Raft], *scenarios: str, within_s: float = 20.0
) -> Counterexample | NotFound:
    """Search from the end of each scenario for a step that breaks a property.

    scenarios: of "two candidates", "an older log", "a longer log", "another log
        before", "a late message", "figure 8", "a deposed leader", "a repeated call" and
        "an empty disk". A deposed leader and a repeated call are judged by what clients
        see, the others by the four properties.
    within_s: for how long to search each, if nothing is found.

    Returns: the first counterexample, or the last `NotFound`.
    Raises: InvalidArgument for an unknown scenario, or if a rule of the class refuses
    what happens in it.
    """
    if not scenarios or {*scenarios} - {*_SCENARIOS}:
        known = ", ".join(map(repr, _SCENARIOS))
        raise InvalidArgument(f"scenarios={scenarios!r}: give some of {known}.")
    for name in scenarios:
        if found := _search(make, *_SCENARIOS[name], within_s):
            break
    return found


def _search(make, lead, clients, check, limits, within_s):
    one_by_one = type(make.__name__, (make,), {"most_entries": 1})
    what = partial(one_by_one, pre_vote=False), 3, clients
    start = lead(step_through(*what)).schedule
    monitors = () if check else raft_monitors()
    how = {"monitors": monitors, "start": start, "steps": 30, "within_s": within_s}
    return search(*what, check, **how, **limits)


def violated_property(found: Counterexample | NotFound) -> str:
    """Return the property that a search of monitors found violated, or "none"."""
    return next((each for each in PROPERTIES if found and each in found.why), "none")


class RaftScenario(NamedTuple):
    """The beginning of a run, and the extent of the search from there."""

    lead: Callable[[SteppedRun], SteppedRun]
    clients: Any
    check: Callable | None
    limits: dict[str, int]


def _two_candidates(run):
    return take(run, *(f"the timer 'election' of node {node}" for node in (0, 1)))


def _older_log(run):
    """Commit an entry of nodes 0 and 1; then node 2, which lacks it, stands."""
    replicate(elect(run, 0, 1, 2), 0, 1)
    return take(run, "the timer 'heard' of node 1", "the timer 'election' of node 2")


def _longer_log(run):
    """Let node 0 stand with a log that is longer, and whose last term is older."""
    elect(run, 0, 1, 2)
    take(run, "client 0", "node 0 has synced")
    lose(run, 0, 1, 2)
    take(run, "node 0 crashes", "node 0 starts")
    replicate(elect(run, 2, 1), 2, 1)
    return take(run, "the timer 'heard' of node 1", "the timer 'election' of node 0")


def _other_log_before(run):
    """Have logs of one entry each, of term 1 at node 0 and of term 2 at the others."""
    elect(elect(run, 0, 1, 2), 2, 1)
    return take(run, "node 1 gets 'AppendEntries term=2", "node 1 has synced")


def _late_message(run):
    return elect(run, 0, 1)


def _figure_8(run):
    """Have an entry of term 1 on two disks of three in term 3; then node 2 stands."""
    elect(run, 0, 1, 2)
    lose(run, 0, 1, 2)
    take(run, "node 0 has synced", "node 0 crashes")
    elect(run, 2, 1)
    lose(run, 2, 0, 1)
    take(run, "node 2 has synced", "node 2 crashes", "node 0 starts", "node 2 starts")
    take(run, "the timer 'election' of node 0", "node 0 has synced", "node 1 gets 'Req")
    take(run, "node 0 gets 'Vote")  # refused: node 1 knows term 2
    lose(run, 0, 2)
    elect(run, 0, 1, 2)
    lose(run, 0, 2)
    take(run, "node 0 has synced", "node 1 gets 'App", "node 0 gets 'App")
    take(run, "node 1 gets 'App", "node 1 has synced", "node 0 gets 'App")
    return take(run, "the timer 'heard' of node 1", "the timer 'election' of node 2")


def _deposed_leader(run):
    replicate(elect(run, 0, 1, 2), 0, 1, 2)
    return elect(take(run, "the timer 'heard' of node 1"), 2, 1)


def _repeated_call(run):
    """Let the leader die with a call on another disk; the client asks the next one."""
    replicate(elect(run, 0, 1, 2), 0, 1)
    take(run, "client 0", "node 0 has synced", "node 1 gets 'App", "node 1 has synced")
    take(run, "client 0 times out", "the timer 'heard' of node 1")
    return take(elect(run, 1, 2), "client 0")


def _empty_disk(run):
    return replicate(elect(run, 0, 1), 0, 1)


_WRITER = Client(0, [Call("write", "x", 1)])
_READERS = [Client(2, [Call("write", "x", 1)]), *[Client(0, [Call("read", "x")])] * 2]
_LETTERS = [Call("append", "x", "a"), Call("append", "x", "b"), Call("read", "x")]
_SEEN, _NO_TIMER = clients_linearizable, {"timers": 0}
_SCENARIOS = {
    "two candidates": RaftScenario(_two_candidates, (), None, _NO_TIMER),
    "an older log": RaftScenario(_older_log, (), None, _NO_TIMER),
    "a longer log": RaftScenario(_longer_log, _WRITER, None, {"timers": 1}),
    "another log before": RaftScenario(_other_log_before, (), None, {"timers": 1}),
    "a late message": RaftScenario(
        _late_message, _WRITER, None, {"timers": 0, "duplicates": 1}
    ),
    "figure 8": RaftScenario(_figure_8, (), None, _NO_TIMER),
    "a deposed leader": RaftScenario(_deposed_leader, _READERS, _SEEN, _NO_TIMER),
    "a repeated call": RaftScenario(
        _repeated_call, Client(0, _LETTERS, retries=4), _SEEN, _NO_TIMER
    ),
    "an empty disk": RaftScenario(
        _empty_disk, (), None, {"timers": 1, "disk_losses": 1}
    ),
}
