"""`Comm`: everything a rank may do with the other ranks, over torch.distributed.

    algorithm ── comm.sendrecv(...) ──▶ Comm ──▶ torch process group (gloo, NCCL)
                                         │
                                         └─────▶ Recorder: what, with whom, how long

An algorithm takes a `Comm` first and uses nothing else, so the same function runs on
real processes, under torchrun and on a simulated fabric. Between two ranks, messages
arrive in the order in which they were sent.

A send ends when the receiver has asked for the message. Two ranks that both send
first and receive second therefore wait for each other for ever; `sendrecv` is the way
to do both at once.
"""

import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist

from distlab.errors import InvalidArgument, MessageMismatch
from distlab.faults import Hang, Kill
from distlab.recorder import IN, OUT, THREADED, Recorder

__all__ = ["Comm", "Disagreement", "Request"]


class Disagreement(Exception):
    """Ranks have entered different collectives; whoever watches them says which."""


class Request:
    """A message under way, from `isend` or `irecv`; `wait()` ends it."""

    def __init__(self, finish, works):
        self._finish = finish
        self._works = works

    def is_completed(self) -> bool:
        """Return whether `wait()` would return at once."""
        return all(work.is_completed() for work in self._works)

    def wait(self):
        """Wait until the message has been handed over; for a receive, return the buffer."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._buffer = finish()
        return self._buffer


class Comm:
    """What one rank may do.

    rank: this rank's number, 0 to world_size - 1.
    world_size: how many ranks there are.
    device: where tensors must live to travel: CPU for gloo, this rank's GPU for NCCL.
    """

    def __init__(
        self, rank: int, world_size: int, *, device=None, recorder=None, faults=()
    ):
        self.rank = rank
        self.world_size = world_size
        self.device = device or torch.device("cpu")
        self.recorder = recorder or Recorder(rank, world_size)
        self.faults = faults
        self._group = dist.group.WORLD

    def __repr__(self):
        return f"Comm(rank={self.rank}, world_size={self.world_size}, device='{self.device}')"

    # ---- messages ----------------------------------------------------------------

    def send(self, tensor, dst: int) -> None:
        """Send a tensor or array to rank `dst`; ends when it has been taken.

        Raises: InvalidArgument, MessageMismatch if the receiver's buffer does not fit.
        """
        self.next_step()
        outgoing = self._carried(tensor, dst, "dst")
        self._transfer("send", out=(outgoing, dst))

    def recv(self, tensor, src: int):
        """Fill a tensor or array with the next message from rank `src`; return it.

        Raises: InvalidArgument, MessageMismatch if the message does not fit the buffer.
        """
        self.next_step()
        buffer = self._carried(tensor, src, "src", into=True)
        self._transfer("recv", into=(buffer, src))
        return _filled(tensor, buffer)

    def sendrecv(self, outgoing, incoming, *, dst: int, src: int):
        """Send `outgoing` to `dst` while receiving from `src` into `incoming`; return that.

        Both directions move at once, which is one step of a ring.

        Raises: InvalidArgument, MessageMismatch as `send` and `recv` do.
        """
        self.next_step()
        sent = self._carried(outgoing, dst, "dst")
        buffer = self._carried(incoming, src, "src", into=True)
        self._transfer("sendrecv", out=(sent, dst), into=(buffer, src))
        return _filled(incoming, buffer)

    def isend(self, tensor, dst: int) -> Request:
        """Begin to send; the tensor must not change until `wait()` on what is returned."""
        self.next_step()
        outgoing = self._carried(tensor, dst, "dst")
        return self._begin("send", tensor, out=(outgoing, dst))

    def irecv(self, tensor, src: int) -> Request:
        """Begin to receive; the tensor is filled once `wait()` has returned it."""
        self.next_step()
        buffer = self._carried(tensor, src, "src", into=True)
        return self._begin("recv", tensor, into=(buffer, src))

    def send_object(self, thing, dst: int) -> None:
        """Send any object that pickles; in the trace, one message of its pickled size."""
        self.next_step()
        self._check_peer(dst, "dst")
        data = np.frombuffer(pickle.dumps(thing), np.uint8)
        number = self._offer(dst, OUT, len(data), "object")
        with self._waiting("send", send=(dst, number), size=len(data)):
            for part in (np.array([len(data)]), data):
                moved = torch.from_numpy(part.copy()).to(self.device)
                self._post(moved, dst, OUT).wait()

    def recv_object(self, src: int):
        """Return the next object that rank `src` sends with `send_object`."""
        self.next_step()
        self._check_peer(src, "src")
        number = self._offer(src, IN, -1, "object")
        with self._waiting("recv", recv=(src, number)) as event:
            length = torch.zeros(1, dtype=torch.int64, device=self.device)
            self._post(length, src, IN).wait()
            data = torch.empty(int(length), dtype=torch.uint8, device=self.device)
            self._post(data, src, IN).wait()
            event["size"] = len(data)
        return pickle.loads(data.cpu().numpy().tobytes())

    def barrier(self) -> None:
        """Wait until every rank has called `barrier`."""
        self.next_step()
        with self.meeting("barrier", "barrier"):
            self._group.barrier().wait()

    def mark(self, label: str) -> None:
        """Write `label` into the trace: from here on, this is what the rank is doing."""
        self.recorder.point("mark", str(label))

    # ---- for whoever carries torch.distributed's own calls -------------------------

    def next_step(self) -> None:
        """Count one call, and let a planned fault happen at it."""
        recorder = self.recorder
        recorder.step += 1
        if self.faults:
            self.fail_if_planned()
        if threading.active_count() > 1:
            recorder.raise_flag(THREADED)

    def fail_if_planned(self) -> None:
        """Die or hang here if the plan of faults says so for this rank and step."""
        for fault in self.faults:
            if not isinstance(fault, Kill | Hang) or fault.rank != self.rank:
                continue
            if fault.step == self.recorder.step:
                self.recorder.point("fault", type(fault).__name__.lower())
                if isinstance(fault, Kill):
                    os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()

    @contextmanager
    def meeting(self, kind: str, words: str, label: str = ""):
        """Enter a collective called `words`, and note when the body has ended.

        Raises: Disagreement if another rank has entered a different one.
        """
        number = self.recorder.enter_call(words)
        self.check_agreement(number, words)
        with self._waiting(kind, call=number, label=label):
            yield
        self.check_agreement(number, words)

    def check_agreement(self, number: int, words: str) -> None:
        """Compare this rank's collective with what the others have entered as theirs."""
        for rank in range(self.world_size):
            if (
                self.recorder.calls(rank) >= number
                and self.recorder.call(rank, number) != words
            ):
                raise Disagreement(words)

    # ---- underneath ------------------------------------------------------------------

    def _transfer(self, kind, *, out=None, into=None):
        sides, size = self._offer_sides(out, into)
        with self._waiting(kind, size=size, **sides):
            for work in self._post_sides(out, into):
                work.wait()
            self._settle()
        self._check_sides(sides)

    def _begin(self, kind, tensor, *, out=None, into=None):
        sides, size = self._offer_sides(out, into)
        start = time.monotonic()
        works = self._post_sides(out, into)

        def finish():
            with self._waiting(kind, size=size, start=start, **sides):
                for work in works:
                    work.wait()
                self._settle()
            self._check_sides(sides)
            return tensor if into is None else _filled(tensor, into[0])

        return Request(finish, works)

    @contextmanager
    def _waiting(self, kind, *, size=0, label="", start=None, **whom):
        """Be blocked in `kind` while the body runs; then write its events."""
        recorder = self.recorder
        start = start or time.monotonic()
        recorder.now("blocked", kind, size=size, label=label, since=start, **whom)
        details = {"size": size}
        try:
            yield details
        except BaseException:
            recorder.now("running")
            raise
        end = time.monotonic()
        for side in ("send", "recv"):
            if side in whom:
                recorder.event(side, start, end, whom[side][0], details["size"], label)
        if "call" in whom:
            recorder.event(kind, start, end, label=label)
        recorder.now("running")

    def _offer_sides(self, out, into):
        sides, size = {}, 0
        if out is not None:
            size = out[0].nbytes
            sides["send"] = (out[1], self._offer(out[1], OUT, size, _type(out[0])))
        if into is not None:
            size = into[0].nbytes
            sides["recv"] = (into[1], self._offer(into[1], IN, size, _type(into[0])))
        return sides, size

    def _offer(self, peer, way, size, type_):
        number = self.recorder.offer(peer, way, size, type_)
        self._check_fit(peer, way, number)
        return number

    def _check_sides(self, sides):
        for way, side in ((OUT, "send"), (IN, "recv")):
            if side in sides:
                self._check_fit(sides[side][0], way, sides[side][1])

    def _check_fit(self, peer, way, number):
        """Compare this side of a message with the other, if that has been posted."""
        mine = self.recorder.post(self.rank, peer, way, number)
        theirs = self.recorder.post(peer, self.rank, 1 - way, number)
        if theirs is None or mine is None:
            return
        unknown = -1 in (mine.bytes, theirs.bytes)  # an object's size travels before it
        if theirs.type != mine.type or not (unknown or mine.bytes == theirs.bytes):
            sent, asked = (mine, theirs) if way == OUT else (theirs, mine)
            sender, receiver = (self.rank, peer) if way == OUT else (peer, self.rank)
            raise MessageMismatch(
                f"message {number} from rank {sender} to rank {receiver} does not fit: "
                f"rank {sender} sends {sent.describe()}, "
                f"rank {receiver} has room for {asked.describe()}."
            )

    def _post_sides(self, out, into):
        if out is not None and into is not None and self.device.type == "cuda":
            # NCCL deadlocks on a send and a receive posted one after the other
            return dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, *out), dist.P2POp(dist.irecv, *into)]
            )
        works = [] if into is None else [self._post(*into, IN)]
        return works if out is None else [*works, self._post(*out, OUT)]

    def _post(self, tensor, peer, way):
        post = self._group.send if way == OUT else self._group.recv
        return post([tensor], peer, 0)

    def _settle(self):
        if self.device.type == "cuda":  # NCCL returns before the data has moved
            torch.cuda.current_stream().synchronize()

    def _carried(self, thing, peer, name, into=False):
        """Return a contiguous tensor to send from or receive into."""
        self._check_peer(peer, name)
        if isinstance(thing, np.ndarray):
            if into and not thing.flags.writeable:
                raise InvalidArgument(
                    "this array is read-only; recv needs one it can fill."
                )
            if not thing.flags.writeable or any(stride < 0 for stride in thing.strides):
                thing = thing.copy()
            thing = torch.from_numpy(thing)
        elif not isinstance(thing, torch.Tensor):
            raise InvalidArgument(
                f"Comm carries torch tensors and numpy arrays, and got {type(thing).__name__}. "
                "For other objects there are send_object and recv_object."
            )
        if thing.device != self.device:
            raise InvalidArgument(
                f"this tensor is on {thing.device}, and messages of rank {self.rank} travel "
                f"from {self.device}. Move it there: tensor.to(comm.device)."
            )
        return thing.detach().contiguous()

    def _check_peer(self, peer, name):
        whole = isinstance(peer, int | np.integer) and not isinstance(peer, bool)
        if not whole or not 0 <= peer < self.world_size:
            raise InvalidArgument(
                f"{name}={peer!r} is no rank of this world: ranks go from 0 to "
                f"{self.world_size - 1}. In a ring, the next rank is "
                "(comm.rank + 1) % comm.world_size."
            )
        if peer == self.rank:
            raise InvalidArgument(
                f"rank {self.rank} sends to or receives from itself ({name}={peer}); "
                "a message needs two ranks."
            )


def _type(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _filled(wanted, buffer):
    """Return `wanted`, holding what arrived in `buffer`."""
    if isinstance(wanted, np.ndarray):
        received = buffer.numpy()
        if not np.shares_memory(wanted, received):
            wanted[...] = received
    elif wanted.data_ptr() != buffer.data_ptr():
        wanted.detach().copy_(buffer)
    return wanted
