"""`replay`: a schedule played on real nodes, its n-th step at the n-th second."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from distlab.errors import NotDeterministic
from distlab.network.client import Client, check_clients
from distlab.network.copies import freeze
from distlab.network.describe import picture_words
from distlab.network.node import session_of
from distlab.network.node_diagnosis import difference
from distlab.network.node_host import check_nodes
from distlab.network.outcome import Outcome
from distlab.network.schedules.properties import Property, StateOutcome, history_of
from distlab.network.schedules.schedule import EventSchedule, FaultLimits, ScheduleStep
from distlab.network.schedules.state import NodeMemo, State
from distlab.network.schedules.successor import Successor
from distlab.network.schedules.transitions import (
    Transitions,
    describe_sides,
)
from distlab.network.trace_recorder import TraceRecorder, lost

__all__ = ["Replayed", "replay", "verified_replay", "why_not"]


@dataclass
class Replayed:
    """The result of replaying a schedule on nodes that may have been corrected since.

    outcome: up to its end, or to the first step that does not fit. why: what is wrong
    with it, "" if nothing is. fits: the number of steps played; stopped: the reason why
    the next one could not be, in a sentence, "" if all could.
    """

    schedule: EventSchedule
    outcome: Outcome
    why: str
    fits: int
    stopped: str

    @property
    def violated(self) -> bool:
        """True if something is wrong with the outcome."""
        return bool(self.why)

    def __repr__(self):
        if self.stopped:
            step = self.schedule[self.fits]
            fit = f"{self.fits} steps fit; then '{step}' does not: {self.stopped}. "
        else:
            fit = f"All {self.fits} steps fit. "
        return fit + (self.why or "Nothing is wrong with the outcome.")


def replay(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client],
    schedule: EventSchedule | Iterable[str] | str,
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    monitors: Iterable = (),
    seed: Any = 0,
) -> Replayed:
    """Play a schedule on nodes made by make(me, peers), as far as it fits them.

    schedule: as a search has found it, or its sentences, as `to_json` returns them. The
        n-th step happens at the n-th second. A message that holds more fields by now is
        recognised by its first word.
    check, invariant: as in a search; each is called once, at the end. monitors: as in a
        search.

    Raises: InvalidArgument for an invalid schedule.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes, repeatable=True)
    schedule = (
        schedule if isinstance(schedule, EventSchedule) else EventSchedule(schedule)
    )
    wanted = Property(check, invariant, monitors, needed=False)
    run = _ReplayRun(make, nodes, clients, seed, wanted.monitors)
    run.play(schedule)
    outcome = run.outcome()
    at, stopped = run.stopped or (len(schedule), "")
    why = str(run.failure) if run.failure else run.memo.values[run.state.broken] or ""
    why = why or wanted.of_nodes(outcome.nodes) or wanted.of_outcome(outcome)
    return Replayed(schedule, outcome, why, at, stopped)


def verified_replay(
    make: Callable,
    nodes: int,
    clients: list[Client],
    schedule: EventSchedule,
    seed: int,
    memo: NodeMemo,
    state: State,
) -> Outcome:
    """Return the outcome of a schedule, played twice, and compared with a state.

    Raises: NotDeterministic if any of the three differs from the others.
    """
    logs = []
    for _ in range(2):
        run = _ReplayRun(make, nodes, clients, seed)
        run.memo.log = []
        run.play(schedule)
        logs.append(run.memo.log)
    hosts = [run.memo.host(memory) for memory in run.state.nodes]
    if parting := difference(*logs, run.failure, hosts):
        raise parting
    if run.stopped or (run.failure is not None) != bool(state.failed):
        at, why = run.stopped or (len(schedule) - 1, str(run.failure))
    elif not run.failure and (nodes := _other_nodes(run, memo, state)):
        at, why = len(schedule) - 1, f"{nodes} remembers something else"
    else:
        return run.outcome()
    step = f"at '{schedule[at]}', " if len(schedule) else ""
    raise NotDeterministic(
        f"a node is not deterministic: in the same schedule, {step}{why}\n\n"
        "    A search lets nodes go on from copies of what they remember. Does a node\n"
        "    go through a set? Do nodes share something, such as a list of the class?",
        node=0,
        at_s=float(at),
        first="",
        second=why,
    )


def _other_nodes(run, memo, state):
    """Return the first node that differs from the search's state, "" if none does."""
    for live, memory in zip(run.state.nodes, state.nodes, strict=True):
        host = run.memo.host(live)
        if memory and freeze(host) != memo.values.frozen(memory):
            return f"node {host.me} ({host.kind})"
    return ""


class _LiveMemo(NodeMemo):
    """A memo whose memories are live nodes, so that none can be called from twice.

    log: the input and effects of every call of a node, to compare two replays; or None.
    """

    def __init__(self, *what):
        super().__init__(*what)
        self._hosts, self.log, self.now = [None], None, 0.0
        self.host = self.awake = self._hosts.__getitem__

    def remember(self, host):
        """Return a new number for a node's present memory."""
        self._hosts.append(host)
        return len(self._hosts) - 1

    def called(self, host, method, args):
        effects = super().called(host, method, args)
        if self.log is not None:
            entry = (self.now, host.me, f"on_{method}", freeze(args), freeze(effects))
            self.log.append(entry)
        return effects


class _ReplayRun(TraceRecorder):
    """One replay of a schedule on real nodes, by the search's own transitions.

    state: after the steps so far.
    failure: the NodeFailed that ended it, if one did. stopped: the number of the step,
    from 0, that does not fit, and why, if there is one.
    """

    def __init__(self, make, nodes, clients, seed, monitors=()):
        super().__init__(nodes, len(clients))
        self.memo = _LiveMemo(make, nodes, clients, seed, monitors)
        successor = partial(_TracedSuccessor, self)
        self.transitions = Transitions(self.memo, FaultLimits(), successor=successor)
        self.failure = self.stopped = None
        self.calls, self.times = {}, []  # of the entries in the state's past
        self.under_way = defaultdict(list)  # (src, dst, value) -> messages
        self.sent, self.got = {}, set()  # message -> index of its event

    def play(self, schedule: EventSchedule) -> None:
        with self.memo.watchdog:
            self.state = self.transitions.first()
            for at, step in enumerate(schedule):
                if self.state.failed:
                    break
                self.now = self.memo.now = float(at)
                found = self._find(step)
                if found is None:
                    self.stopped = at, why_not(self.transitions, self.state, step)
                    break
                self._record(self.transitions.in_words(self.state, found))
                self.state = self.transitions.take(self.state, found)
        if self.state.failed:
            self.failure = self.transitions.failure(self.state)
            self.failed(self.failure)

    def _record(self, step):
        sides = describe_sides(self.state.sides) if step.kind == "heal" else step.words
        self.step(step.kind, step.a, step.b, sides)

    def _find(self, step):
        """Return the transition of a step, None if there is none.

        On a corrected node a message may hold more fields.
        """
        found = self.transitions.find(self.state, step)
        if found is None and step.kind in ("deliver", "duplicate", "drop"):
            found = self.transitions.find_similar(self.state, step, only=True)
        return found

    def outcome(self) -> Outcome:
        """Return the present outcome; calls without a response are unknown."""
        shown = StateOutcome(self.memo, self.state)
        history = history_of(self.memo, self.state, self.times)
        return Outcome(history, self.trace(), shown.nodes, shown.saved, self.now)


class _TracedSuccessor(Successor):
    """A successor of a state that records what happens in a replay."""

    def __init__(self, run, *what):
        super().__init__(*what)
        self.run = run

    def call(self, number):
        attempts, results = self.clients[number]
        call = self.memo.values[self.memo.call(number, attempts.ended, results)]
        self.run.calls[attempts.request(number)] = call
        heard = bool(self.nodes[attempts.node])
        self.run.asked(number, attempts.node, call, heard)
        super().call(number)

    def responds(self, node, request, outcome, result, why=None, to=None):
        heard = super().responds(node, request, outcome, result, why, to)
        call, value = self.run.calls[request], self.memo.values[result]
        about = session_of(request)[0], call, value, why, heard
        self.run.answered(node, *about)
        return heard

    def enter(self, entry):
        at = super().enter(entry)
        self.run.times.insert(at, self.run.now)
        return at

    def send(self, src, to, number):
        run, passes = self.run, self.passes(src, to)
        run.messages += 1
        words = picture_words(self.memo.values[number])
        run.sent[run.messages] = len(run.events)
        run.event(src, "send", to, run.messages, words if passes else lost(words))
        if passes:
            run.under_way[src, to, number].append(run.messages)
        super().send(src, to, number)

    def arrives(self, pending, again):
        self._got(*pending[1:], again)
        super().arrives(pending, again)

    def to_itself(self, node, memory, number):
        self._got(node, node, number, False)
        return super().to_itself(node, memory, number)

    def _got(self, src, dst, number, again):
        run, waiting = self.run, self.run.under_way[src, dst, number]
        message = waiting[0] if again else waiting.pop(0)
        run.got.add(message)
        run.event(dst, "recv", src, message, picture_words(self.memo.values[number]))

    def dropped(self, pending):
        run, message = self.run, self.run.under_way[pending[1:]].pop(0)
        if message not in run.got:
            event = run.events[run.sent[message]]
            event = event._replace(label=lost(event.label))
            run.events[run.sent[message]] = event

    def note(self, node, words):
        self.run.mark(node, str(words))


def why_not(transitions: Transitions, state: State, step: ScheduleStep) -> str:
    """Return the reason why a step does not fit."""
    kind, a, b, _ = step
    memo = transitions.memo
    if kind in ("deliver", "duplicate", "drop"):
        described = [
            f"'{memo.words(number)}' from node {src} to node {dst}"
            for _, src, dst, number in state.pending
        ]
        return f"under way is {', '.join(described) or 'nothing'}"
    if kind in ("call", "time_out") and a >= len(state.clients):
        return f"there is no client {a}"
    if kind == "call":
        if state.clients[a][0].waits:
            return f"client {a} still waits for its last answer"
        if not (calls := [c for c in transitions.default(state) if c == ("call", a)]):
            return f"client {a} has nothing more to ask"
        asks = transitions.in_words(state, calls[0])
        where = "" if asks.b == b else f" node {asks.b}:"
        return f"client {a} asks{where} '{asks.words}' instead"
    return {
        "timer": f"node {a} has no such timer",
        "synced": f"node {a} has no such sync under way",
        "time_out": f"client {a} does not wait",
        "restart": f"node {a} is not dead",
        "split": "the network cannot be partitioned so now",
        "heal": "the network is whole",
        "cut": "there is no such link, or it is cut already",
        "mend": "that link is not cut",
        "clock": "there is no such clock",
    }.get(kind, f"node {a} is not alive")
