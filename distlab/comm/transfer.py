"""Underneath `Comm`: how a message is offered, checked, carried and waited for.

    offer  ─▶  check fit  ─▶  post to the process group  ─▶  wait

Each side notes the size and type of a message before it posts it, and compares them
with the other side's if that has noted its own. So whichever side comes second finds
what does not fit before it posts anything.
"""

import functools
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from distlab.comm.carry import carried, filled
from distlab.comm.started import StartedCalls
from distlab.errors import MessageMismatch
from distlab.faults import Fault, Hang, Kill, corrupted
from distlab.peers import check_peer
from distlab.recorder import (
    IN,
    OUT,
    THREADED,
    UNKNOWN_SIZE,
    Recorder,
    agreed,
    any_words,
    members_of,
)

__all__ = ["Disagreement", "Transfers", "type_of"]

_LONG_S, _MOST_PAUSE_S = 0.02, 0.001


class Disagreement(Exception):
    """Ranks have entered different collectives; whoever watches them says which."""


class _Side(NamedTuple):
    """One side of a message: with whom, which one between the two, how large."""

    peer: int
    number: int
    bytes: int


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
        self.started = StartedCalls(self.device)
        self._group = None
        self.joined()
        self._last_src = rank

    @property
    def connected(self) -> bool:
        """Whether there is a process group that carries this Comm's messages."""
        return self._group is not None

    def joined(self) -> None:
        """Take the process group that is up now, if one is, to carry messages.

        That is its backend: the group itself would note each as another call.
        """
        world = dist.group.WORLD
        if world and self.device.type in {each.type for each in world._device_types}:
            self._group = world._get_backend(self.device)

    def next_step(self) -> None:
        """Count one call, and let a planned fault happen at it."""
        self.started.drain()
        recorder = self.recorder
        recorder.step += 1
        if self.faults:
            self.fail_if_planned()
        if self.started.others_run():
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
    def meeting(
        self, kind: str, words: str, label: str = "", group: str = ""
    ) -> Iterator[None]:
        """Enter a collective called `words`, and note when the body has ended.

        Raises: Disagreement if another rank has entered a different one.
        """
        number = self.recorder.enter_call(words, group)
        self.check_agreement(number, words, group)
        with self._waiting(kind, call=number, group=group, label=label):
            yield
        self.check_agreement(number, words, group)

    def check_agreement(self, number: int, words: str, group: str = "") -> None:
        """Compare this rank's collective with what the others entered as theirs.

        Raises: Disagreement if another rank has entered a different one.
        """
        recorder, mine = self.recorder, agreed(words)
        for rank in members_of(group, self.world_size):
            entered = recorder.calls(rank, group) >= number
            if entered and agreed(recorder.call(rank, number, group)) != mine:
                raise Disagreement(words)

    def _transfer(self, kind, *, out=None, into=None, start=None):
        sides = self._offer_sides(out, into)
        with self._waiting(kind, start=start, **sides):
            self._await(self._post_sides(out, into))
            self._settle()

    def _await(self, works):
        for work in works:
            work.wait()

    def _begin(self, kind, tensor, *, out=None, into=None):
        """Post a message; return what waits for its end, what asks, and its sides."""
        sides = self._offer_sides(out, into)
        start = time.monotonic()
        works = self._post_sides(out, into)
        ways = {"send": OUT, "recv": IN}
        waits = [(each.peer, ways[name], each.number) for name, each in sides.items()]
        waiting = None

        def is_over():
            nonlocal waiting
            if self.device.type == "cuda":
                return all(work.is_completed() for work in works)
            if waiting is None and all(map(self._has_partner, waits)):
                # gloo tells only who waits
                waiting = self.started.beside(lambda: self._await(works))
            return waiting is not None and waiting.done()

        def finish():
            with self._waiting(kind, start=start, **sides):
                waiting.result() if waiting else self._await(works)
                self._settle()
            return tensor if into is None else filled(tensor, into[0])

        return finish, is_over, waits

    def _has_partner(self, side):
        """Return whether the other rank has posted its side of a message."""
        peer, way, number = side
        return self.recorder.posted(peer, self.rank, 1 - way) >= number

    def _receive_any(self, buffer):
        """Fill it with a message that was offered; `_last_src` is who sent it."""
        start, ranks = (
            time.monotonic(),
            range(self._last_src + 1, self._last_src + self.world_size + 1),
        )
        next_ = [
            (peer, IN, self.recorder.posted(self.rank, peer, IN) + 1)
            for peer in (rank % self.world_size for rank in ranks)
            if peer != self.rank
        ]

        def offered():
            return next((side[0] for side in next_ if self._has_partner(side)), None)

        self._last_src = self._wait_until(offered, "recv_any", next_)
        self._transfer("recv", into=(buffer, self._last_src), start=start)

    def _wait_any(self, requests):
        def over():
            ended = (i for i, each in enumerate(requests) if each.is_completed())
            return next(ended, None)

        known = all(getattr(each, "_sides", None) for each in requests)
        sides = [side for each in requests for side in each._sides] if known else []
        return self._wait_until(over, "wait_any", sides)

    def _wait_until(self, look, call, sides):
        """Return what `look` finds, which one of these messages brings about.

        A wait that lasts is noted, so that a deadlock is recognised.
        """
        start, noted = time.monotonic(), False
        while (found := look()) is None:
            waited = time.monotonic() - start
            if waited > _LONG_S and sides and not noted:
                label = any_words(call, sides)
                self.recorder.now("blocked", "any", label=label, since=start)
                noted = True
            time.sleep(min(waited / 10, _MOST_PAUSE_S))
        if noted:
            self.recorder.running()
        return found

    def _give_object(self, data, dst):
        data = np.frombuffer(data, np.uint8)
        side = self._offer(dst, OUT, len(data), "object")
        with self._waiting("send", send=side):
            for part in (np.array([len(data)]), data):
                moved = torch.from_numpy(part.copy()).to(self.device)
                self._await([self._post(moved, dst, OUT)])

    def _take_object(self, src):
        side = self._offer(src, IN, UNKNOWN_SIZE, "object")._replace(bytes=0)
        with self._waiting("recv", recv=side) as arrived:
            length = torch.zeros(1, dtype=torch.int64, device=self.device)
            self._await([self._post(length, src, IN)])
            data = torch.empty(int(length), dtype=torch.uint8, device=self.device)
            self._await([self._post(data, src, IN)])
            arrived["bytes"] = len(data)
        return data.cpu().numpy().tobytes()

    def _meet(self):
        with self.meeting("barrier", "barrier"):
            self._await([self._group.barrier()])

    @contextmanager
    def _waiting(
        self, kind, *, send=None, recv=None, call=-1, group="", label="", start=None
    ):
        """Be blocked in `kind` while the body runs; then write its events.

        send, recv: a `_Side` each; the body sets `["bytes"]` of what it is given if
        only the message itself tells. What the body raises breaks the call off: its
        events have no end.
        """
        recorder = self.recorder
        start = start or time.monotonic()
        recorder.now(
            "blocked",
            kind,
            send=send[:2] if send else (-1, -1),
            recv=recv[:2] if recv else (-1, -1),
            call=call,
            group=group,
            sizes=(send.bytes if send else 0, recv.bytes if recv else 0),
            label=label,
            since=start,
        )
        end = math.nan
        arrived = {}
        try:
            yield arrived
            end = time.monotonic()
        finally:
            if send:
                recorder.event("send", start, end, send.peer, send.bytes, label)
            if recv:
                size = arrived.get("bytes", recv.bytes)
                recorder.event("recv", start, end, recv.peer, size, label)
            if call >= 0:
                recorder.event(kind, start, end, label=label)
            recorder.running()

    def _offer_sides(self, out, into):
        """Post what is about to be sent and received, each a (tensor, peer)."""
        sides = {}
        if out is not None:
            sides["send"] = self._offer(out[1], OUT, out[0].nbytes, type_of(out[0]))
        if into is not None:
            sides["recv"] = self._offer(into[1], IN, into[0].nbytes, type_of(into[0]))
        return sides

    def _offer(self, peer, way, size, type_):
        number = self.recorder.offer(peer, way, size, type_)
        if not self.recorder.fits(peer, way, number):
            self._raise_mismatch(peer, way, number)
        return _Side(peer, number, size)

    def _raise_mismatch(self, peer, way, number):
        mine = self.recorder.post(self.rank, peer, way, number)
        theirs = self.recorder.post(peer, self.rank, 1 - way, number)
        sent, asked = (mine, theirs) if way == OUT else (theirs, mine)
        sender, receiver = (self.rank, peer) if way == OUT else (peer, self.rank)
        raise MessageMismatch(
            f"message {number} from rank {sender} to rank {receiver} does not fit: "
            f"rank {sender} sends {sent.describe()}, "
            f"rank {receiver} has room for {asked.describe()}."
        )

    def _post_sides(self, out, into):
        if self.faults and out is not None:
            step, (tensor, dst) = self.recorder.step, out
            tensor, struck = corrupted(tensor, self.faults, self.rank, step)
            out = tensor, dst
            if struck:
                self.recorder.point("fault", "corrupt")
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


def type_of(tensor: torch.Tensor) -> str:
    """Return the name of its numbers' type, such as "float32"."""
    return _type_name(tensor.dtype)


@functools.cache
def _type_name(dtype):
    return str(dtype).removeprefix("torch.")
