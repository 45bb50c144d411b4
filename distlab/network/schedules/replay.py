"""`replay`: a schedule played on real nodes, its n-th step at the n-th second."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from distlab.errors import NotDeterministic
from distlab.history import History
from distlab.network.client import Client, check_clients
from distlab.network.copies import freeze
from distlab.network.describe import shorten
from distlab.network.node import session_of
from distlab.network.node_diagnosis import difference
from distlab.network.node_host import check_nodes
from distlab.network.outcome import Outcome
from distlab.network.schedules.properties import Property, StateOutcome
from distlab.network.schedules.schedule import EventSchedule, ScheduleStep
from distlab.network.schedules.state import NodeMemo, State
from distlab.network.schedules.successor import Successor
from distlab.network.schedules.transitions import (
    FaultLimits,
    Transitions,
    describe_sides,
)
from distlab.network.trace_recorder import TraceRecorder, lost
from distlab.trace import Operation

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

    log: the input and effects of every call of a node, to compare two replays.
    """

    def __init__(self, *what):
        super().__init__(*what)
        self._hosts, self.log, self.now = [None], [], 0.0
        self.host = self.awake = self._hosts.__getitem__

    def remember(self, host):
        """Return a new number for a node's present memory."""
        self._hosts.append(host)
        return len(self._hosts) - 1

    def called(self, host, method, args):
        """Call a node's method, and log it."""
        effects = super().called(host, method, args)
        entry = (self.now, host.me, f"on_{method}", freeze(args), freeze(effects))
        self.log.append(entry)
        return effects


class _ReplayRun(TraceRecorder):
    """One replay of a schedule on real nodes, by the search's own transitions.

    state: after the steps so far. operations: those that have ended.
    failure: the NodeFailed that ended it, if one did. stopped: the number of the step,
    from 0, that does not fit, and why, if there is one.
    """

    def __init__(self, make, nodes, clients, seed, monitors=()):
        super().__init__(nodes, len(clients))
        self.memo = _LiveMemo(make, nodes, clients, seed, monitors)
        successor = partial(_TracedSuccessor, self)
        self.transitions = Transitions(self.memo, FaultLimits(), successor=successor)
        self.failure = self.stopped = None
        self.calls, self.open, self.operations = {}, {}, []
        self.under_way = defaultdict(list)  # (src, dst, value) -> messages
        self.sent, self.got = {}, set()  # message -> index of its event

    def play(self, schedule: EventSchedule) -> None:
        """Play a schedule until its end, or until a step does not fit."""
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
                self.state = self.transitions.take(self.state, found)
        if self.state.failed:
            self.failure = self.transitions.failure(self.state)
            self.failed(self.failure)

    def _find(self, step):
        """Return the transition of a step, None if there is none.

        On a corrected node a message may hold more fields; if only one between the same
        nodes begins with the same word, it is that one.
        """
        found = self.transitions.find(self.state, step)
        if found or step.kind not in ("deliver", "duplicate", "drop"):
            return found
        first = step.words.split(" ")[0]
        alike = [
            pending
            for pending in self.state.pending
            if (pending.src, pending.dst) == (step.a, step.b)
            and self.memo.words(pending.number).split(" ")[0] == first
        ]
        return (step.kind, alike[0]) if len(alike) == 1 else None

    def outcome(self) -> Outcome:
        """Return the present outcome; calls without a response are unknown."""
        shown = StateOutcome(self.memo, self.state)
        waiting = [
            Operation(number, *call, start_s, None, "unknown", None)
            for number, (call, start_s) in self.open.items()
        ]
        history = History(self.operations + waiting)
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
        self.run.open.setdefault(number, (call, self.run.now))
        heard = bool(self.nodes[attempts.node])
        self.run.asked(number, attempts.node, call, heard)
        super().call(number)

    def responds(self, node, request, outcome, result, why=None, to=None):
        heard = super().responds(node, request, outcome, result, why, to)
        call, value = self.run.calls[request], self.memo.values[result]
        about = session_of(request)[0], call, value, why, heard
        self.run.answered(node, *about)
        return heard

    def ended(self, number, outcome, result):
        call, start_s = self.run.open.pop(number)
        end_s = None if outcome == "unknown" else self.run.now
        value = self.memo.values[result] if outcome == "ok" else None
        about = *call, start_s, end_s, outcome, value
        self.run.operations.append(Operation(number, *about))

    def send(self, src, to, number):
        run, passes = self.run, self.passes(src, to)
        run.messages += 1
        words = shorten(self.memo.words(number))
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
        run.event(dst, "recv", src, message, shorten(self.memo.words(number)))

    def dropped(self, pending):
        run, message = self.run, self.run.under_way[pending[1:]].pop(0)
        if message not in run.got:
            event = run.events[run.sent[message]]
            event = event._replace(label=lost(event.label))
            run.events[run.sent[message]] = event

    def timer(self, node, timer):
        self.run.mark(node, f"timer {shorten(self.memo.words(timer[1]))}")
        super().timer(node, timer)

    def note(self, node, words):
        self.run.mark(node, str(words))

    def crash(self, node, what="crashes"):
        lost = {"power_losses": "unsynced", "disk_losses": "disk"}.get(what, "")
        self.run.crashed(node, lost)
        super().crash(node, what)

    def restart(self, node):
        self.run.mark(node, "restart", "fault")
        super().restart(node)

    def split(self, way):
        self.run.lasting(0, f"partition {describe_sides(way)}", "fault")
        super().split(way)

    def heal(self):
        self.run.over(0, f"partition {describe_sides(self.before.sides)}")
        super().heal()

    def cut(self, src, dst):
        self.run.lasting(src, f"cut off from node {dst}")
        super().cut(src, dst)

    def mend(self, src, dst):
        self.run.over(src, f"cut off from node {dst}")
        super().mend(src, dst)

    def clock(self, node, reading_s):
        self.run.mark(node, f"clock reads {reading_s:.6g} s")
        super().clock(node, reading_s)


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
