"""Steps of an animation of nodes: an event of one node, and its reaction to it.

    client 0 invokes ─▶ node 0 receives, sends ─▶ ...           one step
    node 1 receives ─▶ responds ─▶ client 0 receives            one step
    a crash, a restart, a partition, a dropped message          a step each

A node handles one event at once, and is idle again: that is a `NodeStep`. The two ends
of one message between a client and its node make one step, if nothing else happened in
between.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from distlab.trace import Event, Message, Trace, is_lost

__all__ = ["Happenings", "NodeStep", "NodesStep", "PartitionSpan"]

# positions of the turns in a step; behind the last is room for messages dropped at once
_PLACES = {1: (0.4,), 2: (0.2, 0.55), 3: (0.15, 0.45, 0.8), 4: (0.1, 0.35, 0.6, 0.85)}
_TOGETHER_S = 5e-4  # a real node's clock advances while it acts


@dataclass
class NodeStep:
    """An event of one node or client, and its reaction.

    cause: its recv, fault, or the mark of its timer; None if no cause is known.
    sends, notes: its reaction. lost: instead of all this, a message dropped now.
    x: its position, in steps from the start.
    """

    rank: int
    at_s: float
    cause: Event | None = None
    sends: list[Event] = field(default_factory=list)
    notes: list[Event] = field(default_factory=list)
    lost: Message | None = None
    x: float = 0.0


@dataclass
class PartitionSpan:
    """A network partition: its sides, and its first and last x as in `NodeStep`."""

    sides: list[tuple[int, ...]]
    event: Event
    begin_x: float = 0.0
    end_x: float = 0.0

    def parts(self, one: int, other: int) -> bool:
        """Return True if two nodes are on different sides."""
        return one != other and self.side(one) != self.side(other)

    def side(self, node: int):
        """Return the side of a node; a node that no side lists is a side of its own."""
        found = [k for k, side in enumerate(self.sides) if node in side]
        return found[0] if found else ("alone", node)


@dataclass
class NodesStep:
    """One step of the animation: turns, or a change of the network.

    split, heals: the partition that begins or ends here.
    """

    at_s: float
    node_steps: list[NodeStep] = field(default_factory=list)
    split: PartitionSpan | None = None
    heals: PartitionSpan | None = None


class Happenings:
    """A trace of nodes, read once.

    nodes: their number; clients come after them. messages: as in the trace.
    message_of: id of a send or recv -> its messages. homes: client -> the node that it
    calls. splits, shown_steps: in order. node_step_of: id of an event -> its step.
    """

    def __init__(self, trace: Trace):
        self.trace, self.nodes = trace, trace.world_size - trace.clients
        self.messages = trace.messages()
        self.message_of = defaultdict(list)
        for message in self.messages:
            for event in message:
                if event is not None:
                    self.message_of[id(event)].append(message)
        self.homes = self._homes()
        self.splits = [
            PartitionSpan(_sides(e.label), e)
            for e in trace.events
            if e.kind == "fault" and e.label.startswith("partition")
        ]
        self.node_step_of = {}
        self.shown_steps = self._joined(self._node_steps())
        self._place()

    def is_client(self, rank: int) -> bool:
        """Return True if a rank is a client."""
        return rank >= self.nodes

    def _homes(self):
        homes = {}
        for event in self.trace.events:
            if event.kind == "send" and self.is_client(event.rank):
                homes.setdefault(event.rank, event.peer)
        clients = range(self.nodes, self.trace.world_size)
        return {client: homes.get(client, 0) for client in clients}

    def _node_steps(self):
        """Return turns, partitions, their ends, and late drops, in order of time."""
        begun, last = [], {}
        for place, event in enumerate(self.trace.events):
            if event.kind == "fault" and event.label.startswith("partition"):
                continue
            node_step = last.get(event.rank)
            if node_step is None or self._begins(event, node_step):
                node_step = last[event.rank] = NodeStep(event.rank, event.start)
                begun.append((event.start, 1, place, node_step))
            self.node_step_of[id(event)] = node_step
            if event.kind == "send":
                node_step.sends.append(event)
            elif event.kind in ("recv", "fault") or _timer(event):
                node_step.cause = event
            else:
                node_step.notes.append(event)
            if is_lost(event) and event.end is not None and event.end > event.start:
                message = self.message_of[id(event)][0]
                lost = NodeStep(event.rank, event.end, lost=message)
                begun.append((event.end, 2, place, lost))
        for split in self.splits:
            begun.append(
                (split.event.start, 0, -1, NodesStep(split.event.start, split=split))
            )
            if split.event.end is not None:
                end_s = split.event.end
                begun.append((end_s, 0, -1, NodesStep(end_s, heals=split)))
        return [thing for *_, thing in sorted(begun, key=lambda each: each[:3])]

    def _begins(self, event, node_step):
        """Return True if an event is the first of another turn of its rank."""
        if event.kind in ("recv", "fault") or _timer(event):
            return True
        if self.is_client(event.rank):
            return True
        if node_step.cause is not None:
            return False
        known = [
            node_step.at_s,
            *(e.start for e in (*node_step.sends, *node_step.notes)),
        ]
        return event.start - max(known) > _TOGETHER_S

    def _joined(self, things):
        """Return the steps; the two ends of a request or response make one."""
        shown_steps = []
        for thing in things:
            last = shown_steps[-1] if shown_steps else None
            if isinstance(thing, NodesStep) or not self._belongs(thing, last):
                alone = isinstance(thing, NodesStep)
                shown_steps.append(thing if alone else NodesStep(thing.at_s, [thing]))
            else:
                last.node_steps.append(thing)
        return shown_steps

    def _belongs(self, node_step, last):
        """Return True if a turn is part of the step before it."""
        if last is None:
            return False
        if node_step.lost is not None:  # by the partition or crash of the step before
            return last.at_s == node_step.at_s and not last.heals
        return bool(last.node_steps) and self._follows(node_step, last.node_steps[-1])

    def _follows(self, node_step, before):
        if node_step.cause is None or node_step.cause.kind != "recv":
            return False
        if self.is_client(node_step.rank) == self.is_client(before.rank):
            return False
        sends = {id(m.send) for m in self.message_of[id(node_step.cause)]}
        return any(id(send) in sends for send in before.sends)

    def _place(self):
        """Set the x of each turn and of each partition's ends."""
        for number, stop in enumerate(self.shown_steps):
            node_steps = [
                node_step for node_step in stop.node_steps if node_step.lost is None
            ]
            for place, node_step in enumerate(node_steps):
                node_step.x = number + _PLACES[min(len(node_steps), 4)][min(place, 3)]
            for node_step in stop.node_steps:
                if node_step.lost is not None:
                    node_step.x = number + 0.5
            if stop.split:
                stop.split.begin_x = number + 0.5
                stop.split.end_x = len(self.shown_steps)
            if stop.heals:
                stop.heals.end_x = number + 0.5


def _timer(event):
    return event.kind == "mark" and event.label.startswith("timer")


def _sides(label):
    """Return the sides of "partition 0 1 | 2" as tuples of nodes."""
    parts = label.removeprefix("partition").split("|")
    numbers = (part.replace(",", " ").split() for part in parts)
    return [tuple(int(n) for n in some if n.isdigit()) for some in numbers]
