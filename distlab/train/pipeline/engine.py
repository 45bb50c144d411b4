"""The engine that runs any schedule: `play(comm, schedule, stage)`.

    for each work of this stage:   wait for its input ──▶ stage.do(work, arrived)
                                   start to send its result, continue

Sends and receives are asynchronous. Between two ranks all messages are posted in one
order on both sides, that of `Schedule.in_order`, and a receive before it is needed: so
NCCL, which runs the messages of a pair one after another, has no deadlock either, and
communication overlaps with computation.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from distlab.errors import InvalidArgument
from distlab.train.pipeline.schedule import Schedule, Work

__all__ = ["PipelineStage", "check_stages", "play"]

_AHEAD = 2  # receives from a rank that are posted before they are needed


class PipelineStage(Protocol):
    """The interface of a stage, which executes works."""

    def do(self, work: Work, arrived):
        """Do a work with its received input, or None; return the tensor to send."""

    def room(self, part: int, kind: str):
        """Return a receive buffer for the result of `part` of the model, in F or B."""


@dataclass(eq=False, slots=True)
class _StageMessage:
    """The result of a work of one rank that another rank needs."""

    src: int
    dst: int
    part: int  # of the model, its source
    kind: str
    taken: int  # number of messages from `dst` that `src` has received before this


class _Peer:
    """Another rank, and the state of the messages with it.

    posts: those that are not posted yet. ahead: number of receives posted, not waited
    for. sent: the sends in flight. taken: number of sends that are over.
    """

    def __init__(self):
        self.posts, self.sent = deque(), deque()
        self.ahead = self.taken = 0


def play(comm, schedule: Schedule, stage: PipelineStage, *, seconds=None) -> None:
    """Do this rank's works in the schedule's order, and exchange their inputs.

    seconds: (stage, *works) -> least duration of works that run side by side, mostly
    one; on a virtual clock, duration. Works side by side run one after another here,
    and send their results when all are done.

    Raises: InvalidArgument if the numbers of ranks and stages differ.
    """
    check_stages(comm, schedule)
    mail = _Mail(comm, schedule, stage)
    for works in schedule.groups[comm.rank]:
        arrived = [mail.wait_for(work) for work in works]
        takes = seconds(comm.rank, *works) if seconds else 0.0
        with comm.work("+".join(map(str, works)), seconds=takes):
            made = [*map(stage.do, works, arrived)]
        for work, result in zip(works, made, strict=True):
            mail.send(work, result)
    mail.finish()


def check_stages(comm, schedule: Schedule) -> None:
    """Raise InvalidArgument if the numbers of stages and ranks differ."""
    if len(schedule.stages) != comm.world_size:
        raise InvalidArgument(
            f"the schedule has {len(schedule.stages)} stages, one for each rank, and "
            f"there are {comm.world_size} ranks."
        )


class _Mail:
    """A rank's messages: those it has still to post with each other rank, in order.

    On a GPU these are receives and sends in the order of both ranks; else a receive
    need not wait for an earlier send.
    """

    def __init__(self, comm, schedule, stage):
        self._comm, self._stage = comm, stage
        messages, self._given, self._sources = _plan(schedule)[comm.rank]
        self._in_one_order = str(comm.device).startswith("cuda")
        self._arriving = {}  # message -> the request for it
        self._here = {}  # results of one part for another of this rank
        self._peers = defaultdict(_Peer)
        for message in messages:
            peer = self._peers[message.src + message.dst - comm.rank]
            if self._in_one_order or message.dst == comm.rank:
                peer.posts.append(message)
        for peer in self._peers.values():
            self._post_receives(peer)

    def wait_for(self, work):
        """Return the input of `work` from another part of the model, or None."""
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
            peer.sent.popleft().wait()  # at once; its tensor is freed
            peer.taken += 1
        self._post_receives(peer)
        return arrived

    def send(self, work, made):
        """Start to send the result of a work to the rank that needs it."""
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
        """Post the next receives from a rank, up to `_AHEAD` that are pending."""
        posts, own = peer.posts, self._comm.rank
        while peer.ahead < _AHEAD and posts and posts[0].src != own:
            self._post_receive(peer)

    def _post_receive(self, peer):
        message = peer.posts.popleft()
        room = self._stage.room(message.part, message.kind)
        self._arriving[message] = self._comm.irecv(room, message.src)
        peer.ahead += 1

    def finish(self):
        """Wait until all sends are over."""
        for peer in self._peers.values():
            for request in peer.sent:
                request.wait()


@lru_cache(maxsize=4)
def _plan(schedule):
    """Return for each stage its messages, in the order in which they are sent.

    And two dicts: work of the stage -> the message it sends, and -> the one it needs.
    """
    stages, last = len(schedule.stages), schedule.parts - 1
    plans = [([], {}, {}) for _ in range(stages)]
    taken = [[0] * stages for _ in range(stages)]
    for stage, work in schedule.in_order():
        between, given, sources = plans[stage]
        if work in sources:
            taken[stage][sources[work].src] += 1
        kind, microbatch, chunk = work
        part = schedule.part(stage, chunk)
        if kind == "W" or part == (last if kind == "F" else 0):
            continue
        dst, chunk = schedule.place(part + (1 if kind == "F" else -1))
        message = _StageMessage(stage, dst, part, kind, taken[stage][dst])
        its_between, _, its_sources = plans[dst]
        given[work] = its_sources[kind, microbatch, chunk] = message
        if dst != stage:
            between.append(message)
            its_between.append(message)
    return plans
