"""`Links`: which links between nodes are cut at the moment, and since when."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Links", "Mishap"]

_HAND = "hand"


class Mishap(NamedTuple):
    """Something that was done to the cluster, as the trace has it.

    node: whom it befell; None for the network. kind: "fault", or "mark" for what is
    none of the trace's faults: a pause, or a single link that is cut.
    """

    node: int | None
    start_s: float
    end_s: float
    label: str
    kind: str = "fault"


@dataclass
class Links:
    """The splits and cuts of a network of `count` nodes.

    splits: who is on which side, of every split that lasts. cuts: single links.
    """

    count: int
    splits: dict[Hashable, tuple] = field(default_factory=dict)
    cuts: set[tuple[int, int]] = field(default_factory=set)
    mishaps: list[Mishap] = field(default_factory=list)
    _lasting: dict[str, float] = field(default_factory=dict)
    _cuts: set[tuple[int, int]] = field(default_factory=set)

    def split(self, sides: Sequence[Iterable[int]], name: Hashable = _HAND) -> None:
        """Begin a split; one of the same name is replaced."""
        sides = [tuple(side) for side in sides]
        named = {node for side in sides for node in side}
        alone = [(node,) for node in range(self.count) if node not in named]
        self.splits[name] = (*sides, *alone)

    def mend(self, name: Hashable) -> None:
        """End one split."""
        self.splits.pop(name, None)

    def heal(self) -> None:
        """End every split and cut."""
        self.splits.clear()
        self.cuts.clear()

    def cut(self, one: int, other: int) -> None:
        """Cut the link between two nodes, both ways."""
        self.cuts.add((min(one, other), max(one, other)))

    def severed(self) -> frozenset[tuple[int, int]]:
        """Return the links that are cut, from whom to whom."""
        gone = set()
        for sides in self.splits.values():
            where = {node: at for at, side in enumerate(sides) for node in side}
            for one in range(self.count):
                gone |= {
                    (one, other)
                    for other in range(self.count)
                    if where[one] != where[other]
                }
        for one, other in self.cuts:
            gone |= {(one, other), (other, one)}
        return frozenset(gone)

    def sides(self) -> list[list[int]]:
        """Return the groups of nodes that can reach each other, directly or not."""
        gone, groups = self.severed(), []
        for node in range(self.count):
            near = [g for g in groups if any((node, other) not in gone for other in g)]
            rest = [g for g in groups if g not in near]
            groups = [*rest, sorted([node, *(n for g in near for n in g)])]
        return sorted(groups)

    def labels(self) -> set[str]:
        """Return the splits of this moment, in the words of the trace."""
        return {
            "partition " + " | ".join(" ".join(map(str, side)) for side in sides)
            for sides in self.splits.values()
        }

    def changed(
        self, labels: set[str], cuts: set[tuple[int, int]], at_s: float
    ) -> None:
        """Note that from now on there are exactly these splits and cuts."""
        for label in self._lasting.keys() - labels:
            self.mishaps.append(Mishap(None, self._lasting.pop(label), at_s, label))
        self._lasting |= dict.fromkeys(labels - self._lasting.keys(), at_s)
        for one, other in cuts ^ self._cuts:
            what = "cut" if (one, other) in cuts else "mended"
            self.note(one, at_s, f"link to {other} {what}", "mark")
            self.note(other, at_s, f"link to {one} {what}", "mark")
        self._cuts = set(cuts)

    def note(self, node: int, at_s: float, label: str, kind: str = "fault") -> None:
        """Note what befell a node."""
        self.mishaps.append(Mishap(node, at_s, at_s, label, kind))

    def told(self, now_s: float) -> list[Mishap]:
        """Return what has happened, and what has lasted until now."""
        lasting = [
            Mishap(None, at, now_s, label) for label, at in self._lasting.items()
        ]
        return [*self.mishaps, *lasting]
