"""`Partitions`: the present partitions of the network, and the record of faults.

`planned` has the methods of `Supervisor` that begin and end a planned fault.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from distlab.faults import ClockJump, Crash, Cut, NodeFault, Pause, Split

__all__ = ["FITS", "FaultRecord", "Partitions", "planned"]

_BY_HAND = "by hand"
# Method -> the states in which a node has to be; else the planned fault does nothing.
FITS = {
    "kill": ("running", "paused"),
    "restart": ("killed",),
    "pause": ("running",),
    "resume": ("paused",),
}


class FaultRecord(NamedTuple):
    """A fault of the cluster, as the trace records it.

    node: the one affected; None for the network. kind: "fault", or "mark" for a pause,
    which is none of the trace's faults.
    """

    node: int | None
    start_s: float
    end_s: float
    label: str
    kind: str = "fault"


class Partitions:
    """The partitions of a network of `count` nodes, and its faults so far.

    splits: name -> sides, of every present partition. cuts: name -> (sender, receiver)
    of every link that is cut in one direction.
    faults: all that have ended, as `FaultRecord`s.
    """

    def __init__(self, count: int):
        self.count = count
        self.splits: dict[Hashable, tuple] = {}
        self.cuts: dict[Hashable, tuple[int, int]] = {}
        self.faults: list[FaultRecord] = []
        self._lasting: dict[FaultRecord, float] = {}  # one of `present` -> its start

    def split(self, sides: Sequence[Iterable[int]], name: Hashable = _BY_HAND) -> None:
        """Begin a partition; one of the same name is replaced."""
        sides = [tuple(side) for side in sides]
        named = {node for side in sides for node in side}
        alone = [(node,) for node in range(self.count) if node not in named]
        self.splits[name] = (*sides, *alone)

    def cut(self, src: int, dst: int, name: Hashable = None) -> None:
        """Cut one link in one direction."""
        self.cuts[(src, dst) if name is None else name] = src, dst

    def end(self, name: Hashable) -> None:
        """End one partition, or one cut."""
        self.splits.pop(name, None)
        self.cuts.pop(name, None)

    def heal(self) -> None:
        """End every partition, and every cut."""
        self.splits.clear()
        self.cuts.clear()

    def severed(self) -> frozenset[tuple[int, int]]:
        """Return the links that are cut, as (sender, receiver)."""
        between = {
            (one, other)
            for sides in self.splits.values()
            for side in sides
            for one in side
            for other in range(self.count)
            if other not in side
        }
        return frozenset(between.union(self.cuts.values()))

    def sides(self) -> list[list[int]]:
        """Return the groups of nodes that can reach each other, directly or not."""
        gone, groups = self.severed(), []
        for node in range(self.count):
            links = {other: {(node, other), (other, node)} for other in range(node)}
            near = [g for g in groups if any(links[other] - gone for other in g)]
            rest = [g for g in groups if g not in near]
            groups = [*rest, sorted([node, *(n for g in near for n in g)])]
        return sorted(groups)

    def present(self) -> set[FaultRecord]:
        """Return the present partitions and cuts, without their times."""
        labels = [
            "partition " + " | ".join(" ".join(map(str, side)) for side in sides)
            for sides in self.splits.values()
        ]
        return {FaultRecord(None, 0.0, 0.0, label) for label in labels} | {
            FaultRecord(src, 0.0, 0.0, f"cut off from node {dst}", "mark")
            for src, dst in self.cuts.values()
        }

    def changed(self, present: set[FaultRecord], at_s: float) -> None:
        """Record that exactly these partitions and cuts exist from `at_s` on."""
        for one in self._lasting.keys() - present:
            since_s = self._lasting.pop(one)
            self.faults.append(one._replace(start_s=since_s, end_s=at_s))
        self._lasting |= dict.fromkeys(present - self._lasting.keys(), at_s)

    def note(self, node: int, at_s: float, label: str, kind: str = "fault") -> None:
        """Record a fault of a node."""
        self.faults.append(FaultRecord(node, at_s, at_s, label, kind))

    def records(self, now_s: float) -> list[FaultRecord]:
        """Return all faults, also the partitions that last until now."""
        lasting = [
            one._replace(start_s=since_s, end_s=now_s)
            for one, since_s in self._lasting.items()
        ]
        return [*self.faults, *lasting]


def planned(fault: NodeFault, name: Hashable) -> list[tuple]:
    """Return the steps of a fault, as (time, method, its arguments ...)."""
    links, node = "change_links", getattr(fault, "node", None)
    match fault:
        case Split():
            begin = links, Partitions.split, fault.sides, name
        case Cut():
            begin = links, Partitions.cut, fault.src, fault.dst, name
        case Crash():
            begin = "kill", node, fault.loses
        case Pause():
            begin = "pause", node
        case ClockJump():
            begin = "move_clock", node, fault.by_s
        case _:
            return []  # a drift, which is there from the start
    end = {"kill": ("restart", node), "pause": ("resume", node)}
    end[links] = links, Partitions.end, name
    steps = [(fault.at_s, *begin)]
    if getattr(fault, "until_s", None) is not None:
        steps.append((fault.until_s, *end[begin[0]]))
    return steps
