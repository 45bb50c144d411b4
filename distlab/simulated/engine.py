"""The virtual clock: ranks as coroutines, and messages that take the time they should.

    rank runs ── send, recv ──▶ posted; both sides there? ──▶ match: copy the data,
       ▲                                                      book the way, note it
       └────── the rank that is next ◀────── clock ◀───────────────────┘

One rank runs at a time, always the one whose event is earliest, so ways are booked in
the order of time. Nothing depends on the machine: same functions, same fabric, same
seed, same trace, bit for bit.
"""

import traceback

from greenlet import getcurrent, greenlet

from distlab.errors import MessageMismatch
from distlab.simulated.booking import Booking
from distlab.simulated.cargo import Box, Parcel, described, land
from distlab.simulated.clock import Clock
from distlab.simulated.table import Table, message_row

__all__ = ["Engine", "Op"]

RUNNING, DONE, RAISED, DIED, HUNG = "running", "done", "raised", "died", "hung"


class Op:
    """What a rank waits for: one call's sides of messages, or a barrier.

    to, source: whom it sends to and receives from, -1 for nobody. left: sides not yet
    matched. end: when the last of the others ends. round: the latest round of its
    messages. waiting: whether its rank stands still for it. since, step, before: the
    time, and its rank's step and round, when it began.
    """

    __slots__ = ("before", "end", "kind", "left", "rank", "round", "since")
    __slots__ += ("source", "step", "to", "waiting")

    def __init__(self, engine, rank, kind, left, to=-1, source=-1, waiting=True):
        self.rank, self.kind, self.left, self.waiting = rank, kind, left, waiting
        self.to, self.source = to, source
        self.since, self.step = engine.clock.now, engine.steps[rank]
        self.before = engine.rounds[rank]
        self.end, self.round = 0.0, 0


class Engine:
    """One simulated run.

    clock: the time, and who is next. table: what has happened.
    states: rank -> how it is. values: rank -> what it returned or raised.
    current: rank -> the Op that it stands still for, if any. barriers: rank -> how many
    it has entered. stacks: rank -> its frames, outermost first, where a rank that did
    not finish stood at the end.
    """

    def __init__(self, world_size, fabric, faults=()):
        self.world_size, self.faults = world_size, faults
        self.clock, self.table = Clock(), Table(world_size)
        self._book, self._note = Booking(fabric, world_size).book, self.table.message
        self.states = [RUNNING] * world_size
        self.values = [None] * world_size
        self.current = [None] * world_size
        self.steps = [0] * world_size
        self.rounds = [0] * world_size
        self.sends, self.recvs = {}, {}
        self.barriers, self.in_barrier = [0] * world_size, []
        self.stacks = {}
        self._main = None
        self._coroutines = []

    def run(self, bodies) -> None:
        """Let each rank run its body, a function without arguments, until none can."""
        self._main = getcurrent()
        for rank, body in enumerate(bodies):
            coroutine = greenlet(self._live, self._main)
            self._coroutines.append(coroutine)
            coroutine.switch(rank, body)  # started from here, so that none nests
            self.clock.wake(rank, 0.0)
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
            self.clock.stop()  # the world ends with its first failure
        self._next()

    def _next(self):
        """Give way to the rank that is next, or to the end."""
        rank = self.clock.next()
        if rank is not None:
            self._coroutines[rank].switch()
        elif getcurrent() is not self._main:
            self._main.switch()

    def stand_still(self, op: Op) -> None:
        """Wait until `op` is over; other ranks run meanwhile."""
        rank = op.rank
        self.current[rank] = op
        other = self.clock.next()
        if other is None:
            self._main.switch()  # nobody can go on
        elif other != rank:
            self._coroutines[other].switch()
        self.current[rank] = None
        if op.round > self.rounds[rank]:
            self.rounds[rank] = op.round

    def end_here(self, rank: int, state: str) -> None:
        """Let a rank never go on: it died, or hangs."""
        self.states[rank] = state
        if state == DIED:
            self.clock.stop()
        self._next()

    def _frames_of_all(self):
        return {
            rank: _frames(coroutine.gr_frame)
            for rank, coroutine in enumerate(self._coroutines)
            if coroutine.gr_frame is not None
        }

    def post_send(self, op, thing, dst) -> None:
        """Offer a message to `dst`; it moves as soon as `dst` has asked for it."""
        key = op.rank * self.world_size + dst
        asked = self.recvs.get(key)
        if asked:
            receiver, room = asked.pop(0)
            self._match(op, thing, receiver, room)
        else:
            self.sends.setdefault(key, []).append((op, thing))

    def post_recv(self, op, room, src) -> None:
        """Ask for the next message from `src`, into `room`."""
        key = src * self.world_size + op.rank
        offered = self.sends.get(key)
        if offered:
            sender, thing = offered.pop(0)
            self._match(sender, thing, op, room)
        else:
            self.recvs.setdefault(key, []).append((op, room))

    def _match(self, sender, thing, receiver, room):
        """Move a message: both sides are there."""
        src, dst, size = sender.rank, receiver.rank, thing.nbytes
        if room.nbytes == size and room.dtype == thing.dtype:
            land(thing, room)
        elif not isinstance(room, Box) or not isinstance(thing, Parcel):
            self._refuse(src, dst, thing, room)
        else:
            room.data = thing.data
        end = self._book(src, dst, size, self.clock.now)
        number = sender.before if sender.before > receiver.before else receiver.before
        number += 1
        self._note(
            message_row(
                src, dst, size, sender.since, receiver.since, end,
                sender.step, receiver.step, number,
            )
        )  # fmt: skip
        for op in (sender, receiver):
            op.left -= 1
            if end > op.end:
                op.end = end
            if number > op.round:
                op.round = number
            if not op.left and op.waiting:
                self.clock.wake(op.rank, op.end)

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
        self.in_barrier.append(op)
        if len(self.in_barrier) == self.world_size:
            now = self.clock.now
            for each in self.in_barrier:
                what = ("barrier", "")
                self.table.point(each.rank, each.since, now, each.step, what)
                self.clock.wake(each.rank, now)
            self.in_barrier = []


def _frames(frame):
    found = [
        (at.f_code.co_filename, line, at.f_code.co_name)
        for at, line in traceback.walk_stack(frame)
    ]
    return found[::-1]
