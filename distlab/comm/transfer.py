"""Underneath `Comm`: how a message is offered, checked, carried and waited for.

    offer  ─▶  check fit  ─▶  post to the process group  ─▶  wait  ─▶  check fit again

Each side notes the size and type of a message before it posts it, and compares them
with the other side's if that has noted its own. So whichever side comes second finds
what does not fit before it posts anything; the check after the wait is for two sides
that came at the same moment.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist

from distlab.comm.carry import carried, check_peer, filled
from distlab.errors import MessageMismatch
from distlab.faults import Fault, Hang, Kill
from distlab.recorder import IN, OUT, THREADED, Recorder

__all__ = ["Disagreement", "Transfers"]


class Disagreement(Exception):
    """Ranks have entered different collectives; whoever watches them says which."""


class Transfers:
    """What `Comm` stands on: the steps of one rank, its messages and its meetings."""

    def __init__(
        self,
        rank: int,
        world_size: int,
        *,
        device: torch.device | None = None,
        recorder: Recorder | None = None,
        faults: Sequence[Fault] = (),
    ):
        self.rank = rank
        self.world_size = world_size
        self.device = device or torch.device("cpu")
        self.recorder = recorder or Recorder(rank, world_size)
        self.faults = faults
        self._group = dist.group.WORLD

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
    def meeting(self, kind: str, words: str, label: str = "") -> Iterator[None]:
        """Enter a collective called `words`, and note when the body has ended.

        Raises: Disagreement if another rank has entered a different one.
        """
        number = self.recorder.enter_call(words)
        self.check_agreement(number, words)
        with self._waiting(kind, call=number, label=label):
            yield
        self.check_agreement(number, words)

    def check_agreement(self, number: int, words: str) -> None:
        """Compare this rank's collective with what the others entered as theirs.

        Raises: Disagreement if another rank has entered a different one.
        """
        recorder = self.recorder
        for rank in range(self.world_size):
            entered = recorder.calls(rank) >= number
            if entered and recorder.call(rank, number) != words:
                raise Disagreement(words)

    def _transfer(self, kind, *, out=None, into=None):
        sides, size = self._offer_sides(out, into)
        with self._waiting(kind, size=size, **sides):
            for work in self._post_sides(out, into):
                work.wait()
            self._settle()
        self._check_sides(sides)

    def _begin(self, kind, tensor, *, out=None, into=None):
        """Post a message; return what waits for its end, and what is under way."""
        sides, size = self._offer_sides(out, into)
        start = time.monotonic()
        works = self._post_sides(out, into)

        def finish():
            with self._waiting(kind, size=size, start=start, **sides):
                for work in works:
                    work.wait()
                self._settle()
            self._check_sides(sides)
            return tensor if into is None else filled(tensor, into[0])

        return finish, works

    @contextmanager
    def _waiting(self, kind, *, size=0, label="", start=None, **whom):
        """Be blocked in `kind` while the body runs; then write its events.

        What the body raises breaks the call off: its events have no end.
        """
        recorder = self.recorder
        start = start or time.monotonic()
        recorder.now("blocked", kind, size=size, label=label, since=start, **whom)
        details = {"size": size}
        end = math.nan
        try:
            yield details
            end = time.monotonic()
        finally:
            for side in ("send", "recv"):
                if side in whom:
                    peer = whom[side][0]
                    recorder.event(side, start, end, peer, details["size"], label)
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
        check_peer(peer, name, self.rank, self.world_size)
        return carried(thing, self.device, self.rank, into)


def _type(tensor):
    return str(tensor.dtype).removeprefix("torch.")
