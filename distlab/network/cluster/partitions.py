"""`Partitions`: the present partitions of the network, and the record of faults.

`planned` has the methods of `Supervisor` that begin and end a planned fault.
"""

from collections.abc import Hashable, Iterable, Sequence

from distlab.faults import ClockJump, Crash, Cut, NodeFault, Pause, Split
from distlab.trace import Event

__all__ = ["Partitions", "planned"]

_BY_HAND = "by hand"


class Partitions:
    """The partitions of a network of `count` nodes, and its faults so far.

    present: name -> (its event without times, the links that it cuts), of every
    partition, and of every cut in one direction. faults: all that have ended.
    """

    def __init__(self, count: int):
        self.count = count
        self.present: dict[Hashable, tuple[Event, set]] = {}
        self.faults: list[Event] = []
        self._lasting: dict[Event, float] = {}  # one of `present` -> its start

    def split(self, sides: Sequence[Iterable[int]], name: Hashable = _BY_HAND) -> None:
        """Begin a partition; one of the same name is replaced."""
        side_of = {node: side for side in map(tuple, sides) for node in side}
        side_of |= {n: (n,) for n in range(self.count) if n not in side_of}
        links = {(a, b) for a in side_of for b in side_of if side_of[a] != side_of[b]}
        words = " | ".join(
            " ".join(map(str, s)) for s in dict.fromkeys(side_of.values())
        )
        self.present[name] = _event(0, 0.0, f"partition {words}"), links

    def cut(self, src: int, dst: int, name: Hashable = None) -> None:
        """Cut one link in one direction."""
        event = _event(src, 0.0, f"cut off from node {dst}", "mark")
        self.present[(src, dst) if name is None else name] = event, {(src, dst)}

    def end(self, name: Hashable) -> None:
        """End one partition, or one cut."""
        self.present.pop(name, None)

    def heal(self) -> None:
        """End every partition, and every cut."""
        self.present.clear()

    def severed(self) -> frozenset[tuple[int, int]]:
        """Return the links that are cut, as (sender, receiver)."""
        return frozenset().union(*(links for _, links in self.present.values()))

    def sides(self) -> list[list[int]]:
        """Return the groups of nodes that can reach each other, directly or not."""
        gone, groups = self.severed(), []
        for node in range(self.count):
            links = {other: {(node, other), (other, node)} for other in range(node)}
            near = [g for g in groups if any(links[other] - gone for other in g)]
            rest = [g for g in groups if g not in near]
            groups = [*rest, sorted([node, *(n for g in near for n in g)])]
        return sorted(groups)

    def changed(self, present: Iterable[Event], at_s: float) -> None:
        """Record that exactly these partitions and cuts exist from `at_s` on."""
        present = set(present)
        for one in self._lasting.keys() - present:
            since_s = self._lasting.pop(one)
            self.faults.append(one._replace(start=since_s, end=at_s))
        self._lasting |= dict.fromkeys(present - self._lasting.keys(), at_s)

    def note(self, node: int, at_s: float, label: str, kind: str = "fault") -> None:
        """Record a fault of a node; the kind of a pause is "mark"."""
        self.faults.append(_event(node, at_s, label, kind))

    def events(self, now_s: float) -> list[Event]:
        """Return all faults, also the partitions that last until now."""
        lasting = self._lasting.items()
        return self.faults + [e._replace(start=s, end=now_s) for e, s in lasting]


def _event(node, at_s, label, kind="fault"):
    return Event(node, at_s, at_s, kind, None, 0, 0, label)


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
