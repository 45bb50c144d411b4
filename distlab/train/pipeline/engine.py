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
        self._arriving, self._sent = {}, []
        self._here = {}  # what one part gave to another of this rank
        for message in messages.get(comm.rank, ()):
            other = message.src + message.dst - comm.rank
            if self._in_one_order or message.src == other:
                self._posts.setdefault(other, deque()).append(message)
        for other in self._posts:
            self._post_receives(other)

    def wait_for(self, work):
        """Return what `work` needs from another part of the model, or None."""
        source = self._sources.get((self._comm.rank, work))
        if source is None:
            return None
        if source.src == self._comm.rank:
            return self._here.pop(source)
        while source not in self._arriving:
            self._post_receive(source.src)
        arrived = self._arriving.pop(source).wait()
        self._post_receives(source.src)
        return arrived

    def send(self, work, made):
        """Begin to send what came of a work to whoever needs it."""
        message = self._given.get((self._comm.rank, work))
        if message is None:
            return
        if message.dst == self._comm.rank:
            self._here[message] = made
            return
        if self._in_one_order:
            posts = self._posts[message.dst]
            while posts[0] != message:
                self._post_receive(message.dst)
            posts.popleft()
        self._sent.append(self._comm.isend(made, message.dst))
        if self._in_one_order:
            self._post_receives(message.dst)

    def _post_receives(self, other):
        """Post what comes next from a rank, up to as many as are to be ahead."""
        posts = self._posts[other]
        ahead = sum(message.src == other for message in self._arriving)
        while posts and posts[0].src == other and ahead < _AHEAD:
            self._post_receive(other)
            ahead += 1

    def _post_receive(self, other):
        message = self._posts[other].popleft()
        room = self._stage.room(message.part, message.work.kind)
        self._arriving[message] = self._comm.irecv(room, other)

    def finish(self):
        """Wait until everything has been taken."""
        for request in self._sent:
            request.wait()


@lru_cache(maxsize=4)
def _plan(schedule):
    """Return each rank's messages with others, in the order in which they are made.

    And (stage, work) -> the message that comes of it, and -> the one that it needs.
    """
    between, given, sources = {}, {}, {}
    stages, parts = len(schedule.stages), schedule.parts
    for stage, work in schedule.in_order():
        part = schedule.part(stage, work)
        other = part + {"F": 1, "B": -1, "W": 0}[work.kind]
        if other == part or not 0 <= other < parts:
            continue
        chunk, dst = divmod(other, stages)
        message = given[stage, work] = _Message(stage, dst, part, work)
        sources[dst, Work(work.kind, work.microbatch, chunk)] = message
        if dst != stage:
            between.setdefault(stage, []).append(message)
            between.setdefault(dst, []).append(message)
    return between, given, sources
