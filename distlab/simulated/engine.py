"""The simulation engine: ranks as coroutines, and messages that take virtual time.

    rank runs ── send, recv ──▶ posted; both sides there? ──▶ match: copy the data,
       ▲                                                      begin its flow, record it
       └────── the one that is next ◀────── clock ◀──────────────────┘

One coroutine runs at a time, always the one whose event is earliest, so messages begin
in the order of time. A rank is one coroutine, and one more for collectives that it has
started in the background; a backward pass of torch runs in a thread, see
`backward_threads`. Nothing depends on the machine: same functions, same fabric, same
seed, same trace, bit for bit.

The virtual clock is a queue of ranks by the time at which they resume:

    now 1.0     7, 4, 0     the next is rank 0, then 4
    1.5         3           later times, in a heap
    2.0         5, 1, 6

In a collective hundreds of ranks resume at the same time. They are in one list, so that
the heap is accessed once per time, not once per message.
"""

import sys
import traceback
from bisect import insort
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from math import inf
from operator import neg

from distlab.calls.progress import Progress
from distlab.errors import ExtraMissing, MessageMismatch
from distlab.faults import corrupted
from distlab.peers import Disagreement
from distlab.simulated.event_table import EventTable, message_row
from distlab.simulated.fabric import rate_of
from distlab.simulated.flows import Flows
from distlab.simulated.payloads import Box, Parcel, described, land
from distlab.simulated.per_rank_globals import Own
from distlab.units import readable_seconds

with ExtraMissing.named("a world of simulated ranks"):
    from greenlet import getcurrent, greenlet

__all__ = ["AnyOp", "Clock", "Engine", "Op"]


class Clock:
    """Ranks in the order of (time, rank).

    now: seconds from the start. It advances when no rank is left at a time.
    settle: called with a time before the clock leaves it; it may wake ranks.
    """

    def __init__(self, settle=None):
        self.now, self._settle = 0.0, settle
        self._at_now = []  # the lowest rank is last
        self._later, self._moments = {}, []
        self._asking = []

    def wake(self, rank: int, at: float) -> None:
        """Schedule `rank` to resume at a time, now or later."""
        ranks = self._later.get(at)
        if ranks is not None:
            ranks.append(rank)
        elif at > self.now:
            self._later[at] = [rank]
            heappush(self._moments, at)
        else:
            insort(self._at_now, rank, key=neg)

    def wake_at_next(self, rank: int) -> None:
        """Schedule `rank` last at the next time at which another one resumes."""
        self._asking.append(rank)

    def next(self) -> int | None:
        """Return the rank that resumes next, None if none does."""
        if not self._at_now and self._settle is not None:
            self._settle(self.now)
        if not self._at_now:
            if not self._moments:
                return None
            self.now = heappop(self._moments)
            self._at_now = self._later.pop(self.now)
            self._at_now.sort(reverse=True)
            if self._asking:
                self._at_now[:0], self._asking = self._asking, []
        return self._at_now.pop()

    def stop(self) -> None:
        """Remove all ranks from the queue."""
        self._at_now, self._later, self._moments = [], {}, []
        self._settle = None


RUNNING, DONE, RAISED, DIED, HUNG = "running", "done", "raised", "died", "hung"


class Op:
    """A pending operation: one call's sides of messages, a barrier, or a time.

    who: the coroutine: a rank, or its second one. to, source: the ranks it sends to and
    receives from, -1 for none. group: the number of its group in the table.
    sent, received: end times of these messages; end: of the whole; infinite while
    unknown. round: the latest round of its messages.
    waiting: True if its coroutine is suspended for it. since, step, before: the time,
    and its rank's step and round, when it began.
    """

    __slots__ = ("before", "end", "group", "kind", "rank", "received", "round", "sent")
    __slots__ += ("since", "source", "step", "to", "waiting", "who")

    def __init__(self, engine, rank, kind, waiting=True, group=0):
        self.rank, self.kind, self.waiting, self.group = rank, kind, waiting, group
        self.to, self.source, self.who = -1, -1, engine.running
        self.since, self.step = engine.clock.now, engine.steps[rank]
        self.before, self.round, self.end = engine.rounds[rank], 0, inf
        self.sent = self.received = 0.0


class AnyOp:
    """A set of pending operations, of which a coroutine waits for the first to end."""

    kind, to, source = "any", -1, -1

    def __init__(self, engine, ops):
        self.ops, self.rank, self.who = ops, ops[0].rank, engine.running
        for op in ops:
            op.waiting, op.who = True, self.who
            if engine.clock.now < op.end < inf:
                engine.clock.wake(op.who, op.end)

    @property
    def end(self):
        """The time at which the first of them ends."""
        return min(op.end for op in self.ops)

    @property
    def round(self):
        """The round of the one that ends first."""
        return self.ops[self.first()].round

    def first(self) -> int:
        """Return the index of the one that ends first, the lowest of several."""
        ends = [op.end for op in self.ops]
        return ends.index(min(ends))


class Engine:
    """One simulated run.

    clock: the time, and the queue of coroutines. table: the events so far. ended_s: the
    time at which the last coroutine resumed.
    states: rank -> its state. values: rank -> its result or error.
    running: the coroutine that runs. besides: (rank, group) -> its second coroutine.
    backwards: coroutine -> its `BackwardThread`. away: the one that runs, if one does.
    ahead_s: the time to which a rank has computed, perhaps later than the clock's.
    is_ahead: rank -> True if that may be so. at_work: rank -> number of `work` blocks
    that it is inside of.
    progress: the progress display.
    current: coroutine -> the Op that it is suspended for, if any.
    unraised: (rank, error) of started collectives that nobody has waited for since.
    meetings: (rank, group) -> the words of the collectives it has entered.
    stacks: rank -> frames, innermost first, of a rank that did not finish, at the end.
    interrupted: True if Ctrl-C was that end.
    """

    def __init__(self, world_size, fabric, faults=()):
        self.world_size, self.faults = world_size, faults
        flows = Flows(fabric, world_size, self._moved)
        self.clock, self.table = Clock(flows.settle), EventTable(world_size)
        self._flows, self._rows = flows, self.table.messages
        self._rate = rate_of(fabric)
        self.ended_s, self.running = 0.0, -1
        self.states = [RUNNING] * world_size
        self.values = [None] * world_size
        self.current, self.unraised = [None] * world_size, []
        self.steps = [0] * world_size
        self.rounds = [0] * world_size
        self.ahead_s = [0.0] * world_size
        self.everyone = list(range(world_size))
        self.is_ahead, self.at_work = [False] * world_size, [0] * world_size
        # src -> dst, or (dst, group) -> the unmatched (op, payload or buffer), in order
        self.sends = [defaultdict(list) for _ in range(world_size)]
        self.recvs = [defaultdict(list) for _ in range(world_size)]
        self.besides, self.backwards, self.away = {}, {}, None
        # rank, or (rank, group) -> its (op, buffer) of a receive from any rank
        self.recvs_any = {}
        self.meetings, self._meeting = defaultdict(list), defaultdict(list)
        self.stacks = {}
        self.interrupted, self.progress, self._stops = False, None, 0
        self._main = self._own = None
        self._coroutines, self._over, self._unborn = [], set(), None

    def run(self, bodies) -> None:
        """Run each rank's body, a function without arguments, until none can go on."""
        self._main, self._own = getcurrent(), Own(self.world_size)
        callers = self._own.save()
        for rank, body in enumerate(bodies):
            coroutine = self._add(self._live)
            coroutine.switch(rank, body)  # started from here, so that none nests
            self.clock.wake(rank, 0.0)
        stopped = {}
        try:
            with Progress() as self.progress, self._torch():
                self._next()
                while self._unborn is not None:
                    (coroutine, creator), self._unborn = self._unborn, None
                    coroutine.switch()
                    creator.switch()
        except KeyboardInterrupt as interrupt:
            self.interrupted = True
            below = traceback.walk_tb(interrupt.__traceback__)
            stopped = {self.running: _frames(below)[::-1]}
        self.stacks, self.progress = stopped | self._frames_of_all(), None
        for coroutine in self._coroutines:
            if not coroutine.dead:
                coroutine.throw()  # ends coroutines that are still suspended
        for thread in self.backwards.values():
            thread.end()
        self._coroutines, self._main = [], None  # the rest can be pickled
        self._own.restore(callers)
        self._flows, self._own, self.clock = None, None, Clock()
        self.backwards = {}
        self.clock.now = self.ended_s

    @contextmanager
    def _torch(self):
        """Let ranks wait in torch's backward passes, and take time for its products."""
        with ExitStack() as stack:
            if self._rate is not None or "torch" in sys.modules:
                from distlab.simulated.backward_threads import backward_in_threads

                stack.enter_context(backward_in_threads())
            if self._rate is not None:
                from distlab.simulated.flop_clock import FlopClock

                clock = stack.enter_context(FlopClock(self, self._rate))
                stack.callback(clock.record)
            yield

    def beside(self, rank: int, group: int, body) -> int:
        """Add a coroutine of `rank` that runs `body` once woken; return its number.

        The main one starts it: a coroutine inherits the depth of the stack that it is
        started from, and one started by another, and so on, would reach the limit.
        """
        if self.away is not None:
            return self.away.ask(self.beside, rank, group, body)
        who = self.besides[rank, group] = len(self._coroutines)
        self.current.append(None)

        def live():
            self._main.switch()
            self.running = who
            self._own.begin()
            body()

        running, saved = self.running, self._own.save()
        self._unborn = self._add(live), getcurrent()
        self._main.switch()
        self._own.restore(saved)
        self.running = running
        return who

    def _add(self, live):
        coroutine = greenlet(live, self._main)
        coroutine.engine = self  # so that a backward pass finds it
        self._coroutines.append(coroutine)
        return coroutine

    def _live(self, rank, body):
        self._main.switch()
        self.running = rank
        self._own.begin()
        try:
            self.values[rank] = body()
            self.states[rank] = DONE
        except Exception as error:
            self.values[rank] = error
            self.states[rank] = RAISED
            self.clock.stop()  # the world ends with its first failure
        self.ended_s = self.clock.now
        self._over.add(rank)
        self._next()

    def _next(self):
        """Switch to the coroutine that is next, or to the main one at the end."""
        if self.away is not None:
            return self.away.ask(self._next)
        while (who := self.clock.next()) in self._over:
            pass
        if who is not None:
            self._coroutines[who].switch()
        elif getcurrent() is not self._main:
            self._main.switch()

    def stand_still(self, op: Op) -> None:
        """Suspend a coroutine until `op` is over; others run meanwhile.

        A woken coroutine checks whether it may continue: messages that were slowed down
        by others have left earlier times in the clock.
        """
        if self.away is not None:
            return self.away.ask(self.stand_still, op)
        who, clock = op.who, self.clock
        self.current[who], saved = op, self._own.save()
        self._stops += 1
        if not self._stops & 255:
            self.progress.show(self._how_far)
        while True:
            other = clock.next()
            if other is None:
                self._main.switch()  # no coroutine can continue
            elif other != who and other not in self._over:
                self._coroutines[other].switch()
            if op.end <= clock.now:
                break
        self._own.restore(saved)
        self.running, self.current[who], self.ended_s = who, None, clock.now
        if op.round > self.rounds[op.rank]:
            self.rounds[op.rank] = op.round

    def _how_far(self):
        now = readable_seconds(self.clock.now)
        return f"{self.world_size} simulated ranks, {now} on their clock"

    def give_way(self, op: Op | None = None) -> None:
        """Suspend this coroutine until it is woken; `op` is its pending operation."""
        if self.away is not None:
            return self.away.ask(self.give_way, op)
        who, saved = self.running, self._own.save()
        self.current[who] = op
        self._next()
        self._own.restore(saved)
        self.running, self.current[who] = who, None

    def poll(self, op: Op) -> None:
        """Suspend this coroutine up to the next time at which another one resumes."""
        self.clock.wake_at_next(self.running)
        self.give_way(op)
        self.ended_s = self.clock.now

    def pass_time(self, rank: int, until_s: float) -> None:
        """Suspend `rank` until that time."""
        op = Op(self, rank, "compute")
        op.end = until_s
        self.clock.wake(op.who, op.end)
        self.stand_still(op)

    def end_here(self, rank: int, state: str) -> None:
        """End a rank that died, or hangs: it never resumes."""
        self.states[rank] = state
        self.ended_s = self.clock.now
        self._over.add(self.running)
        if state == DIED:
            self.clock.stop()
        self._next()

    def _frames_of_all(self):
        return {
            rank: [
                frame
                for part in (self.backwards.get(rank), coroutine)
                if part is not None
                for frame in _frames(traceback.walk_stack(part.gr_frame))
            ]
            for rank, coroutine in enumerate(self._coroutines[: self.world_size])
            if coroutine.gr_frame is not None
        }

    def post_send(self, op, thing) -> None:
        """Post a send; the message moves as soon as its receive is posted."""
        if self.faults:
            thing, struck = corrupted(thing, self.faults, op.rank, self.steps[op.rank])
            if struck:
                now, step = self.clock.now, self.steps[op.rank]
                self.table.point(op.rank, now, now, step, ("fault", "corrupt"))
        dst = (op.to, op.group) if op.group else op.to
        asked = self.recvs[op.rank].get(dst)
        if asked:
            receiver, room = asked.pop(0)
            self._match(op, thing, receiver, room)
        elif dst in self.recvs_any:
            receiver, room = self.recvs_any.pop(dst)
            receiver.source = op.rank
            self._match(op, thing, receiver, room)
        else:
            self.sends[op.rank][dst].append((op, thing))

    def post_recv(self, op, room) -> None:
        """Post a receive of the next message from its source into `room`, a buffer."""
        src, me = op.source, (op.rank, op.group) if op.group else op.rank
        offered = self.sends[src].get(me)
        if offered:
            sender, thing = offered.pop(0)
            self._match(sender, thing, op, room)
        else:
            self.recvs[src][me].append((op, room))

    def post_recv_any(self, op, room) -> None:
        """Post a receive of the message that was sent first, from any rank.

        Of those sent at one time it is the lowest rank's.
        """
        me = (op.rank, op.group) if op.group else op.rank
        offered = [sends.get(me) for sends in self.sends]
        first = min(
            ((sends[0][0].since, src) for src, sends in enumerate(offered) if sends),
            default=None,
        )
        if first:
            op.source = first[1]
            self.post_recv(op, room)
        else:
            self.recvs_any[me] = op, room

    def _match(self, sender, thing, receiver, room):
        """Move a message: both sides are there."""
        src, dst, size = sender.rank, receiver.rank, thing.nbytes
        if room.nbytes == size and room.dtype == thing.dtype:
            land(thing, room)
        elif not isinstance(room, Box) or not isinstance(thing, Parcel):
            self._refuse(sender, receiver, thing, room)
        else:
            room.data = thing.data
        number = sender.before if sender.before > receiver.before else receiver.before
        number += 1
        about = len(self._rows), sender, receiver
        end = self._flows.begin(src, dst, size, self.clock.now, about)
        self._rows.extend(
            message_row(
                src, dst, size, sender.since, receiver.since, end,
                sender.step, receiver.step, number, sender.group,
            )
        )  # fmt: skip
        if number > sender.round:
            sender.round = number
        if number > receiver.round:
            receiver.round = number
        self._ends(sender, receiver, end)

    def _moved(self, about, end):
        """Record the end of a message that shares its path."""
        row, sender, receiver = about
        self.table.ends(row, end)
        self._ends(sender, receiver, end)

    def _ends(self, sender, receiver, end):
        """Set a message's end, and wake coroutines for which it was the last."""
        sender.sent = receiver.received = end
        for op in (sender, receiver):
            last = op.end = op.sent if op.sent > op.received else op.received
            if last < inf and op.waiting:
                self.clock.wake(op.who, last)

    def _refuse(self, sender, receiver, thing, room):
        src, dst = sender.rank, receiver.rank
        number = 1 + self.table.counts().get((src, dst, sender.group), 0)
        raise MessageMismatch(
            f"message {number} from rank {src} to rank {dst} does not fit: "
            f"rank {src} sends {described(thing)}, "
            f"rank {dst} has room for {described(room)}."
        )

    def meet(self, op, size: int, words: str, label: str = "", said=None) -> dict:
        """Enter a group's next barrier; return rank -> its `said`, once all are there.

        The last of its `size` ranks to arrive frees all, at no cost of its own.

        Raises: Disagreement if another rank has entered it with other words.
        """
        self.meetings[op.rank, op.group].append(words)
        inside = self._meeting[op.group]
        inside.append((op, said))
        first = inside[0][0]
        others = self.meetings[first.rank, op.group][-1]
        if others != words:
            raise Disagreement(words)
        if len(inside) == size:
            now, what = self.clock.now, ("barrier", label)
            for each, _ in inside:
                self.table.point(each.rank, each.since, now, each.step, what, op.group)
                each.end = now
                self.clock.wake(each.who, now)
            self._meeting[op.group] = []
        self.stand_still(op)
        return {each.rank: said for each, said in inside}

    def in_meetings(self) -> list[Op]:
        """Return the operations that wait in a barrier."""
        return [op for inside in self._meeting.values() for op, _ in inside]


def _frames(walked):
    return [(at.f_code.co_filename, line, at.f_code.co_name) for at, line in walked]
