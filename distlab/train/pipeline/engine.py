"""One engine plays any schedule: `play(comm, schedule, stage)`.

    for each work of this stage:   wait for what it needs ──▶ stage.do(work, arrived)
                                   begin to send what comes of it, go on

Sends and receives are asynchronous. Between two ranks all messages are posted in one
order on both sides, that of `Schedule.in_order`, and a receive before it is needed: so
NCCL, which takes the messages of a pair one after another, has no deadlock either, and
a message travels while the stage computes.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from distlab.errors import InvalidArgument
from distlab.train.pipeline.schedule import Schedule, Work

__all__ = ["Stage", "check_stages", "play"]

_AHEAD = 2  # receives from a rank that are posted before they are needed


class Stage(Protocol):
    """What a stage does with a work, whatever it is made of."""

    def do(self, work: Work, arrived):
        """Do a work with what arrived for it, or None; return what is to be sent."""

    def room(self, part: int, kind: str):
        """Return a tensor or array for what `part` of the model gives, in F or B."""


@dataclass(eq=False, slots=True)
class _Message:
    """What a work of one rank gives to another rank."""

    src: int
    dst: int
    part: int  # that gives it
    kind: str
    taken: int  # how many messages of `dst` the other has taken before it gives this


class _Peer:
    """Another rank, and how far the messages with it are.

    posts: those that are not posted yet. ahead: receives posted, not waited for.
    sent: the sends under way. taken: sends that are over.
    """

    def __init__(self):
        self.posts, self.sent = deque(), deque()
        self.ahead = self.taken = 0


def play(comm, schedule: Schedule, stage: Stage, *, seconds=None) -> None:
    """Do this rank's works in the schedule's order, and exchange what they need.

    seconds: (stage, work) -> how long a work takes at least; on a virtual clock, takes.

    Raises: InvalidArgument if there is not a rank for each stage.
    """
    check_stages(comm, schedule)
    mail = _Mail(comm, schedule, stage)
    for work in schedule.stages[comm.rank]:
        arrived = mail.wait_for(work)
        takes = seconds(comm.rank, work) if seconds else 0.0
        with comm.work(str(work), seconds=takes):
            made = stage.do(work, arrived)
        mail.send(work, made)
    mail.finish()


def check_stages(comm, schedule: Schedule) -> None:
    """Refuse a schedule with more or fewer stages than there are ranks."""
    if len(schedule.stages) != comm.world_size:
        raise InvalidArgument(
            f"the schedule has {len(schedule.stages)} stages, one for each rank, and "
            f"there are {comm.world_size} ranks."
        )


class _Mail:
    """A rank's messages: what it has still to post with each other rank, in order.

    On a GPU these are receives and sends in the order of both ranks; else a receive
    need not wait for a send that comes before it.
    """

    def __init__(self, comm, schedule, stage):
        self._comm, self._stage = comm, stage
        messages, self._given, self._sources = _plan(schedule)[comm.rank]
        self._in_one_order = str(comm.device).startswith("cuda")
        self._arriving = {}  # message -> the request for it
        self._here = {}  # what one part gave to another of this rank
        self._peers = defaultdict(_Peer)
        for message in messages:
            peer = self._peers[message.src + message.dst - comm.rank]
            if self._in_one_order or message.dst == comm.rank:
                peer.posts.append(message)
        for peer in self._peers.values():
            self._post_receives(peer)

    def wait_for(self, work):
        """Return what `work` needs from another part of the model, or None."""
        source = self._sources.get(work)
        if source is None:
            return None
        if source.src == self._comm.rank:
            return self._here.pop(source)
        peer = self._peers[source.src]
        while source not in self._arriving:
            self._post_receive(peer)
        arrived = self._arriving.pop(source).wait()
        peer.ahead -= 1
        while peer.taken < source.taken:
            peer.sent.popleft().wait()  # at once; its tensor is let go
            peer.taken += 1
        self._post_receives(peer)
        return arrived

    def send(self, work, made):
        """Begin to send what came of a work to whoever needs it."""
        message = self._given.get(work)
        if message is None:
            return
        if message.dst == self._comm.rank:
            self._here[message] = made
            return
        peer = self._peers[message.dst]
        if self._in_one_order:
            while peer.posts[0] is not message:
                self._post_receive(peer)
            peer.posts.popleft()
        peer.sent.append(self._comm.isend(made, message.dst))
        if self._in_one_order:
            self._post_receives(peer)

    def _post_receives(self, peer):
        """Post what comes next from a rank, up to as many as are to be ahead."""
        posts, own = peer.posts, self._comm.rank
        while peer.ahead < _AHEAD and posts and posts[0].src != own:
            self._post_receive(peer)

    def _post_receive(self, peer):
        message = peer.posts.popleft()
        room = self._stage.room(message.part, message.kind)
        self._arriving[message] = self._comm.irecv(room, message.src)
        peer.ahead += 1

    def finish(self):
        """Wait until everything has been taken."""
        for peer in self._peers.values():
            for request in peer.sent:
                request.wait()


@lru_cache(maxsize=4)
def _plan(schedule):
    """Return for each stage its messages, in the order in which they are made.

    And a work of the stage -> the message that comes of it, and -> the one it needs.
    """
    stages, last = len(schedule.stages), schedule.parts - 1
    plans = [([], {}, {}) for _ in range(stages)]
    taken = [[0] * stages for _ in range(stages)]
    for stage, work in schedule.in_order():
        between, given, sources = plans[stage]
        if work in sources:
            taken[stage][sources[work].src] += 1
        kind, microbatch, chunk = work
        part = chunk * stages + stage
        if kind == "W" or part == (last if kind == "F" else 0):
            continue
        chunk, dst = divmod(part + (1 if kind == "F" else -1), stages)
        message = _Message(stage, dst, part, kind, taken[stage][dst])
        its_between, _, its_sources = plans[dst]
        given[work] = its_sources[kind, microbatch, chunk] = message
        if dst != stage:
            between.append(message)
            its_between.append(message)
    return plans
