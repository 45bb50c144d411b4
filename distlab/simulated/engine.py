"""The virtual clock: ranks as coroutines, and messages that take the time they should.

    rank runs ── send, recv ──▶ posted; both sides there? ──▶ match: copy the data,
       ▲                                                      book the way, note it
       └──── the earliest event's rank ◀──── heap of (time, rank) ◀────┘

One rank runs at a time, always the one whose event is earliest, so ways are booked in
the order of time. Nothing depends on the machine: same functions, same fabric, same
seed, same trace, bit for bit.
"""

import random
import traceback
from heapq import heappop, heappush

from greenlet import getcurrent, greenlet

from distlab.errors import InvalidArgument, MessageMismatch
from distlab.simulated.cargo import Box, Parcel, described, land
from distlab.simulated.table import Table

__all__ = ["Engine", "Op"]

RUNNING, DONE, RAISED, DIED, HUNG = "running", "done", "raised", "died", "hung"


class Op:
    """What a rank waits for: one call's sides of messages, or a barrier.

    to, source: whom it sends to and receives from, -1 for nobody. left: sides not yet
    matched. end: when the last of the others ends. round: the latest round of its
    messages. waiting: whether its rank stands still for it.
    """

    __slots__ = ("end", "kind", "left", "rank", "round", "source", "to", "waiting")

    def __init__(self, rank, kind, left, to=-1, source=-1, waiting=True):
        self.rank, self.kind, self.left, self.waiting = rank, kind, left, waiting
        self.to, self.source = to, source
        self.end = 0.0
        self.round = 0


class Engine:
    """One simulated run.

    now: the clock, in seconds from the start. table: what has happened.
    states: rank -> how it is. values: rank -> what it returned or raised.
    current: rank -> the Op that it stands still for, if any. barriers: rank -> how many
    it has entered. stacks: rank -> its frames, outermost first, where a rank that did
    not finish stood at the end.
    """

    def __init__(self, world_size, fabric, faults=()):
        self.world_size, self.fabric, self.faults = world_size, fabric, faults
        self.now = 0.0
        self.table = Table(world_size)
        self._note = self.table.message
        self.states = [RUNNING] * world_size
        self.values = [None] * world_size
        self.current = [None] * world_size
        self.steps = [0] * world_size
        self.rounds = [0] * world_size
        self.sends, self.recvs = {}, {}
        self.barriers, self.in_barrier = [0] * world_size, []
        self.stacks = {}
        self._draw = random.Random(fabric.seed) if fabric.seed is not None else None
        self._ways, self._names, self._free = {}, {}, []
        self._heap = []
        self._main = None
        self._coroutines = []

    def run(self, bodies) -> None:
        """Let each rank run its body, a function without arguments, until none can."""
        self._main = getcurrent()
        for rank, body in enumerate(bodies):
            coroutine = greenlet(self._live, self._main)
            self._coroutines.append(coroutine)
            coroutine.switch(rank, body)  # started from here, so that none nests
            self.resume(rank, 0.0)
        self._next()
        self.stacks = self._frames_of_all()
        for coroutine in self._coroutines:
            if not coroutine.dead:
                coroutine.throw()  # ends what is left standing
        self._coroutines, self._main = [], None  # the rest can travel

    def _live(self, rank, body):
        self._main.switch()
        try:
            self.values[rank] = body()
            self.states[rank] = DONE
        except Exception as error:
            self.values[rank] = error
            self.states[rank] = RAISED
            self._heap.clear()  # the world ends with its first failure
        self._next()

    def _next(self):
        """Give way to the rank with the earliest event, or to the end."""
        if self._heap:
            self.now, rank = heappop(self._heap)
            self._coroutines[rank].switch()
        elif getcurrent() is not self._main:
            self._main.switch()

    def resume(self, rank: int, at: float) -> None:
        """Let `rank` go on at a moment."""
        heappush(self._heap, (at, rank))

    def stand_still(self, rank: int, op: Op) -> None:
        """Wait until `op` is over; other ranks run meanwhile."""
        self.current[rank] = op
        if self._heap:
            self.now, other = heappop(self._heap)
            if other != rank:
                self._coroutines[other].switch()
        else:
            self._main.switch()  # nobody can go on
        self.current[rank] = None
        if op.round > self.rounds[rank]:
            self.rounds[rank] = op.round

    def end_here(self, rank: int, state: str) -> None:
        """Let a rank never go on: it died, or hangs."""
        self.states[rank] = state
        if state == DIED:
            self._heap.clear()
        self._next()

    def _frames_of_all(self):
        return {
            rank: _frames(coroutine.gr_frame)
            for rank, coroutine in enumerate(self._coroutines)
            if coroutine.gr_frame is not None
        }

    def post_send(self, op, thing, dst) -> None:
        """Offer a message to `dst`; it moves as soon as `dst` has asked for it."""
        src = op.rank
        side = (op, thing, self.now, self.steps[src], self.rounds[src])
        key = src * self.world_size + dst
        asked = self.recvs.get(key)
        if asked:
            self._match(src, dst, side, asked.pop(0))
        else:
            _line(self.sends, key).append(side)

    def post_recv(self, op, room, src) -> None:
        """Ask for the next message from `src`, into `room`."""
        dst = op.rank
        side = (op, room, self.now, self.steps[dst], self.rounds[dst])
        key = src * self.world_size + dst
        offered = self.sends.get(key)
        if offered:
            self._match(src, dst, offered.pop(0), side)
        else:
            _line(self.recvs, key).append(side)

    def _match(self, src, dst, sent, asked):
        """Move a message: both sides are there."""
        sender, thing, sent_at, sent_step, sent_round = sent
        receiver, room, asked_at, asked_step, asked_round = asked
        size = thing.nbytes
        if room.nbytes == size and room.dtype == thing.dtype:
            land(thing, room)
        elif not isinstance(room, Box) or not isinstance(thing, Parcel):
            self._refuse(src, dst, thing, room)
        else:
            room.data = thing.data
        end = self._book(src, dst, size)
        number = (sent_round if sent_round > asked_round else asked_round) + 1
        self._note(
            (src, dst, size, sent_at, asked_at, end, sent_step, asked_step, number)
        )
        for op in (sender, receiver):
            op.left -= 1
            if end > op.end:
                op.end = end
            if number > op.round:
                op.round = number
            if not op.left and op.waiting:
                heappush(self._heap, (op.end, op.rank))

    def _book(self, src, dst, size):
        """Keep the way for a message as soon as it is free; return when it arrives."""
        key = src * self.world_size + dst
        way = self._ways.get(key) or self._find(key, src, dst)
        latency, per_byte, wires = way
        if self._draw is not None:
            latency *= self.fabric.stretch(self._draw)
        free, start = self._free, self.now
        for wire, _ in wires:
            if free[wire] > start:
                start = free[wire]
        end = start + (latency + size * per_byte)
        for wire, wire_per_byte in wires:
            free[wire] = end if wire_per_byte is None else start + size * wire_per_byte
        return end

    def _find(self, key, src, dst):
        found = self.fabric.way(src, dst)
        if found is None:
            raise InvalidArgument(
                f"this fabric has no way from rank {src} to rank {dst}. Give it a "
                "link, or let the message go through a rank that both can reach."
            )
        slowest = max([found.seconds_per_byte, *(rate for _, rate in found.shared)])
        wires = [(("out", src), None), (("in", dst), None), *found.shared]
        booked = tuple((self._wire(name), rate) for name, rate in wires)
        self._ways[key] = way = (found.latency_s, slowest, booked)
        return way

    def _wire(self, name):
        """Return the number of a wire; its time of being free is kept under that."""
        if name not in self._names:
            self._names[name] = len(self._free)
            self._free.append(0.0)
        return self._names[name]

    def _refuse(self, src, dst, thing, room):
        number = 1 + self.table.counts().get((src, dst), 0)
        raise MessageMismatch(
            f"message {number} from rank {src} to rank {dst} does not fit: "
            f"rank {src} sends {described(thing)}, "
            f"rank {dst} has room for {described(room)}."
        )

    def enter_barrier(self, op) -> None:
        """Wait for everybody; the last to come frees all, at no cost of its own."""
        self.barriers[op.rank] += 1
        self.in_barrier.append((op, self.now))
        if len(self.in_barrier) == self.world_size:
            for entered, since in self.in_barrier:
                step = self.steps[entered.rank]
                what = ("barrier", "")
                self.table.point(entered.rank, since, self.now, step, what)
                self.resume(entered.rank, self.now)
            self.in_barrier = []


def _line(lines, key):
    """Return the list of a key; setdefault would make a list in vain each time."""
    line = lines.get(key)
    if line is None:
        line = lines[key] = []
    return line


def _frames(frame):
    found = [
        (at.f_code.co_filename, line, at.f_code.co_name)
        for at, line in traceback.walk_stack(frame)
    ]
    return found[::-1]
