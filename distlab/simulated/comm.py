"""`SimulatedComm`: the interface of `Comm`, on a virtual clock."""

import copy
import pickle
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf

from distlab.errors import ExtraMissing, InvalidArgument
from distlab.faults import Hang, Kill
from distlab.peers import (
    check_color,
    check_group_name,
    check_not_alone,
    check_peer,
    check_requests,
    in_new_group,
)
from distlab.simulated.engine import DIED, HUNG, AnyOp, Op
from distlab.simulated.payloads import Box, Parcel, check_cargo
from distlab.trace import group_name

with ExtraMissing.named("a world of simulated ranks"):
    from numpy import ndarray

__all__ = [
    "SimulatedComm",
    "SimulatedRequest",
    "SimulatedStarted",
    "WatchedSimulatedComm",
]


class SimulatedRequest:
    """Messages in flight, from `isend`, `irecv` or `isendrecv`; `wait()` ends them."""

    def __init__(self, comm, op, room):
        self._comm, self._op, self._room = comm, op, room

    def is_completed(self) -> bool:
        """Return True if `wait()` would return at once.

        A call takes no time. A second call at the same time waits for the next one at
        which another rank does something, so that a polling loop ends.
        """
        return self._comm._is_over(self._op)

    def wait(self):
        """Wait until the message has been handed over; return its tensor or array."""
        self._comm._wait_for(self._op)
        return self._room


class SimulatedStarted:
    """A collective in progress, from `start`; `wait()` ends it."""

    def __init__(self, comm, call, ready_s):
        self._comm, self._call, self._ready_s = comm, call, ready_s
        group = comm._number
        self._op = Op(comm._engine, comm._me, "start", waiting=False, group=group)
        self._result = self._error = None

    def run(self) -> None:
        """Call it, in the rank's second coroutine, not before its input is ready."""
        engine, op = self._comm._engine, self._op
        if engine.clock.now < self._ready_s:
            engine.pass_time(op.rank, self._ready_s)
        try:
            self._result = self._call()
        except Exception as error:
            self._error = error
            engine.unraised.append((op.rank, error))
        op.end = engine.clock.now
        if op.waiting:
            engine.clock.wake(op.who, op.end)

    def is_completed(self) -> bool:
        """Return True if `wait()` would return at once, see `SimulatedRequest`."""
        return self._comm._is_over(self._op)

    def wait(self):
        """Wait until the collective has ended; return its result or raise its error."""
        self._comm._wait_for(self._op)
        if self._error is not None:
            unraised = self._comm._engine.unraised
            unraised[:] = [each for each in unraised if each[1] is not self._error]
            raise self._error
        return self._result


class SimulatedComm:
    """The communicator of one simulated rank; see `distlab.comm.Comm`.

    A rank that computes runs ahead of the clock, which catches up when the rank next
    sends, receives or waits.
    """

    device = "cpu"

    def __init__(self, engine, rank: int):
        self.rank, self.world_size = rank, engine.world_size
        self.ranks, self.group = engine.everyone, ""
        self._engine, self._me, self._number = engine, rank, 0
        self._asked_s = -inf
        self._started, self._of_rank = deque(), [self]
        self._splits = Counter()

    def __repr__(self):
        among = f", ranks={self.ranks}" if self.group else ""
        return f"SimulatedComm(rank={self.rank}, world_size={self.world_size}{among})"

    def send(self, tensor, dst: int) -> None:
        """Send a tensor or array to rank `dst`; ends when it has been taken."""
        op = self._begin("send")
        op.to = self._check(tensor, dst, "dst")
        self._engine.post_send(op, tensor)
        self._engine.stand_still(op)

    def recv(self, tensor, src: int):
        """Fill a tensor or array with the next message from rank `src`; return it."""
        op = self._begin("recv")
        op.source = self._check(tensor, src, "src")
        self._engine.post_recv(op, tensor)
        self._engine.stand_still(op)
        return tensor

    def recv_any(self, tensor) -> int:
        """Fill a tensor or array with the next message; return its sender's rank.

        It is the message that was sent first, of several the lowest rank's.
        """
        check_not_alone(self.world_size)
        op = self._begin("any")
        check_cargo(tensor)
        self._engine.post_recv_any(op, tensor)
        self._engine.stand_still(op)
        return self.ranks.index(op.source) if self._number else op.source

    def sendrecv(self, outgoing, incoming, *, dst: int, src: int):
        """Send `outgoing` to `dst` while filling `incoming` from `src`; return that."""
        op = self._begin("sendrecv")
        self._post_both(op, outgoing, incoming, dst, src)
        self._engine.stand_still(op)
        return incoming

    def isend(self, tensor, dst: int) -> SimulatedRequest:
        """Begin to send; the tensor must not change until the request's `wait()`."""
        op = self._begin("send", waiting=False)
        op.to = self._check(tensor, dst, "dst")
        self._engine.post_send(op, tensor)
        return SimulatedRequest(self, op, tensor)

    def irecv(self, tensor, src: int) -> SimulatedRequest:
        """Begin to receive; the tensor is filled once `wait()` has returned it."""
        op = self._begin("recv", waiting=False)
        op.source = self._check(tensor, src, "src")
        self._engine.post_recv(op, tensor)
        return SimulatedRequest(self, op, tensor)

    def isendrecv(self, outgoing, incoming, *, dst: int, src: int) -> SimulatedRequest:
        """Begin a `sendrecv`; `wait()` returns `incoming` once both messages ended."""
        op = self._begin("sendrecv", waiting=False)
        self._post_both(op, outgoing, incoming, dst, src)
        return SimulatedRequest(self, op, incoming)

    def _post_both(self, op, outgoing, incoming, dst, src):
        op.to = self._check(outgoing, dst, "dst")
        op.source = self._check(incoming, src, "src")
        op.sent = op.received = inf
        self._engine.post_recv(op, incoming)
        self._engine.post_send(op, outgoing)

    def wait_any(self, requests) -> int:
        """Wait until one of these requests has ended; return its index among them.

        Of several it is the one that ended first.
        """
        check_requests(requests)
        self._catch_up()
        engine = self._engine
        first = AnyOp(engine, [request._op for request in requests])
        if first.end > engine.clock.now:
            engine.stand_still(first)
        return first.first()

    def send_object(self, thing: object, dst: int) -> None:
        """Send any object that pickles; ends when it has been taken."""
        self.send(Parcel(pickle.dumps(thing)), dst)

    def recv_object(self, src: int) -> object:
        """Return the next object that rank `src` sends with `send_object`."""
        return pickle.loads(self.recv(Box(), src).data)

    def barrier(self) -> None:
        """Wait until every rank has called `barrier`; it costs only the waiting."""
        self._engine.meet(self._begin("barrier"), self.world_size, "barrier")

    def split(self, color: int | None, key: int | None = None, *, name: str = ""):
        """Return a Comm among the ranks that pass the same color, see `Comm.split`."""
        return self.split_as(color, key, name, "split()")

    def split_as(self, color: int | None, key: int | None, name: str, words: str):
        """Split as `split` does, as a collective named `words` on which ranks agree."""
        check_color(color, key)
        check_group_name(name)
        mine = color, self.rank if key is None else key
        op = self._begin("barrier")
        said = self._engine.meet(op, self.world_size, words, "split", mine)
        if color is None:
            return None
        said = [said[rank] for rank in self.ranks]
        return self._among(in_new_group(color, said, self.ranks), name)

    def _among(self, ranks, name):
        """Return the Comm of this rank in a new group."""
        among = frozenset(ranks)
        self._splits[among] += 1
        other = copy.copy(self)
        other.group = group_name(ranks, self._splits[among], name)
        other.ranks, other.world_size = ranks, len(ranks)
        other.rank = ranks.index(self._me)
        other._number = self._engine.table.number_of(other.group)
        other._started = deque()
        self._of_rank.append(other)
        return other

    def start(self, collective, *args, **options) -> SimulatedStarted:
        """Run `collective(comm, *args)` in the background, after those started before.

        The rank continues; the request's `wait()` ends it. Any other message of this
        rank waits for it first.
        """
        engine = self._engine
        call = partial(collective, self, *args, **options)
        nested = engine.running != self._me  # in a collective, not ahead as its rank is
        ready_s = engine.clock.now if nested else self._now_s
        started = SimulatedStarted(self, call, ready_s)
        self._started.append(started)
        where = self._me, self._number
        if where not in engine.besides:
            engine.beside(*where, self._run_started)
        engine.clock.wake(engine.besides[where], engine.clock.now)
        return started

    def compute(self, seconds: float) -> None:
        """Advance this rank's clock by a time."""
        self._go_ahead(self._now_s + _seconds(seconds))

    @contextmanager
    def work(self, label: str, *, seconds: float = 0.0) -> Iterator[None]:
        """Record the body as work in the trace; it takes `seconds` at least."""
        engine, start, least_s = self._engine, self._now_s, _seconds(seconds)
        engine.at_work[self._me] += 1
        try:
            yield
        finally:
            engine.at_work[self._me] -= 1
        end = max(self._now_s, start + least_s)
        self._go_ahead(end)
        step = engine.steps[self._me]
        engine.table.point(self._me, start, end, step, ("work", label))

    def mark(self, label: str) -> None:
        """Record a mark with this label in the trace."""
        engine, rank = self._engine, self._me
        now = self._now_s if engine.is_ahead[rank] else engine.clock.now
        engine.table.point(rank, now, now, engine.steps[rank], label)

    def finish(self) -> None:
        """Wait for all started collectives; raise the first error among them."""
        self._catch_up()
        for comm in self._of_rank:
            comm._drain()
        for rank, error in self._engine.unraised:
            if rank == self._me:
                raise error

    @property
    def _now_s(self):
        """The time on this rank's clock, which may be ahead of the engine's."""
        now, ahead_s = self._engine.clock.now, self._engine.ahead_s[self._me]
        return ahead_s if ahead_s > now else now

    def _go_ahead(self, moment):
        engine, rank = self._engine, self._me
        engine.ahead_s[rank], engine.is_ahead[rank] = moment, True

    def _catch_up(self):
        """Wait until the engine's clock has reached this rank's time."""
        engine, rank = self._engine, self._me
        if engine.ahead_s[rank] > engine.clock.now and engine.running == rank:
            engine.pass_time(rank, engine.ahead_s[rank])

    def _drain(self):
        while self._started:
            self._wait_for(self._started[-1]._op)

    def _wait_for(self, op):
        """Suspend this coroutine until `op` has ended."""
        self._catch_up()
        engine = self._engine
        if op.end > engine.clock.now:
            op.waiting, op.who = True, engine.running
            if op.end < inf:
                engine.clock.wake(op.who, op.end)
            engine.stand_still(op)
        elif op.round > engine.rounds[self._me]:
            engine.rounds[self._me] = op.round

    def _is_over(self, op):
        self._catch_up()
        engine = self._engine
        if op.end > engine.clock.now == self._asked_s:
            engine.poll(op)
        self._asked_s = engine.clock.now
        return op.end <= engine.clock.now

    def _run_started(self):
        """Run the started collectives one after another, then wait for the next."""
        while True:
            while self._started:
                self._started[0].run()
                self._started.popleft()
            self._engine.give_way()

    def _begin(self, kind, waiting=True):
        """Count one call, trigger a fault planned at it, and return a new Op."""
        engine, rank = self._engine, self._me
        if engine.running == rank:
            if engine.is_ahead[rank]:
                self._catch_up()
                engine.is_ahead[rank] = False
            if self._started:
                self._drain()
        engine.steps[rank] += 1
        if engine.faults:
            self._fail_if_planned()
        return Op(engine, rank, kind, waiting=waiting, group=self._number)

    def _fail_if_planned(self):
        engine = self._engine
        for fault in engine.faults:
            hits = isinstance(fault, Kill | Hang) and fault.rank == self._me
            if hits and fault.step == engine.steps[self._me]:
                label, step = type(fault).__name__.lower(), fault.step
                now = engine.clock.now
                engine.table.point(self._me, now, now, step, ("fault", label))
                engine.end_here(self._me, DIED if label == "kill" else HUNG)

    def _check(self, thing, peer, name):
        usual = peer.__class__ is int and 0 <= peer < self.world_size
        if not usual or peer == self.rank:
            check_peer(peer, name, self.rank, self.world_size)
        if thing.__class__ is not ndarray:
            check_cargo(thing)
        return self.ranks[peer]


def _seconds(seconds):
    if not seconds >= 0:
        raise InvalidArgument(f"a rank computes for 0 s or more, not {seconds!r}.")
    return seconds


class WatchedSimulatedComm(SimulatedComm):
    """The Comm of a simulated rank, with a record of `tensor` after each call.

    held: (step, numbers of the tensor) after each call, the input first, as step 0.
    sent: (peer, numbers) of each message, in order.
    """

    def __init__(self, comm: SimulatedComm, tensor):
        self.__dict__.update(vars(comm))
        self._tensor = tensor
        self.held, self.sent = [], []
        self.look()

    def look(self) -> None:
        """Record the tensor as it is now."""
        step = self._engine.steps[self._me]
        self.held.append((step, self._tensor.flatten().tolist()))

    def _begin(self, *about, **more):
        self.look()
        return super()._begin(*about, **more)

    def _check(self, thing, peer, name):
        peer = super()._check(thing, peer, name)
        if name == "dst":
            known = hasattr(thing, "flatten")  # a pickled object has no numbers
            self.sent.append((peer, thing.flatten().tolist() if known else []))
        return peer
