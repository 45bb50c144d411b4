"""`Successor`: the state after a step; each kind of step is a method.

    deliver, call, timer, ... ─▶ `NodeMemo`: the node's reaction ─▶ effects ─▶ `State`

A search takes steps from any state, again and again. A replay has a subclass that
records a trace, so that a step means the same in both.
"""

from bisect import insort
from typing import Any

from distlab.network.copies import freeze
from distlab.network.node import Effect, Runtime, Save, session_of
from distlab.network.node_diagnosis import MOST_TO_ITSELF, talks_to_itself
from distlab.network.schedules.state import NodeMemo, Pending, State

__all__ = ["POSTPONED", "Successor"]

POSTPONED = 1_000_000  # is added to the round of a message that is postponed


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
        _, earlier = self.disks[node]
        if earlier and what == "power_losses":
            self.disks[node] = earlier[0], ()
        elif what == "disk_losses":
            self.disks[node] = (), ()
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
