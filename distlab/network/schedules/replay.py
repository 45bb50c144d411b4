"""`replay`: a schedule played on real nodes, its n-th step at the n-th second."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from distlab.errors import NodeFailed, NotDeterministic
from distlab.network.client import Client, check_clients, check_repeatable
from distlab.network.copies import SplitMix64, freeze, plain_copy
from distlab.network.describe import describe, describe_call, shorten
from distlab.network.node_diagnosis import MOST_TO_ITSELF, difference, talks_to_itself
from distlab.network.node_host import check_nodes
from distlab.network.outcome import Outcome
from distlab.network.schedules.properties import Property
from distlab.network.schedules.schedule import EventSchedule, ScheduleStep
from distlab.network.schedules.state import NodeMemo, State
from distlab.network.simulation import Simulation

__all__ = ["Replayed", "replay", "verified_replay"]


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
        return fit + (self.why if self.why else "Nothing is wrong with the outcome.")


def replay(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client],
    schedule: EventSchedule | Iterable[str] | str,
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    seed: int = 0,
) -> Replayed:
    """Play a schedule on nodes made by make(me, peers), as far as it fits them.

    schedule: as a search has found it, or its sentences, as `to_json` returns them. The
        n-th step happens at the n-th second. A message that holds more fields by now is
        recognised by its first word.
    check, invariant: as in a search; each is called once, at the end.

    Raises: InvalidArgument for an invalid schedule.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes)
    check_repeatable(clients)
    schedule = (
        schedule if isinstance(schedule, EventSchedule) else EventSchedule(schedule)
    )
    run = _ReplayRun(make, nodes, clients, seed)
    run.play(schedule)
    outcome = run.outcome()
    at, stopped = run.stopped or (len(schedule), "")
    why = str(run.failed) if run.failed else ""
    if check or invariant:
        wanted = Property(check, invariant)
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
        run.log = []
        run.play(schedule)
        logs.append(run.log)
    if parting := difference(*logs, run.failed, run.hosts):
        raise parting
    if run.stopped or (run.failed is not None) != bool(state.failed):
        at, why = run.stopped or (len(schedule) - 1, str(run.failed))
    elif not run.failed and (nodes := _other_nodes(run, memo, state)):
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
    for host, memory in zip(run.hosts, state.nodes, strict=True):
        if memory and freeze(host) != memo.values.frozen(memory):
            return f"node {host.me} ({host.kind})"
    return ""


class _ReplayRun(Simulation):
    """One replay of a schedule.

    failed: the NodeFailed that ended it, if one did. stopped: the number of the step,
    from 0, that does not fit, and why, if there is one.
    """

    _generator = SplitMix64

    def __init__(self, make, nodes, clients, seed):
        super().__init__(make, nodes, clients, seed)
        self.failed = self.stopped = None
        self._pending = []  # (src, dst, message, number of the message)
        self._timers = [{} for _ in range(nodes)]  # name in words -> name
        self._side_of = None
        self._to_itself = []

    def play(self, schedule: EventSchedule) -> None:
        """Play a schedule until its end, or until a step does not fit."""
        with self._watchdog:
            try:
                for node in range(self.nodes):
                    self._start(node)
                for at, step in enumerate(schedule):
                    self.now = float(at)
                    why = self._take(step)
                    if why:
                        self.stopped = at, why
                        break
            except NodeFailed as error:
                self.note_failure(error)
                self.failed = error

    def _take(self, step: ScheduleStep) -> str:
        """Play a step; return the reason why it does not fit, "" if it does."""
        return getattr(self, f"_play_{step.kind}")(step) or ""

    def _play_call(self, step):
        number = step.a
        if number >= len(self.sessions):
            return f"there is no client {number}"
        if self.sessions[number].request is not None:
            return f"client {number} still waits for its last answer"
        if self._invoke(number) is None:
            return f"client {number} has nothing more to ask"
        words = describe_call(self.sessions[number].call)
        return "" if words == step.words else f"client {number} asks '{words}' instead"

    def _play_deliver(self, step):
        return self._arrive(step, keep=False)

    def _play_duplicate(self, step):
        return self._arrive(step, keep=True)

    def _arrive(self, step, keep):
        at = self._find(step)
        if at is None:
            return self._not_under_way(step)
        src, dst, message, number = self._pending[at]
        if keep:
            message = plain_copy(message)
        else:
            del self._pending[at]
        host = self.hosts[dst]
        self._event(dst, "recv", src, number, shorten(describe(message)))
        self._do(dst, self._call(host, host.message, src, message))
        return ""

    def _find(self, step):
        """Return the index of the oldest pending message that matches a step, or None.

        On a corrected node a message may hold more fields; if only one between the same
        nodes begins with the same word, it is that one.
        """
        between = [
            (at, describe(message))
            for at, (src, dst, message, _) in enumerate(self._pending)
            if (src, dst) == (step.a, step.b)
        ]
        for at, words in between:
            if words == step.words:
                return at
        first = step.words.split(" ")[0]
        alike = [at for at, words in between if words.split(" ")[0] == first]
        return alike[0] if len(alike) == 1 else None

    def _not_under_way(self, step):
        described = [
            f"'{describe(message)}' from node {src} to node {dst}"
            for src, dst, message, _ in self._pending
        ]
        return f"under way is {', '.join(described) or 'nothing'}"

    def _play_drop(self, step):
        at = self._find(step)
        if at is None:
            return self._not_under_way(step)
        self._drop([self._pending[at]])
        return ""

    def _drop(self, dropped):
        """Drop messages under way, and mark them so where they were sent."""
        numbers = {message[3] for message in dropped}
        got = {e.step for e in self.events if e.kind == "recv" and e.step in numbers}
        self._pending = [m for m in self._pending if not any(m is n for n in dropped)]
        for at, event in enumerate(self.events):
            if event.kind == "send" and event.step in numbers - got:
                label = f"dropped: {event.label}"
                self.events[at] = event._replace(label=label)

    def _play_timer(self, step):
        if not self._alive(step.a) or step.words not in self._timers[step.a]:
            return f"node {step.a} has no such timer"
        name = self._timers[step.a].pop(step.words)
        self._note(step.a, "mark", f"timer {shorten(step.words)}")
        host = self.hosts[step.a]
        self._do(step.a, self._call(host, host.timer, name))
        return ""

    def _play_time_out(self, step):
        if step.a >= len(self.sessions) or self.sessions[step.a].request is None:
            return f"client {step.a} does not wait"
        self._time_out(step.a)
        return ""

    def _alive(self, node):
        return node < self.nodes and self.hosts[node] is not None

    def _play_crash(self, step):
        if not self._alive(step.a):
            return f"node {step.a} is not alive"
        self._timers[step.a].clear()
        self._crash(step.a)
        self._drop([m for m in self._pending if m[1] == step.a])
        return ""

    def _play_restart(self, step):
        if step.a >= self.nodes or self._alive(step.a):
            return f"node {step.a} is not dead"
        self._restart(step.a)
        return ""

    def _play_split(self, step):
        sides = [side.split() for side in step.words.split("|")]
        side_of = {int(node): k for k, side in enumerate(sides) for node in side}
        if set(side_of) != set(range(self.nodes)) or self._side_of is not None:
            return "the network cannot be partitioned so now"
        self._split(step.words)
        self._side_of = side_of
        self._drop([m for m in self._pending if side_of[m[0]] != side_of[m[1]]])
        return ""

    def _play_heal(self, step):
        if self._side_of is None:
            return "the network is whole"
        at, _ = self._partitions[-1]
        self._partitions[-1] = at, self.now
        self._side_of = None
        return ""

    def _send(self, src, to, message):
        self._messages += 1
        sides = self._side_of
        there = self.hosts[to] is not None or to == src
        arrives = there and (sides is None or sides[src] == sides[to])
        words = shorten(describe(message))
        label = words if arrives else f"dropped: {words}"
        self._event(src, "send", to, self._messages, label)
        if to == src:
            self._to_itself.append((message, self._messages, words))
        elif arrives:
            self._pending.append((src, to, message, self._messages))

    def _do(self, node, effects):
        super()._do(node, effects)
        count = 0
        while self._to_itself:
            count += 1
            if count > MOST_TO_ITSELF:
                raise talks_to_itself(node, self.hosts[node].kind)
            message, number, words = self._to_itself.pop(0)
            self._event(node, "recv", node, number, words)
            host = self.hosts[node]
            super()._do(node, self._call(host, host.message, node, message))

    def _set(self, node, name, after_s):
        self._timers[node][describe(name)] = name

    def _cancel(self, node, name):
        self._timers[node].pop(describe(name), None)

    def _free(self, number):
        """Do nothing: a client waits until its next call comes in the schedule."""
