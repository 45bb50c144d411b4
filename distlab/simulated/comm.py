"""`SimulatedComm`: the face of `Comm`, on a virtual clock."""

import pickle

from numpy import ndarray

from distlab.errors import InvalidArgument
from distlab.faults import Hang, Kill
from distlab.peers import check_peer
from distlab.simulated.cargo import Box, Parcel, check_cargo
from distlab.simulated.engine import DIED, HUNG, Op

__all__ = ["SimulatedComm", "SimulatedRequest"]


class SimulatedRequest:
    """A message under way, from `isend` or `irecv`; `wait()` ends it."""

    def __init__(self, engine, op, room):
        self._engine, self._op, self._room = engine, op, room

    def is_completed(self) -> bool:
        """Return whether `wait()` would return at once."""
        return not self._op.left and self._op.end <= self._engine.clock.now

    def wait(self):
        """Wait until the message has been handed over; return its tensor or array."""
        engine, op = self._engine, self._op
        if op is not None:
            self._op = None
            op.waiting = True
            if not op.left:
                engine.clock.wake(op.rank, max(op.end, engine.clock.now))
            engine.stand_still(op)
        return self._room


class SimulatedComm:
    """What one simulated rank may do; see `distlab.comm.Comm`.

    `compute` is for what only a virtual clock has to be told: time spent on work.
    """

    device = "cpu"

    def __init__(self, engine, rank: int):
        self.rank, self.world_size = rank, engine.world_size
        self._engine = engine

    def __repr__(self):
        return f"SimulatedComm(rank={self.rank}, world_size={self.world_size})"

    def send(self, tensor, dst: int) -> None:
        """Send a tensor or array to rank `dst`; ends when it has been taken."""
        op = self._begin("send", 1, to=dst)
        self._check(tensor, dst, "dst")
        self._engine.post_send(op, tensor, dst)
        self._engine.stand_still(op)

    def recv(self, tensor, src: int):
        """Fill a tensor or array with the next message from rank `src`; return it."""
        op = self._begin("recv", 1, source=src)
        self._check(tensor, src, "src")
        self._engine.post_recv(op, tensor, src)
        self._engine.stand_still(op)
        return tensor

    def sendrecv(self, outgoing, incoming, *, dst: int, src: int):
        """Send `outgoing` to `dst` while filling `incoming` from `src`; return that."""
        op = self._begin("sendrecv", 2, dst, src)
        self._check(outgoing, dst, "dst")
        self._check(incoming, src, "src")
        engine = self._engine
        engine.post_recv(op, incoming, src)
        engine.post_send(op, outgoing, dst)
        engine.stand_still(op)
        return incoming

    def isend(self, tensor, dst: int) -> SimulatedRequest:
        """Begin to send; the tensor must not change until the request's `wait()`."""
        op = self._begin("send", 1, to=dst, waiting=False)
        self._check(tensor, dst, "dst")
        self._engine.post_send(op, tensor, dst)
        return SimulatedRequest(self._engine, op, tensor)

    def irecv(self, tensor, src: int) -> SimulatedRequest:
        """Begin to receive; the tensor is filled once `wait()` has returned it."""
        op = self._begin("recv", 1, source=src, waiting=False)
        self._check(tensor, src, "src")
        self._engine.post_recv(op, tensor, src)
        return SimulatedRequest(self._engine, op, tensor)

    def send_object(self, thing: object, dst: int) -> None:
        """Send any object that pickles; ends when it has been taken."""
        self.send(Parcel(pickle.dumps(thing)), dst)

    def recv_object(self, src: int) -> object:
        """Return the next object that rank `src` sends with `send_object`."""
        return pickle.loads(self.recv(Box(), src).data)

    def barrier(self) -> None:
        """Wait until every rank has called `barrier`; it costs only the waiting."""
        op = self._begin("barrier", 1)
        self._engine.enter_barrier(op)
        self._engine.stand_still(op)

    def compute(self, seconds: float) -> None:
        """Let time pass on this rank's clock."""
        if not seconds >= 0:
            raise InvalidArgument(f"a rank computes for 0 s or more, not {seconds!r}.")
        engine = self._engine
        engine.clock.wake(self.rank, engine.clock.now + seconds)
        engine.stand_still(Op(engine, self.rank, "compute", 0))

    def mark(self, label: str) -> None:
        """Write into the trace what this rank is doing from here on, in words."""
        engine = self._engine
        now, step = engine.clock.now, engine.steps[self.rank]
        engine.table.point(self.rank, now, now, step, label)

    def _begin(self, kind, sides, to=-1, source=-1, waiting=True):
        """Count one call, and let a planned fault happen at it."""
        engine, rank = self._engine, self.rank
        engine.steps[rank] += 1
        if engine.faults:
            self._fail_if_planned()
        return Op(engine, rank, kind, sides, to, source, waiting)

    def _fail_if_planned(self):
        engine = self._engine
        for fault in engine.faults:
            hits = isinstance(fault, Kill | Hang) and fault.rank == self.rank
            if hits and fault.step == engine.steps[self.rank]:
                label, step = type(fault).__name__.lower(), fault.step
                now = engine.clock.now
                engine.table.point(self.rank, now, now, step, ("fault", label))
                engine.end_here(self.rank, DIED if label == "kill" else HUNG)

    def _check(self, thing, peer, name):
        usual = peer.__class__ is int and 0 <= peer < self.world_size
        if not usual or peer == self.rank:
            check_peer(peer, name, self.rank, self.world_size)
        if thing.__class__ is not ndarray:
            check_cargo(thing)
