"""Scenarios of Raft: a run up to where one rule decides, and a search from there.

    a run without faults ─▶ steps taken by name: a schedule ─▶ search from its end

All have three nodes, no pre-votes, and one entry in a message.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from distlab.agree.raft.key_value import RaftStore
from distlab.agree.raft.monitors import clients_linearizable, raft_monitors
from distlab.agree.raft.raft import Raft
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network import Client, replay, search, simulate, step_through
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
                f"{words!r}, and none of those that are possible (run.steps) does."
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

    Before that, two appends and a read without faults, between which the leadership is
    transferred, must end.

    scenarios: of "two candidates", "an older log", "a longer log", "a shorter log",
        "another log before", "a gap", "a conflict", "a late message", "figure 8", "a
        deposed leader", "a repeated call" and "an empty disk". A deposed leader and a
        repeated call are judged by what clients see, the others by the four properties.
    within_s: for how long to search each, if nothing is found.

    Returns: the first counterexample, or the last `NotFound`.
    Raises: InvalidArgument for an unknown scenario, or if a rule of the class refuses
    what happens in it; it names the last answer that differs from the library's.
    """
    if not scenarios or {*scenarios} - {*_SCENARIOS}:
        known = ", ".join(map(repr, _SCENARIOS))
        raise InvalidArgument(f"scenarios={scenarios!r}: give some of {known}.")
    _try(make, "a run without faults", _without_faults)
    for name in scenarios:
        if found := _search(make, name, within_s):
            break
    return found


def _search(make, name, within_s):
    lead, clients, check, limits = _SCENARIOS[name]
    start = _try(make, name, lambda it: lead(step_through(it, 3, clients)).schedule)
    monitors = () if check else raft_monitors()
    how = {"monitors": monitors, "start": start, "steps": 30, "within_s": within_s}
    found = search(_one_by_one(make), 3, clients, check, **how, **limits)
    if found and violated_property(found) == "none" and not check:  # a node failed
        watched = _one_by_one(make, answers := [])
        replay(watched, 3, clients, found.schedule)
        found.why += "".join(answers[-1:])
    return found


def _try(make, name, run):
    """Run a class; if that is not possible, name the rule that is the likely cause."""
    answers = []
    try:
        return run(_one_by_one(make, answers))
    except (InvalidArgument, NodeFailed) as error:
        raise InvalidArgument(f"{name}: {error}{''.join(answers[-1:])}") from error


def _without_faults(node):
    """Raise InvalidArgument unless each call ends in a run without faults."""
    run = simulate(node, 3, Client(0, _CALLS, 1, retries=9), until_s=9)
    for op in run.history:
        if op.op != "transfer" and op.outcome != "ok":
            raise InvalidArgument(f"the client's {op.op} ended {op.outcome!r}, not ok.")


def _one_by_one(make, answers=None):
    """Return a class with one entry in a message.

    answers: a list that gets the answers of its rules that are not the library's.
    """

    def watched(name):
        rule, right = getattr(make, name), getattr(RaftStore, name)

        def answer(self, *args):
            words = f" {name}({', '.join(map(repr, args))})"
            try:
                said = rule(self, *args)
            except Exception as error:
                answers.append(f"{words} raised {error!r}.")
                raise
            if bool(said) != (wanted := right(self, *args)):
                hint = "; is a `return` missing?" if said is None else "."
                answers.append(f"{words} returned {said}, the library's {wanted}{hint}")
            return said

        return answer

    rules = {} if answers is None else {name: watched(name) for name in _RULES}
    one_by_one = type(make.__name__, (make,), {"most_entries": 1, **rules})
    return partial(one_by_one, pre_vote=False)


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


def _shorter_log(run):
    """Commit an entry of nodes 0 and 1; node 2, with an equal last term, stands."""
    replicate(elect(run, 0, 1, 2), 0, 1, 2)
    replicate(take(run, "client 0"), 0, 1)
    return take(run, "the timer 'heard' of node 1", "the timer 'election' of node 2")


def _gap(run):
    """Have node 1 lead with an entry before its own, and node 2 with an empty log."""
    replicate(elect(run, 0, 1), 0, 1)
    return elect(lose(run, 0, 2), 1, 2)


def _conflict(run):
    """Let node 0, with an entry of term 1, get the one of term 2 in its place."""
    lose(_other_log_before(run), 1, 2)
    to_node_0 = "node 0 gets 'AppendEntries term=2"
    fits = "node 2 gets 'AppendReply term=2 fits=True"
    take(run, "node 0 has synced", to_node_0, "node 0 has synced")
    take(run, "node 2 has synced", fits)
    return take(run, "the timer 'heartbeat' of node 2", to_node_0, fits)


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
_CALLS = [_LETTERS[0], Call("transfer", value=0), *_LETTERS[1:]]
_RULES = ("is_up_to_date", "may_vote", "fits", "differs", "may_commit", "may_read")
_SCENARIOS = {
    "two candidates": RaftScenario(_two_candidates, (), None, _NO_TIMER),
    "an older log": RaftScenario(_older_log, (), None, _NO_TIMER),
    "a longer log": RaftScenario(_longer_log, _WRITER, None, {"timers": 1}),
    "a shorter log": RaftScenario(_shorter_log, _WRITER, None, _NO_TIMER),
    "a gap": RaftScenario(_gap, (), None, {"timers": 1}),
    "a conflict": RaftScenario(_conflict, (), None, _NO_TIMER),
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
