"""One engine plays any schedule: `play(comm, schedule, stage)`.

    for each work of this stage:   wait for what it needs ──▶ stage.do(work, arrived)
                                   begin to send what comes of it, go on

Sends and receives are asynchronous. Between two ranks all messages are posted in one
order on both sides, that of `Schedule.in_order`, and a receive before it is needed: so
NCCL, which takes the messages of a pair one after another, has no deadlock either, and
a message travels while the stage computes.
"""

from collections import deque
from functools import lru_cache
from typing import NamedTuple, Protocol

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


class _Message(NamedTuple):
    """What a work of one rank gives to another rank."""

    src: int
    dst: int
    part: int  # that gives it
    work: Work
    taken: int  # how many messages of `dst` the other has taken before it gives this


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
        messages, self._given, self._sources = _plan(schedule)
        self._in_one_order = str(comm.device).startswith("cuda")
        self._posts = {}  # other rank -> messages with it that are not posted yet
        self._arriving = {}  # message -> the request for it
        self._here = {}  # what one part gave to another of this rank
        for message in messages.get(comm.rank, ()):
            other = message.src + message.dst - comm.rank
            posts = self._posts.setdefault(other, deque())
            if self._in_one_order or message.src == other:
                posts.append(message)
        self._ahead = dict.fromkeys(self._posts, 0)  # receives posted, not waited for
        self._sent = {other: deque() for other in self._posts}
        self._taken = dict.fromkeys(self._posts, 0)  # sends that are over
        for other in self._posts:
            self._post_receives(other)

    def wait_for(self, work):
        """Return what `work` needs from another part of the model, or None."""
        source = self._sources.get((self._comm.rank, work))
        if source is None:
            return None
        other = source.src
        if other == self._comm.rank:
            return self._here.pop(source)
        while source not in self._arriving:
            self._post_receive(other)
        arrived = self._arriving.pop(source).wait()
        self._ahead[other] -= 1
        while self._taken[other] < source.taken:
            self._sent[other].popleft().wait()  # at once; its tensor is let go
            self._taken[other] += 1
        self._post_receives(other)
        return arrived

    def send(self, work, made):
        """Begin to send what came of a work to whoever needs it."""
        message = self._given.get((self._comm.rank, work))
        if message is None:
            return
        other = message.dst
        if other == self._comm.rank:
            self._here[message] = made
            return
        if self._in_one_order:
            posts = self._posts[other]
            while posts[0] != message:
                self._post_receive(other)
            posts.popleft()
        self._sent[other].append(self._comm.isend(made, other))
        if self._in_one_order:
            self._post_receives(other)

    def _post_receives(self, other):
        """Post what comes next from a rank, up to as many as are to be ahead."""
        posts = self._posts[other]
        while posts and posts[0].src == other and self._ahead[other] < _AHEAD:
            self._post_receive(other)

    def _post_receive(self, other):
        message = self._posts[other].popleft()
        room = self._stage.room(message.part, message.work.kind)
        self._arriving[message] = self._comm.irecv(room, other)
        self._ahead[other] += 1

    def finish(self):
        """Wait until everything has been taken."""
        for sent in self._sent.values():
            for request in sent:
                request.wait()


@lru_cache(maxsize=4)
def _plan(schedule):
    """Return each rank's messages with others, in the order in which they are made.

    And (stage, work) -> the message that comes of it, and -> the one that it needs.
    """
    between, given, sources, taken = {}, {}, {}, {}
    stages, last = len(schedule.stages), schedule.parts - 1
    for stage, work in schedule.in_order():
        if source := sources.get((stage, work)):
            taken[stage, source.src] = taken.get((stage, source.src), 0) + 1
        kind, microbatch, own = work
        part = own * stages + stage
        if kind == "W" or part == (last if kind == "F" else 0):
            continue
        chunk, dst = divmod(part + (1 if kind == "F" else -1), stages)
        message = _Message(stage, dst, part, work, taken.get((stage, dst), 0))
        given[stage, work] = sources[dst, Work(kind, microbatch, chunk)] = message
        if dst != stage:
            between.setdefault(stage, []).append(message)
            between.setdefault(dst, []).append(message)
    return between, given, sources
