"""Transitions: the possible steps of a `State`, and the state after each.

The steps that happen when nothing goes wrong have a default order: every message is
delivered, in the order of the rounds in which they were sent, then the next client
makes its call. A postponed message comes when no other step is left, then timers run
out, and last a client times out. All other steps, such as a crash, are faults, and have
limits.
"""

from bisect import insort
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any, NamedTuple

from distlab.errors import NodeFailed
from distlab.network.client import Attempts
from distlab.network.copies import freeze
from distlab.network.describe import describe_call
from distlab.network.node import Effect, Runtime, Save, session_of
from distlab.network.node_diagnosis import MOST_TO_ITSELF, talks_to_itself
from distlab.network.schedules.schedule import ScheduleStep
from distlab.network.schedules.state import NodeMemo, Pending, State

__all__ = [
    "POSTPONED",
    "FaultLimits",
    "Successor",
    "Transitions",
    "all_splits",
    "describe_sides",
]

POSTPONED = 1_000_000  # is added to the round of a message that is postponed
_HOUR = 3600.0


class Successor(Runtime):
    """A mutable copy of a state, changed by one step; its methods are the steps.

    acted: the node that has acted in it, for monitors. journaled: whether disks keep
    what a power loss would take.
    """

    def __init__(self, memo: NodeMemo, state: State, journaled: bool):
        self.memo, self.before, self.journaled = memo, state, journaled
        self.nodes, self.restarts = list(state.nodes), list(state.restarts)
        self.disks, self.timers = list(state.disks), list(state.timers)
        self.syncs, self.pending = list(state.syncs), list(state.pending)
        self.clients, self.past = list(state.clients), list(state.past)
        self.changed, self.acted = {}, None
        self._round, self._to_itself = 0, []

    def state(self) -> State:
        """Return the changed state."""
        return self.before._replace(
            nodes=tuple(self.nodes),
            restarts=tuple(self.restarts),
            disks=tuple(self.disks),
            timers=tuple(self.timers),
            syncs=tuple(self.syncs),
            pending=tuple(self.pending),
            clients=tuple(self.clients),
            past=tuple(self.past),
            **self.changed,
        )

    def _count(self, what):
        self.changed[what] = getattr(self.before, what) + 1

    # steps

    def start(self, node: int) -> None:
        """Make a node's object, and start it from its disk."""
        files, _ = self.disks[node]
        clock_s = self.before.clocks[node]
        done = self.memo.start(node, self.restarts[node], files, clock_s)
        self._done(node, done, 0)

    def postpone(self, pending: Pending) -> None:
        """Reorder a message after all others."""
        self.pending.remove(pending)
        insort(self.pending, pending._replace(round=pending.round + POSTPONED))

    def deliver(self, pending: Pending) -> None:
        """Deliver a message."""
        self.pending.remove(pending)
        self.arrives(pending, False)

    def duplicate(self, pending: Pending) -> None:
        """Deliver a message, and keep it under way."""
        self._count("duplicates")
        self.arrives(pending, True)

    def arrives(self, pending: Pending, again: bool) -> None:
        """Call the receiver of a message, which may arrive once more."""
        round, src, dst, number = pending
        done = self.memo.do(self.nodes[dst], "message", src, number)
        self._done(dst, done, round % POSTPONED)

    def drop(self, pending: Pending) -> None:
        """Drop a message."""
        self._count("drops")
        self.pending.remove(pending)
        self.dropped(pending)

    def dropped(self, pending: Pending) -> None:
        """Note that a message has been dropped."""

    def _drop_all(self, severed):
        gone = [pending for pending in self.pending if severed(pending)]
        self.pending = [pending for pending in self.pending if not severed(pending)]
        for pending in gone:
            self.dropped(pending)

    def call(self, number: int) -> None:
        """Make a client's next call, or ask once more."""
        attempts, results = self.clients[number]
        call = self.memo.call(number, attempts.ended, results)
        if not attempts.tries:
            self._enter((0, number))
        self.clients[number] = (attempts.asked(), results)
        node = attempts.node
        if self.nodes[node]:
            request = attempts.request(number)
            done = self.memo.do(self.nodes[node], "client", request, call)
            self._done(node, done, 0)

    def timer(self, node: int, timer: tuple) -> None:
        """Fire a timer."""
        self._count("fired")
        self.timers[node] = tuple(t for t in self.timers[node] if t != timer)
        done = self.memo.do(self.nodes[node], "timer", timer[1])
        self._done(node, done, timer[0])

    def synced(self, node: int) -> None:
        """End the oldest sync of a node."""
        (token, covered), *rest = self.syncs[node]
        files, earlier = self.disks[node]
        self.disks[node], self.syncs[node] = (files, earlier[covered:]), tuple(rest)
        self._done(node, self.memo.do(self.nodes[node], "synced", token), 0)

    def time_out(self, number: int) -> None:
        """End a client's wait for a response."""
        self._ends(number, "unknown")

    def crash(self, node: int, what: str = "crashes") -> None:
        """Crash a node; its timers and the messages under way to it are lost."""
        self._count(what)
        self.nodes[node], self.timers[node], self.syncs[node] = 0, (), ()
        self._drop_all(lambda pending: pending.dst == node)
        files, earlier = self.disks[node]
        if earlier and what == "power_losses":
            files = earlier[0]
        # What survives is durable: at the next power loss it is not lost.
        self.disks[node] = () if what == "disk_losses" else files, ()
        self.acted = node

    def power_loss(self, node: int) -> None:
        """Crash a node, whose disk loses the writes that no sync covers."""
        self.crash(node, "power_losses")

    def disk_loss(self, node: int) -> None:
        """Crash a node, whose disk loses everything."""
        self.crash(node, "disk_losses")

    def restart(self, node: int) -> None:
        """Start a dead node again."""
        self.restarts[node] += 1
        self.start(node)

    def split(self, way: tuple) -> None:
        """Partition the network; drop messages under way between two sides."""
        self._count("splits")
        self.changed["sides"] = way
        self._drop_all(lambda pending: way[pending.src] != way[pending.dst])

    def heal(self) -> None:
        """End the network partition."""
        self.changed["sides"] = None

    def cut(self, src: int, dst: int) -> None:
        """Cut a link in one direction; drop messages under way on it."""
        self._count("cuts")
        self.changed["severed"] = tuple(sorted({*self.before.severed, (src, dst)}))
        self._drop_all(lambda pending: (pending.src, pending.dst) == (src, dst))

    def mend(self, src: int, dst: int) -> None:
        """Mend a link that is cut."""
        kept = [link for link in self.before.severed if link != (src, dst)]
        self.changed["severed"] = tuple(kept)

    def clock(self, node: int, reading_s: float) -> None:
        """Set a node's clock."""
        self._count("clock_jumps")
        clocks = list(self.before.clocks)
        clocks[node] = reading_s
        self.changed["clocks"] = tuple(clocks)
        if self.nodes[node]:
            number = self.memo.values.number(freeze(reading_s))
            self.nodes[node], *_ = self.memo.do(self.nodes[node], "clock", number)

    # effects

    def _done(self, node, done, round):
        """Apply a node's effects; deliver its messages to itself at once."""
        heard, self._round, self.acted = 0, round, node
        while True:
            memory, effects, failed = done
            if failed:
                self.changed["failed"] = failed
                return
            self.nodes[node] = memory
            self.carry_out(node, effects)
            if not self._to_itself:
                return
            done = self.to_itself(node, memory, self._to_itself.pop(0))
            if (heard := heard + 1) > MOST_TO_ITSELF:
                kind = self.memo.host(memory).kind
                done = self.memo.fails(talks_to_itself(node, kind))

    def to_itself(self, node: int, memory: int, number: int) -> tuple:
        """Deliver a node's message to itself."""
        return self.memo.do(memory, "message", node, number)

    def send(self, src: int, to: int, number: int) -> None:
        """Send a message."""
        if src == to:
            self._to_itself.append(number)
        elif self.passes(src, to):
            insort(self.pending, Pending(self._round + 1, src, to, number))

    def passes(self, src: int, to: int) -> bool:
        """Return True if a message that is sent now is not dropped at once."""
        sides = self.before.sides
        whole = sides is None or sides[src] == sides[to]
        alive = self.nodes[to] or src == to
        return bool(alive and whole and (src, to) not in self.before.severed)

    def write(self, node: int, effect: Effect) -> None:
        """Write to a disk."""
        files, earlier = self.disks[node]
        name, what = effect
        after = dict(files)
        if type(effect) is not Save:
            what = self.memo.written(after.get(name, 0), effect)
        after[name] = what
        earlier = (*earlier, files) if self.journaled else ()
        self.disks[node] = tuple(sorted(after.items())), earlier

    def sync(self, node: int, token: int) -> None:
        """Begin a sync of what a node has written so far."""
        covered = len(self.disks[node][1]) - sum(n for _, n in self.syncs[node])
        self.syncs[node] += ((token, covered),)

    def set_timer(self, node: int, name: int, after_s: float) -> None:
        """Set a timer."""
        self.cancel_timer(node, name)
        timers = (*self.timers[node], (self._round + 1, name))
        self.timers[node] = tuple(sorted(timers))

    def cancel_timer(self, node: int, name: int) -> None:
        """Cancel a timer."""
        timers = self.timers[node]
        self.timers[node] = tuple(timer for timer in timers if timer[1] != name)

    def note(self, node: int, words: str) -> None:
        """Do nothing: a state has no trace."""

    def reply(self, node: int, request: int, result: int) -> None:
        """Send a client the result of its call."""
        self.responds(node, request, "ok", result)

    def refuse(self, node: int, request: int, why: str, to: int | None) -> None:
        """Send a client a refusal."""
        self.responds(node, request, "failed", self.memo.values.number(None), why, to)

    def responds(
        self, node: int, request: int, outcome: str, result: int, why="", to=None
    ) -> bool:
        """Send a client a response; return True if it still waits for it."""
        number, _ = session_of(request)
        attempts, _ = self.clients[number]
        open_ = attempts.request(number) == request
        heard = open_ and attempts.hears(node, outcome == "ok")
        if heard:
            self._ends(number, outcome, result, to)
        return heard

    def _ends(self, number, outcome, result=0, to=None):
        """End an attempt of a client, and its call, if it does not ask again."""
        attempts, results = self.clients[number]
        retries, nodes = self.memo.clients[number].retries, self.memo.nodes
        attempts, outcome = attempts.after(outcome, to, retries, nodes)
        if outcome:
            if outcome != "unknown":
                self._enter((1, number, outcome, result))
            result = result if outcome == "ok" else 0
            results = self.memo.with_result(number, results, result)
            self.ended(number, outcome, result)
        self.clients[number] = (attempts, results)

    def ended(self, number: int, outcome: str, result: int) -> None:
        """Note that a client's call has ended."""

    def _enter(self, entry: Any):
        """Add an entry to the past; sort calls in a row, and responses in a row."""
        past = self.past
        at = len(past)
        while at and past[at - 1][0] == entry[0] and past[at - 1] > entry:
            at -= 1
        past.insert(at, entry)

    def observe(self) -> None:
        """Let the monitors look at the nodes, if one has acted."""
        if self.acted is not None and "failed" not in self.changed:
            ghosts = self.changed.get("ghosts", self.before.ghosts)
            about = self.memo.observe(ghosts, tuple(self.nodes), self.acted)
            self.changed["ghosts"], broken = about
            self.changed["broken"] = self.before.broken or broken


class FaultLimits(NamedTuple):
    """Limits of the faults in one schedule.

    crashes to clock_jumps: how often each may happen. ways: how the network may split,
    each as every node's side. timers: how many may run out. steps: the maximal length
    of a schedule.
    """

    crashes: int = 0
    power_losses: int = 0
    disk_losses: int = 0
    drops: int = 0
    duplicates: int = 0
    splits: int = 0
    cuts: int = 0
    clock_jumps: int = 0
    timers: int = 0
    steps: int = 0
    ways: tuple = ()


def all_splits(nodes: int) -> tuple:
    """Return the sides of each node for all ways to split so many nodes in two.

    Of more than five nodes only one, or about one half, is cut off.
    """
    sizes = range(1, nodes // 2 + 1) if nodes <= 5 else (1, nodes // 2)
    ways = {}
    for size in sizes:
        for side in combinations(range(nodes), size):
            away = [int(node in side) for node in range(nodes)]
            ways[tuple(side != away[0] for side in away)] = None
            if nodes > 5 and size > 1:
                break
    return tuple(tuple(map(int, way)) for way in ways)


class Transitions:
    """The steps of one protocol, its clients and the limits of its faults.

    journaled: whether power may be lost, and disks keep what that would take.
    successor: the class that makes the next state of a state.
    """

    def __init__(
        self,
        memo: NodeMemo,
        limits: FaultLimits,
        journaled: bool = True,
        successor: Callable = Successor,
    ):
        self.memo, self.limits, self.journaled = memo, limits, journaled
        self._successor = successor

    def first(self) -> State:
        """Return the state in which all nodes have started."""
        nodes, clients = self.memo.nodes, self.memo.clients
        none, empty = (0,) * nodes, ((),) * nodes
        state = State(
            nodes=none,
            restarts=none,
            disks=(((), ()),) * nodes,
            timers=empty,
            syncs=empty,
            clocks=(0.0,) * nodes,
            clients=tuple((Attempts(0, client.node), ()) for client in clients),
            ghosts=self.memo.ghosts,
        )
        successor = self._successor(self.memo, state, self.journaled)
        for node in range(nodes):
            successor.start(node)
            if state.ghosts:
                successor.observe()
        return successor.state()

    def failure(self, state: State) -> NodeFailed:
        """Return the NodeFailed of the node that has failed."""
        return self.memo.failures[state.failed]

    def default(self, state: State) -> list[tuple]:
        """Return the steps without a fault, in the default order; none at the end."""
        pending = state.pending
        soon = [p for p in pending if p[0] < POSTPONED]
        steps = [("deliver", p) for p in soon]
        steps += [("synced", n) for n, syncs in enumerate(state.syncs) if syncs]
        steps += [("restart", n) for n, memory in enumerate(state.nodes) if not memory]
        calls, waiting = self._calls(state)
        steps += calls
        steps += [("deliver", p) for p in pending[len(soon) :]]
        if waiting or not state.clients:
            steps += self._timers(state)
        if state.sides is not None:
            steps.append(("heal",))
        steps += [("mend", *link) for link in state.severed]
        if waiting and (not steps or _troubled(state)):
            steps += [("time_out", n) for n in waiting if self._asks_more(state, n)]
        return steps

    def _calls(self, state):
        """Return the steps of calls, and the clients that wait for an answer."""
        calls, waiting = [], []
        for number, (attempts, _) in enumerate(state.clients):
            if attempts.waits:
                waiting.append(number)
            elif self._asks(state, number):
                calls.append((attempts.ended, number))
        return [("call", number) for _, number in sorted(calls)], waiting

    def _timers(self, state):
        if state.fired >= self.limits.timers:
            return []
        timers = [
            (timer, node) for node, set_ in enumerate(state.timers) for timer in set_
        ]
        return [("timer", node, timer) for timer, node in sorted(timers)]

    def _asks_more(self, state, number):
        attempts, results = state.clients[number]
        if attempts.tries <= self.memo.clients[number].retries:
            return True
        results = self.memo.with_result(number, results, 0)
        return self.memo.call(number, attempts.ended + 1, results)

    def faults(self, state: State) -> list[tuple]:
        """Return the steps that are faults, and timers that run out early."""
        limits, steps = self.limits, []
        if state.clients and not any(each.waits for each, _ in state.clients):
            steps += self._timers(state)
        alive = [node for node, memory in enumerate(state.nodes) if memory]
        if state.crashes < limits.crashes:
            steps += [("crash", node) for node in alive]
        if state.power_losses < limits.power_losses:
            steps += [("power_loss", node) for node in alive]
        if state.disk_losses < limits.disk_losses:
            steps += [("disk_loss", node) for node in alive]
        if state.drops < limits.drops:
            steps += [("drop", p) for p in state.pending]
        if state.duplicates < limits.duplicates:
            steps += [("duplicate", p) for p in state.pending]
        if state.splits < limits.splits and state.sides is None:
            steps += [("split", way) for way in limits.ways]
        if state.cuts < limits.cuts:
            links = permutations(range(len(state.nodes)), 2)
            steps += [("cut", *link) for link in links if link not in state.severed]
        if state.clock_jumps < limits.clock_jumps:
            clocks = enumerate(state.clocks)
            jumps = [(n, now + by_s) for n, now in clocks for by_s in (_HOUR, -_HOUR)]
            steps += [("clock", *jump) for jump in jumps]
        return steps

    def all(self, state: State) -> list[tuple]:
        """Return all steps that can be taken."""
        return self.default(state) + self.faults(state)

    def take(self, state: State, step: tuple) -> State:
        """Return the state after a step."""
        successor = self._successor(self.memo, state, self.journaled)
        getattr(successor, step[0])(*step[1:])
        if state.ghosts:
            successor.observe()
        return successor.state()

    def postpone(self, state: State, pending: Pending) -> State:
        """Return the state in which a message comes after all others."""
        return self.take(state, ("postpone", pending))

    def in_words(self, state: State, step: tuple) -> ScheduleStep:
        """Return a step in words."""
        kind, *about = step
        words = self.memo.words
        if kind in ("deliver", "duplicate", "drop"):
            _, src, dst, number = about[0]
            return ScheduleStep(kind, src, dst, words(number))
        if kind == "call":
            attempts, results = state.clients[about[0]]
            call = self.memo.call(about[0], attempts.ended, results)
            asked = words(call, describe_call)
            return ScheduleStep(kind, about[0], attempts.node, asked)
        if kind == "timer":
            return ScheduleStep(kind, about[0], 0, words(about[1][1]))
        if kind == "synced":
            return ScheduleStep(kind, about[0], 0, words(state.syncs[about[0]][0][0]))
        if kind == "split":
            return ScheduleStep(kind, 0, 0, describe_sides(about[0]))
        if kind == "clock":
            return ScheduleStep(kind, about[0], 0, repr(about[1]))
        return ScheduleStep(kind, *about)

    def find(self, state: State, step: ScheduleStep) -> tuple | None:
        """Return the step with these words, or None if it cannot happen now.

        It may be one beyond the limits of the search.
        """
        for each in self._candidates(state, step):
            # Words that a step is made of need not be spelled as it would spell them.
            if step.kind in ("split", "clock") or self.in_words(state, each) == step:
                return each
        return None

    def find_similar(self, state: State, step: ScheduleStep) -> tuple | None:
        """Return a step of the same kind, node and sort of message, or None."""
        if step.kind in ("deliver", "duplicate", "drop", "call", "timer"):
            sort = step.words.partition(" ")[0]
            for each in self._candidates(state, step):
                if self.in_words(state, each).words.partition(" ")[0] == sort:
                    return each
        return None

    def _candidates(self, state, step):
        """Return the steps that can be taken and may be the one with these words."""
        kind, a, b, words = step
        nodes, clients = len(state.nodes), state.clients
        if kind in ("deliver", "duplicate", "drop"):
            return [(kind, p) for p in state.pending if (p.src, p.dst) == (a, b)]
        if kind == "call":
            fits = a < len(clients) and self._asks(state, a)
        elif kind == "time_out":
            fits = a < len(clients) and clients[a][0].waits
        elif kind == "heal":
            fits = state.sides is not None
        elif kind == "split":
            way = _sides_in(words, nodes)
            return [("split", way)] if way and state.sides is None else []
        elif max(a, b) >= nodes:
            fits = False
        elif kind in ("cut", "mend"):
            fits = a != b and ((a, b) in state.severed) == (kind == "mend")
            return [(kind, a, b)] if fits else []
        elif kind == "timer":
            return [("timer", a, timer) for timer in state.timers[a]]
        elif kind == "clock":
            reading_s = _seconds_in(words)
            return [] if reading_s is None else [("clock", a, reading_s)]
        elif kind == "synced":
            fits = state.syncs[a]
        else:
            fits = bool(state.nodes[a]) == (kind != "restart")
        return [(kind, a)[: 1 + (kind != "heal")]] if fits else []

    def _asks(self, state, number):
        """Return True if a client that does not wait has something to ask."""
        attempts, results = state.clients[number]
        more = attempts.tries or self.memo.call(number, attempts.ended, results)
        return not attempts.waits and bool(more)


def _troubled(state):
    faults = state.crashes, state.power_losses, state.disk_losses, state.drops
    return any(faults) or state.splits or state.cuts


def _seconds_in(words):
    try:
        return float(words)
    except ValueError:
        return None


def _sides_in(words: str, nodes: int) -> tuple | None:
    """Return the side of each node from words such as "0 | 1 2"; None for others."""
    sides = [side.split() for side in words.split("|")]
    side_of = {node: k for k, side in enumerate(sides) for node in side}
    numbers = list(map(str, range(nodes)))
    if sum(map(len, sides)) != nodes or set(side_of) != set(numbers):
        return None
    return tuple(side_of[number] for number in numbers)


def describe_sides(side_of: tuple) -> str:
    """Return the sides of a partition in words, such as "0 | 1 2"."""
    sides = {}
    for node, side in enumerate(side_of):
        sides.setdefault(side, []).append(str(node))
    return " | ".join(" ".join(side) for side in sides.values())
