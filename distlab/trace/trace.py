"""The trace of a run: the events of every rank, and the counts made from them.

    rank 0  ──send 1──▶            mark           wait        recv 3
    rank 1            ◀──recv 0──        ...

A trace knows nothing of processes or tensors. Runners of an algorithm, on real
processes or on a simulated fabric, create its events; pictures, measurements and
grading read them here. In a group, message k from rank a to rank b is a's k-th send
event to b and b's k-th recv event from a, so no event needs an identity. Messages of
nodes may be dropped or reordered, and carry a number: see `numbered`.

Messages of nodes have numbers, since they are delayed, dropped, duplicated, reordered:

    node 0   ──1──╲ ╱──2──▶            messages 1 and 2 are reordered
    node 1   ◀──2──╳──1──▶ 1 again     message 1 arrives twice
"""

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from os import PathLike

from distlab.errors import InvalidArgument
from distlab.trace.contributions import Shares
from distlab.trace.event import Event, Message, mesh_dimension_of, moves
from distlab.trace.perfetto import perfetto_rows

__all__ = ["Trace", "is_lost", "pair_numbered", "rounds_of_numbered", "words_of"]

_LOST = "dropped"


def is_lost(event: Event) -> bool:
    """Return True if an event is a send that the network dropped."""
    return event.kind == "send" and event.label.partition(":")[0] == _LOST


def words_of(message: Message) -> str:
    """Return a message in words, from the label of either end."""
    for event in message:
        if event is not None and event.label:
            words = event.label
            return words.partition(":")[2].strip() if is_lost(event) else words
    return ""


def pair_numbered(events: list[Event]) -> list[Message]:
    """Return every message, each send beside the recv that has its number.

    A send that arrived twice is in two messages; one that never arrived, because it was
    lost or because its receiver was dead, has no recv.
    """
    sends, recvs = defaultdict(list), defaultdict(list)
    for event in events:
        if event.kind == "send":
            sends[event.rank, event.peer, event.step].append(event)
        elif event.kind == "recv":
            recvs[event.peer, event.rank, event.step].append(event)
    met = []
    for number in sends.keys() | recvs.keys():
        out, into = sends[number], recvs[number]
        for k in range(max(len(out), len(into))):
            send = out[min(k, len(out) - 1)] if out else None
            met.append(Message(send, into[k] if k < len(into) else None))
    order = {id(event): place for place, event in enumerate(events)}
    return sorted(met, key=lambda m: [order[id(event)] for event in m if event])


def rounds_of_numbered(
    events: list[Event], messages: list[Message]
) -> list[tuple[Message, int]]:
    """Return each message with its round: one more than its sender's latest received.

    A node does not wait for what it sends, so a round is a delay of the network: a
    write that waits for two acknowledgements takes two rounds, however they arrive.
    """
    sender_of = {id(m.recv): id(m.send) for m in messages if m.recv and m.send}
    reached, rounds = defaultdict(int), {}
    for event in events:
        if event.kind == "send":
            rounds[id(event)] = reached[event.rank] + 1
        elif event.kind == "recv":
            own = rounds.get(sender_of.get(id(event)), 1)
            rounds[id(event)] = own
            reached[event.rank] = max(reached[event.rank], own)
    return [(m, rounds[id(m.send or m.recv)]) for m in messages]


_MOST_SWEEPS = 100


@dataclass
class Trace:
    """The events of one run, ordered by start, of `world_size` ranks.

    `events` may end early: a rank that died left its last event with `end` None.
    cut_s: the time at which the world was stopped, for a run that did not finish.
    shares: the contributions in every chunk, from a run that followed them.
    who: the kind of actor: "rank", or "worker" in a data job, where each attempt at a
        task is an event of kind "work" with its name as label, such as "map 3,
        attempt 2", and its fate after that if it was not done: ", lost"; or "node",
        where messages may be reordered, dropped or duplicated: there the step of a send
        or recv is the number of its message, the same at both ends, and its label the
        message in words.
    clients: the number of actors, the last ones, that are clients of the others.
    clock_error_s: how far the clocks of two ranks may be apart: events of different
        ranks that are closer than that may have been in either order.
    """

    world_size: int
    events: list[Event] = field(default_factory=list)
    cut_s: float | None = None
    shares: Shares | None = None
    who: str = "rank"
    clients: int = 0
    clock_error_s: float = 0.0

    def __post_init__(self):
        self.events = sorted(self.events, key=lambda event: event.start)

    def __len__(self):
        return len(self.events)

    def __repr__(self):
        if self.who != "rank":
            return f"Trace of {self.actors()}: {len(self.events)} events"
        sent = sum(self.bytes_sent(rank) for rank in range(self.world_size))
        return (
            f"Trace of {self.world_size} ranks: {len(self.events)} events, "
            f"{sent:,} bytes sent in {self.rounds()} rounds"
        )

    def actors(self) -> str:
        """Return the numbers of actors of each kind, as "3 nodes and 2 clients"."""
        counts = [(self.world_size - self.clients, self.who), (self.clients, "client")]
        described = [f"{count:,} {who}" + "s" * (count != 1) for count, who in counts]
        return " and ".join(described if self.clients else described[:1])

    def name(self, rank: int) -> str:
        """Return the name of a rank, as "rank 2", "node 0" or "client 1"."""
        first = self.world_size - self.clients
        return f"{self.who} {rank}" if rank < first else f"client {rank - first}"

    def of(self, rank: int, *kinds: str) -> list[Event]:
        """Return the events of `rank`, only those of `kinds` if any are named.

        Raises: IndexError if the world has no such rank.
        """
        if not 0 <= rank < self.world_size:
            raise IndexError(f"rank {rank} of a world of {self.world_size}")
        return [
            e for e in self.events if e.rank == rank and (not kinds or e.kind in kinds)
        ]

    def since(self, label: str) -> "Trace":
        """Return the events of each rank from its last mark `label` on, without shares.

        Messages stay whole if the ranks met, as in a barrier, just before the mark.

        Raises: InvalidArgument if a rank has set no such mark.
        """
        began = {
            e.rank: e.start for e in self.events if (e.kind, e.label) == ("mark", label)
        }
        for rank in range(self.world_size):
            if rank not in began:
                raise InvalidArgument(f"rank {rank} has set no mark {label!r}.")
        events = [e for e in self.events if e.start >= began[e.rank]]
        return self._of(events)

    def _of(self, events):
        """Return the trace of some of the events."""
        names = "who", "clients", "clock_error_s"
        rest = {name: getattr(self, name) for name in names}
        return Trace(self.world_size, events, self.cut_s, **rest)

    def groups(self) -> list[str]:
        """Return the groups that events are among, "" for the world, sorted."""
        return sorted({event.group for event in self.events})

    def among(self, which: str) -> "Trace":
        """Return the events in one group, or in all along one dimension of a mesh.

        which: a group of an event, such as "0,2#1@tp", or the dimension's name, "tp";
        "" is the world itself.

        Raises: InvalidArgument if there is no such group.
        """
        found = [g for g in self.groups() if which in (g, mesh_dimension_of(g))]
        found = [g for g in found if bool(g) == bool(which)]
        if not found:
            known = {mesh_dimension_of(g) or g or '""' for g in self.groups()}
            raise InvalidArgument(
                f"no event of this trace is among {which!r}; there are "
                f"{', '.join(sorted(known)) or 'no events'}."
            )
        events = [event for event in self.events if event.group in found]
        return self._of(events)

    def bytes_sent(self, rank: int) -> int:
        """Return the payload bytes of the messages that `rank` handed over, exactly.

        A message that has been received was handed over, also if the call that sent it
        never ended.
        """
        return sum(event.bytes for event in self.handed_over(rank))

    def messages_sent(self, rank: int) -> int:
        """Return the number of messages that `rank` handed over."""
        return len(self.handed_over(rank))

    def handed_over(self, rank: int) -> list[Event]:
        """Return the sends of `rank` whose message was handed over."""
        sends = self.of(rank, "send")
        if all(event.end is not None for event in sends):
            return sends
        arrived = {
            id(message.send)
            for message in self.messages()
            if message.recv is not None and message.recv.end is not None
        }
        return [e for e in sends if e.end is not None or id(e) in arrived]

    def bytes_received(self, rank: int) -> int:
        """Return the payload bytes of the messages that `rank` received."""
        received = self.of(rank, "recv")
        return sum(event.bytes for event in received if event.end is not None)

    def collectives(self) -> list[str]:
        """Return the names of ready-made collectives that any rank called, sorted."""
        return sorted({e.label for e in self.events if e.kind == "collective"})

    def messages(self) -> list[Message]:
        """Return every message, each send beside its recv, in order of start."""
        if self.who == "node":
            return pair_numbered(self.events)
        sends, recvs = defaultdict(list), defaultdict(list)
        for event in self.events:
            if event.kind == "send":
                sends[event.rank, event.peer, event.group].append(event)
            elif event.kind == "recv":
                recvs[event.peer, event.rank, event.group].append(event)
        met = []
        for pair in sends.keys() | recvs.keys():
            out, into = sends[pair], recvs[pair]
            for k in range(max(len(out), len(into))):
                send = out[k] if k < len(out) else None
                recv = into[k] if k < len(into) else None
                met.append(Message(send, recv))
        return sorted(met, key=lambda m: (m.send or m.recv).start)

    def lost(self) -> int:
        """Return the number of messages that the network dropped."""
        return sum(map(is_lost, self.events))

    def round_of_messages(self) -> list[tuple[Message, int]]:
        """Return each message that was handed over, with its round, counted from 1.

        A message is one round later than the latest message that either of its ranks
        had finished before starting this one. Messages that a rank posts together,
        as a ring step does, share a round.
        """
        if self.who == "node":
            return rounds_of_numbered(self.events, self.messages())
        messages = [
            m for m in self.messages() if any(e and e.end is not None for e in m)
        ]
        moments = []
        for number, message in enumerate(messages):
            for event in message:
                if event is not None:
                    moments.append((event.start, "starts", event.rank, number))
                    if event.end is not None:
                        end = max(event.end, math.nextafter(event.start, math.inf))
                        moments.append((end, "ended", event.rank, number))
        moments.sort()  # of two moments at one time, "ended" sorts before "starts"
        rounds = [1] * len(messages)
        # A second sweep is needed only where a send ended before its receive began.
        # Clocks that contradict each other would never settle, hence the bound.
        for _ in range(_MOST_SWEEPS):
            settled = True
            finished = defaultdict(int)  # rank -> latest round it has finished
            for _, what, rank, number in moments:
                if what == "ended":
                    finished[rank] = max(finished[rank], rounds[number])
                elif finished[rank] + 1 > rounds[number]:
                    rounds[number] = finished[rank] + 1
                    settled = False
            if settled:
                break
        return list(zip(messages, rounds, strict=True))

    def rounds(self) -> int:
        """Return the length of the longest chain of messages, one after another."""
        return max((number for _, number in self.round_of_messages()), default=0)

    def waited_s(self, rank: int) -> float:
        """Return the seconds that `rank` spent in messages while none of its own moved.

        A message moves from the start of its later side to the end of its earlier one.
        """
        inside, moving = [], []
        for message in self.messages():
            for event in message:
                if event is not None and event.rank == rank and event.end is not None:
                    inside.append((event.start, event.end))
                    moving.append(moves(message))
        return _covered(inside) - _covered(moving)

    def duration_s(self) -> float:
        """Return the seconds from the first event's start to the last event's end."""
        if not self.events:
            return 0.0
        last = max(e.start if e.end is None else e.end for e in self.events)
        return max(0.0, last - self.events[0].start)

    def to_perfetto(self, path: str | PathLike) -> None:
        """Write the trace for Perfetto or chrome://tracing, one lane for each rank.

        Source: Trace Event Format, "JSON Object Format"; times are microseconds.
        """
        with open(path, "w", encoding="utf-8") as file:
            rows = perfetto_rows(self)
            json.dump({"traceEvents": rows, "displayTimeUnit": "ms"}, file)


def _covered(intervals):
    """Return the length of the union of intervals."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
