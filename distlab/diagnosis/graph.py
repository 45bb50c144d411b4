"""The wait-for graph of a job, and the faults at the ends of its paths.

A rank waits for the members of a group that have not made the same call, or for the
other side of its message. A path in this graph ends at a rank that does not wait (it
skipped the call, is busy, has returned or is dead), at a call that all have made and
none can finish, or in a cycle: a deadlock. Calls are matched by group and number.

The notes of ranks under way and the dumps of dead ones are both read as this graph.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

__all__ = ["Fault", "Wait", "WaitForGraph"]


class Fault(NamedTuple):
    """One fault, at one call of one group.

    kind: "disagree" (`ranks` made another call than most), "pieces" (two `ranks` mean
    other sizes in one all-to-all), "missing" (`ranks` never called), "stalled" (all
    called and don't end) or "deadlock" (each of `ranks` waits for the next).
    inside: the ranks that wait in that call.
    """

    kind: str
    group: Hashable
    number: int
    ranks: tuple[int, ...]
    inside: tuple[int, ...] = ()


class Wait(Protocol):
    """A call that a rank is in: its group, its number there, and words for it.

    peers: of a message, what is known of its other sides; () for a collective.
    """

    group: Hashable
    number: int
    call: str
    peers: tuple


class WaitForGraph:
    """The graph and its faults; what differs between sources is in its subclasses.

    everyone: all ranks. groups: all that were used. waiting: rank -> the call it is in.
    lacking: rank -> the ranks that it waits for. over: whether no rank goes on.
    """

    over = True
    everyone: Sequence[int]
    groups: Sequence[Hashable]
    waiting: dict[int, Wait]
    lacking: dict[int, set[int]]

    def members(self, group: Hashable) -> tuple[int, ...]:
        """Return the ranks of a group."""
        raise NotImplementedError

    def numbers(self, group: Hashable) -> Sequence[int]:
        """Return the numbers of the collectives whose calls are known, ascending."""
        raise NotImplementedError

    def sides(self, group: Hashable, number: int) -> list[tuple[str, list[int]]]:
        """Return (call in words, ranks that made it as collective `number`).

        The fewest ranks come first.
        """
        raise NotImplementedError

    def missing(self, group: Hashable, number: int) -> set[int]:
        """Return the members that have not called a collective."""
        raise NotImplementedError

    def pieces(self, group: Hashable, number: int) -> tuple | None:
        """Return (sender, receiver, elements sent, expected) if two ranks differ."""
        return None

    def among(self, group: Hashable) -> str:
        """Return a group in words that follow a call's; "" for all ranks."""
        raise NotImplementedError

    def untold(self, ranks: Sequence[int]) -> str:
        """Return the reason why the calls of ranks are not known, or ""."""
        return ""

    def left(self, ranks: Sequence[int]) -> str:
        """Return the way in which ranks ended, such as "returned"; "" if they live."""
        return ""

    def after(self, ranks: Sequence[int], others: Sequence[int] = ()) -> str:
        """Return the progress of ranks, such as " after 5 backward passes", or ""."""
        return ""

    def during(self, rank: int) -> str:
        """Return the pass in which `rank` waits, such as ", in backward pass 5"."""
        return ""

    def faults(self) -> list[Fault]:
        """Return the faults, the cause of most waiting first; [] if there are none."""
        found = [f for group in self.groups if (f := self._disagreement(group))]
        begun = {fault.group: fault.number for fault in found}
        roots = Counter(self._root(rank) for rank in self.waiting)
        for fault, _ in roots.most_common():  # without results of a disagreement
            if fault.number < begun.get(fault.group, math.inf):
                found.append(fault)
        return found

    def inside(self, group: Hashable, number: int) -> tuple[int, ...]:
        """Return the ranks that wait in a collective."""
        there = (group, number, ())
        waits = self.waiting.items()
        return tuple(r for r, at in waits if (at.group, at.number, at.peers) == there)

    def _disagreement(self, group):
        """Return the first collective that ranks called differently, if there is one.

        Return None if ranks still wait in an earlier one.
        """
        calls = [at for at in self.waiting.values() if at.group == group]
        held = min((at.number for at in calls if not at.peers), default=math.inf)
        for number in self.numbers(group):
            if number > held:
                return None
            sides = self.sides(group, number)
            if len(sides) > 1:
                odd = tuple(rank for _, ranks in sides[:-1] for rank in ranks)
                return Fault("disagree", group, number, odd)
            if pieces := self.pieces(group, number):
                return Fault("pieces", group, number, pieces[1::-1])
        return None

    def _root(self, rank):
        """Return the fault at the end of the wait-for path from `rank`."""
        path = []
        while rank not in path:
            path.append(rank)
            at, lacking = self.waiting[rank], self.lacking[rank]
            idle = tuple(sorted(lacking - self.waiting.keys()))
            if idle or not lacking:
                inside = (rank,) if at.peers else self.inside(at.group, at.number)
                kind = "missing" if idle else "stalled"
                return Fault(kind, at.group, at.number, idle or inside, inside)
            rank = min(lacking)
        return self._deadlock(path[path.index(rank) :])

    def _deadlock(self, cycle):
        """Return the fault of ranks in a cycle of the graph, made as short as it can.

        Where most ranks are in one collective, the others never called that one.
        """
        cycle = self._shortest(cycle)
        waits = [self.waiting[rank] for rank in cycle]
        calls = {(at.group, at.number) for at in waits if not at.peers}
        if len(calls) == 1:
            ((group, number),) = calls
            absent = tuple(sorted(self.missing(group, number)))
            inside = self.inside(group, number)
            if len(inside) > len(absent):
                return Fault("missing", group, number, absent, inside)
        at = waits[0]
        return Fault("deadlock", at.group, at.number, cycle, cycle)

    def _shortest(self, cycle):
        """Return a shortest cycle through one of these ranks, the lowest rank first."""
        best = tuple(cycle)
        for start in sorted(cycle):
            paths, seen = [[start]], {start}
            while paths:
                path = paths.pop(0)
                after = sorted(self.lacking.get(path[-1], ()))
                if start in after and len(path) < len(best):
                    best = tuple(path)
                if len(path) + 1 < len(best):
                    paths += [[*path, rank] for rank in after if rank not in seen]
                    seen.update(after)
        first = best.index(min(best))
        return best[first:] + best[:first]
