"""The transfers of a `Comm`: the offer, check, posting and waiting of a message.

    offer  ─▶  check fit  ─▶  post to the process group  ─▶  wait

Each side records the size and type of a message before it posts it, and compares them
with the other side's if that has recorded its own. So the side that comes second finds
a mismatch before it posts anything.
"""

import ctypes
import functools
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.distributed as dist

from distlab.comm.asynchronous import StartedCalls
from distlab.comm.buffers import carried, filled
from distlab.comm.groups import ProcessGroups
from distlab.errors import InvalidArgument, MessageMismatch
from distlab.faults import Fault, Hang, Kill, corrupted
from distlab.peers import Disagreement, check_peer, in_new_group
from distlab.recorder import (
    DISAGREED,
    IN,
    MOST_GROUPS,
    OUT,
    THREADED,
    UNKNOWN_SIZE,
    Recorder,
    agreed,
    any_words,
    unequal_splits,
)
from distlab.trace import members_of

__all__ = ["Transfers", "type_of"]

_LONG_S, _MOST_PAUSE_S = 0.02, 0.001
_NO_COLOR = -(2**63)


class _Side(NamedTuple):
    """One side of a message: its peer, its number between the two ranks, its bytes.

    peer: a rank in the world, as in all records.
    """

    peer: int
    number: int
    bytes: int


_NO_SIDE = _Side(-1, -1, 0)


class _Waiting:
    """A context in which the rank is blocked in `kind`; its end writes the events.

    send, recv: a `_Side` each; the body sets `recv` again if only the message itself
    has its size. If the body raises, the events have no end.

    It is a class, not a generator, for speed: every message enters it.
    """

    __slots__ = (
        "_about",
        "_lane",
        "_recorder",
        "_start",
        "call",
        "kind",
        "recv",
        "send",
    )

    def __init__(
        self, comm, kind, *, send=None, recv=None, call=-1, group="", label="",
        start=None,
    ):  # fmt: skip
        self.kind, self.send, self.recv, self.call = kind, send, recv, call
        self._recorder, self._lane = comm.recorder, comm._lane()
        self._about = label, comm.recorder.step, group or comm.group
        self._start = start or time.monotonic()

    def __enter__(self):
        send, recv = self.send or _NO_SIDE, self.recv or _NO_SIDE
        label, _, group = self._about
        self._recorder.now(
            "blocked",
            self.kind,
            send=send[:2],
            recv=recv[:2],
            call=self.call,
            group=group,
            sizes=(send.bytes, recv.bytes),
            label=label,
            since=self._start,
            lane=self._lane,
        )
        return self

    def __exit__(self, error, *_):
        end = time.monotonic() if error is None else math.nan
        sides = []
        if self.send:
            sides.append(("send", self.send.peer, self.send.bytes))
        if self.recv:
            sides.append(("recv", self.recv.peer, self.recv.bytes))
        if self.call >= 0:
            sides.append((self.kind, -1, 0))
        self._recorder.events(sides, self._start, end, *self._about)
        self._recorder.running(self._lane)


class Transfers:
    """The base of `Comm`: the steps of one rank, its messages and its collectives.

    ranks: the members' ranks in the world, in the order of their ranks here.
    group: this group's name in the recorder, "" for the world.
    """

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
        self.ranks, self.group = list(range(world_size)), ""
        self.started = StartedCalls(self.device)
        self._made, self._over = ProcessGroups(), None
        self._group = None
        self.joined()
        self._last_src = rank

    @property
    def connected(self) -> bool:
        """True if there is a process group that carries this Comm's messages."""
        return self._group is not None

    def joined(self) -> None:
        """Use torch's current process group, if there is one, to carry messages."""
        world = dist.group.WORLD
        if world and self.device.type in {each.type for each in world._device_types}:
            self._carry_over(world)

    def _carry_over(self, group):
        """Use a process group's backend to carry messages, with its ranks in order.

        The group itself would record each as another call.
        """
        self._over, self._group = group, group._get_backend(self.device)
        place = {rank: place for place, rank in enumerate(sorted(self.ranks))}
        self._places = [place[rank] for rank in self.ranks]

    def among(self, ranks: Sequence[int], group: str, over=None) -> "Transfers":
        """Return the Comm of this process in a group of ranks of the world.

        group: its name in the recorder. over: the process group that carries it.

        Raises: InvalidArgument if this rank is in too many groups.
        """
        if not self.recorder.knows(group):
            raise InvalidArgument(
                f"rank {self.world_rank} is in {MOST_GROUPS - 1} groups already, and "
                "can be in no more. Make a group once and keep it."
            )
        other = object.__new__(type(self))
        other.__dict__.update(vars(self))
        other.ranks, other.group = list(ranks), group
        other.rank, other.world_size = other.ranks.index(self.world_rank), len(ranks)
        other.started, other._last_src = self.started.another(), other.rank
        if over is not None:
            other._carry_over(over)
        return other

    @property
    def world_rank(self) -> int:
        """This process's rank in the world."""
        return self.ranks[self.rank]

    def next_step(self) -> None:
        """Count one call, and trigger the fault planned for it, if any."""
        self.started.drain()
        recorder = self.recorder
        recorder.step += 1
        if self.faults:
            self.fail_if_planned()
        if self.started.others_run():
            recorder.raise_flag(THREADED)

    def fail_if_planned(self) -> None:
        """Die or hang here if a fault is planned for this rank and step."""
        for fault in self.faults:
            if not isinstance(fault, Kill | Hang) or fault.rank != self.world_rank:
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
        """Enter a collective named `words`, and record the time of the body.

        Raises: Disagreement if another rank has entered a different one.
        """
        number = self.recorder.enter_call(words, group)
        self.check_agreement(number, words, group)
        with _Waiting(self, kind, call=number, group=group, label=label):
            yield
        self.check_agreement(number, words, group)

    def check_agreement(self, number: int, words: str, group: str = "") -> None:
        """Compare this rank's collective with the one that the others entered.

        Raises: Disagreement if another rank has entered a different one.
        """
        recorder, mine = self.recorder, agreed(words)
        members = members_of(group, recorder.world_size)
        entered = (rank for rank in members if recorder.calls(rank, group) >= number)
        calls = {rank: recorder.call(rank, number, group) for rank in entered}
        others = any(agreed(each) != mine for each in calls.values())
        if others or (mine.startswith("all_to_all") and unequal_splits(calls, members)):
            recorder.raise_flag(DISAGREED)
            raise Disagreement(words)

    def _transfer(self, kind, *, out=None, into=None, start=None):
        sides = self._offer_sides(out, into)
        with _Waiting(self, kind, start=start, **sides):
            self._await(self._post_sides(out, into))
            self._settle()

    def _await(self, works):
        for work in works:
            work.wait()

    def _begin(self, kind, tensor, *, out=None, into=None):
        """Post a message; return (finish, is_over, sides); `finish()` waits for it."""
        sides = self._offer_sides(out, into)
        start = time.monotonic()
        works = self._post_sides(out, into)
        ways = {"send": OUT, "recv": IN}
        waits = [
            (each.peer, ways[name], each.number, self.group)
            for name, each in sides.items()
        ]
        waiting = None

        def is_over():
            nonlocal waiting
            if self.device.type == "cuda":
                return all(work.is_completed() for work in works)
            if waiting is None and all(map(self._has_partner, waits)):
                # gloo reports completion only to a waiting thread
                waiting = self.started.beside(lambda: self._await(works))
            return waiting is not None and waiting.done()

        def finish():
            with _Waiting(self, kind, start=start, **sides):
                waiting.result() if waiting else self._await(works)
                self._settle()
            return tensor if into is None else filled(tensor, into[0])

        return finish, is_over, waits

    def _has_partner(self, side):
        """Return True if the other rank has posted its side of a message."""
        peer, way, number, group = side
        posted = self.recorder.posted(peer, self.world_rank, 1 - way, group)
        return posted >= number

    def _receive_any(self, buffer):
        """Fill the buffer with an offered message; set `_last_src` to its sender."""
        start, me, n = time.monotonic(), self.world_rank, self.world_size
        posted, group = self.recorder.posted, self.group
        in_turn = [(self._last_src + way) % n for way in range(1, n + 1)]
        in_turn.remove(self.rank)
        peers = [self.ranks[rank] for rank in in_turn]
        next_ = [(p, IN, posted(me, p, IN, group) + 1, group) for p in peers]

        def offered():
            found = zip(in_turn, next_, strict=True)
            return next((rank for rank, side in found if self._has_partner(side)), None)

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
        """Return the result of `look` once it is not None, by a message of `sides`.

        A wait that lasts is recorded, so that a deadlock is detected.
        """
        start, noted, lane = time.monotonic(), False, self._lane()
        while (found := look()) is None:
            waited = time.monotonic() - start
            if waited > _LONG_S and sides and not noted:
                label = any_words(call, sides)
                now = {"label": label, "since": start, "group": self.group}
                self.recorder.now("blocked", "any", **now, lane=lane)
                noted = True
            time.sleep(min(waited / 10, _MOST_PAUSE_S))
        if noted:
            self.recorder.running(lane)
        return found

    def _lane(self):
        """Return the recorder's name of the calling thread: "" for the main thread."""
        return self.group or "world" if self.started.here() else ""

    def _give_object(self, data, dst):
        size = torch.tensor([len(data)], device=self.device)
        data = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self.device)
        side = self._offer(dst, OUT, len(data), "object")
        with _Waiting(self, "send", send=side):
            for part in (size, data):
                self._await([self._post(part, dst, OUT)])

    def _take_object(self, src):
        side = self._offer(src, IN, UNKNOWN_SIZE, "object")._replace(bytes=0)
        with _Waiting(self, "recv", recv=side) as waiting:
            length = torch.zeros(1, dtype=torch.int64, device=self.device)
            self._await([self._post(length, src, IN)])
            data = torch.empty(int(length), dtype=torch.uint8, device=self.device)
            self._await([self._post(data, src, IN)])
            waiting.recv = side._replace(bytes=len(data))
        data = data.cpu()
        return ctypes.string_at(data.data_ptr(), len(data))

    def _meet(self):
        with self.meeting("barrier", "barrier", group=self.group):
            self._await([self._group.barrier()])

    def _split(self, color, key, name, words):
        """Return the Comm of this rank in the group of a color, None for no color."""
        mine = torch.tensor(
            [_NO_COLOR if color is None else color, key], device=self.device
        )
        said = [torch.empty_like(mine) for _ in self.ranks]
        with self.meeting("barrier", words, "split", self.group):
            self._await([self._group.allgather([said], [mine])])
        if color is None:
            return None
        said = torch.stack(said)[self._places].tolist()
        ranks = in_new_group(color, said, self.ranks)
        made = self._made.take(ranks, name, self.recorder.begun)
        return self.among(ranks, made.key, made)

    def _offer_sides(self, out, into):
        """Record the messages to be sent and received, each a (tensor, peer)."""
        sides = {}
        if out is not None:
            sides["send"] = self._offer(out[1], OUT, out[0].nbytes, type_of(out[0]))
        if into is not None:
            sides["recv"] = self._offer(into[1], IN, into[0].nbytes, type_of(into[0]))
        return sides

    def _offer(self, peer, way, size, type_):
        peer = self.ranks[peer]
        number = self.recorder.offer(peer, way, size, type_, self.group)
        if not self.recorder.fits(peer, way, number, self.group):
            self._raise_mismatch(peer, way, number)
        return _Side(peer, number, size)

    def _raise_mismatch(self, peer, way, number):
        me = self.world_rank
        mine = self.recorder.post(me, peer, way, number, self.group)
        theirs = self.recorder.post(peer, me, 1 - way, number, self.group)
        sent, asked = (mine, theirs) if way == OUT else (theirs, mine)
        sender, receiver = (me, peer) if way == OUT else (peer, me)
        raise MessageMismatch(
            f"message {number} from rank {sender} to rank {receiver} does not fit: "
            f"rank {sender} sends {sent.describe()}, "
            f"rank {receiver} has room for {asked.describe()}."
        )

    def _post_sides(self, out, into):
        if self.faults and out is not None:
            step, (tensor, dst) = self.recorder.step, out
            tensor, struck = corrupted(tensor, self.faults, self.world_rank, step)
            out = tensor, dst
            if struck:
                self.recorder.point("fault", "corrupt")
        if out is not None and into is not None and self.device.type == "cuda":
            # NCCL deadlocks on a send and a receive posted one after the other
            return dist.batch_isend_irecv(
                [
                    dist.P2POp(way, tensor, self.ranks[peer], self._over)
                    for way, (tensor, peer) in ((dist.isend, out), (dist.irecv, into))
                ]
            )
        works = [] if into is None else [self._post(*into, IN)]
        return works if out is None else [*works, self._post(*out, OUT)]

    def _post(self, tensor, peer, way):
        post = self._group.send if way == OUT else self._group.recv
        return post([tensor], self._places[peer], 0)

    def _settle(self):
        if self.device.type == "cuda":  # NCCL returns before the data has moved
            torch.cuda.current_stream().synchronize()

    def _carried(self, thing, peer, name, into=False):
        check_peer(peer, name, self.rank, self.world_size)
        return carried(thing, self.device, self.rank, into)


def type_of(tensor: torch.Tensor) -> str:
    """Return the name of the tensor's element type, such as "float32"."""
    return _type_name(tensor.dtype)


@functools.cache
def _type_name(dtype):
    return str(dtype).removeprefix("torch.")
