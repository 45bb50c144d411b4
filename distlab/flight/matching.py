"""Matching of calls: each rank's first unfinished call, the ranks it awaits, and why.

A rank waits for the members of a group that have not made the same call. A path in this
wait-for graph ends at a rank that does not wait (it skipped the call, or is busy, or
dead), at a call that all have made and none can finish, or in a cycle: a deadlock.
Calls are matched by group and sequence number, as by torch's own analyzer.
"""

import math
from collections import Counter
from functools import cache
from typing import NamedTuple

from distlab.flight.reading import DEFAULT, FlightEntry, Group, RankDump

__all__ = ["Fault", "RankDumps"]


class Fault(NamedTuple):
    """One fault, at one call of one group.

    kind: "disagree" (`ranks` made another call than most), "missing" (`ranks` never
    called), "stalled" (all called and don't end) or "deadlock" (each of `ranks` waits
    for the next). inside: the ranks that wait in that call.
    """

    kind: str
    group: Group
    number: int
    ranks: tuple[int, ...]
    inside: tuple[int, ...] = ()


class RankDumps:
    """The dumps of all ranks.

    everyone: all ranks, also those without a dump. waiting: rank -> the call it is in.
    lacking: rank -> the ranks that it waits for. cut: those whose file is cut off.
    """

    def __init__(
        self, dumps: dict[int, RankDump], ranks: set[int], cut: frozenset = frozenset()
    ):
        self.dumps, self.cut = dumps, cut
        found = {group for dump in dumps.values() for group in dump.collectives}
        found |= {each.group for dump in dumps.values() for each in dump.unfinished}
        self.groups = sorted(found, key=lambda group: (len(group.name), group.name))
        ranks = ranks.union(*(dump.everyone for dump in dumps.values()))
        gaps = range(max(ranks)) if max(ranks) < 2 * len(ranks) else ()
        self.everyone = sorted(ranks.union(gaps))
        self.members = cache(self._members)
        self.missing, self.behind = cache(self._missing), cache(self._behind)
        self.waiting = {r: at for r in dumps if (at := self._stands(r)) is not None}
        self.lacking = {r: self._waits_for(r, at) for r, at in self.waiting.items()}

    def entries(self, group: Group, rank: int) -> dict[int, FlightEntry]:
        """Return sequence number -> the entry of `rank` in `group`."""
        return self.dumps[rank].collectives.get(group, {}) if rank in self.dumps else {}

    def calls(self, group: Group, number: int) -> dict[str, list[int]]:
        """Return call -> ranks that made it as collective `number`, fewest first."""
        made: dict[str, list[int]] = {}
        for rank in self.members(group):
            if entry := self.entries(group, rank).get(number):
                made.setdefault(entry.call, []).append(rank)
        return dict(sorted(made.items(), key=lambda item: len(item[1])))

    def faults(self) -> list[Fault]:
        """Return the faults, the cause of most waiting first; [] if there are none."""
        found = [f for group in self.groups if (f := self._disagreement(group))]
        begun = {fault.group: fault.number for fault in found}
        roots = Counter(self._root(rank) for rank in self.waiting)
        for fault, _ in roots.most_common():  # without results of a disagreement
            if fault.number < begun.get(fault.group, math.inf):
                found.append(fault)
        return found

    def parting(self, group: Group, rank: int, other: int) -> int | None:
        """Return the first collective that the two call from different lines."""
        ours, theirs = self.entries(group, rank), self.entries(group, other)
        both = [n for n in ours if n in theirs]
        apart = [n for n in both if ours[n].stack[:1] != theirs[n].stack[:1]]
        return apart[0] if apart and apart[0] != both[0] else None

    def forgotten(self, group: Group, rank: int) -> bool:
        """Return True if all entries of `rank` in `group` may be overwritten."""
        dump = self.dumps.get(rank)
        return bool(dump and dump.overwritten and group not in dump.collectives)

    def _members(self, group):
        if group.description == DEFAULT:
            return tuple(self.everyone)
        used = (r for r, dump in self.dumps.items() if group in dump.collectives)
        return group.ranks or tuple(used)

    def _stands(self, rank):
        """Return the first call of `rank` that has not ended, if there is one."""
        dump = self.dumps[rank]
        if dump.unfinished:
            return dump.unfinished[0]
        # gloo retires also what failed or timed out: then others never called it.
        last = dump.last if dump.gloo else None
        return last if last and self.missing(last.group, last.number) else None

    def _missing(self, group, number):
        """Return the members that have not called a collective, or left no dump."""
        return {
            rank
            for rank in self.members(group)
            if next(reversed(self.entries(group, rank)), 0) < number
            and not self.forgotten(group, rank)
        }

    def _behind(self, group, number):
        """Return the members that have called it, but are still in an earlier call."""
        inside = self._inside(group, number)
        called = ((r, self.entries(group, r).get(number)) for r in self.members(group))
        late = {rank for rank, entry in called if entry and entry.state != "done"}
        return late.difference(inside)

    def _inside(self, group, number):
        there = (group, number, ())
        stand = self.waiting.items()
        return tuple(r for r, at in stand if (at.group, at.number, at.peers) == there)

    def _waits_for(self, rank, at):
        if at.peers:
            return {p for way, p, _ in at.peers if not self._meets(way, p, rank)}
        return self.missing(at.group, at.number) or self.behind(at.group, at.number)

    def _meets(self, way, peer, rank):
        """Return True if `peer` is in the matching receive or send for `rank`."""
        wanted = ("recv" if way == "send" else "send"), rank
        pending = self.dumps[peer].unfinished if peer in self.dumps else ()
        return any(end[:2] == wanted for each in pending for end in each.peers)

    def _disagreement(self, group):
        """Return the first collective that ranks called differently, if there is one.

        Return None if ranks still wait in an earlier one.
        """
        lanes = [self.entries(group, rank) for rank in self.members(group)]
        calls = [at for at in self.waiting.values() if at.group is group]
        held = min((at.number for at in calls if not at.peers), default=math.inf)
        for number in sorted(set().union(*lanes)):
            if len({lane[number].call for lane in lanes if number in lane}) > 1:
                sides = list(self.calls(group, number).values())
                odd = tuple(rank for side in sides[:-1] for rank in side)
                early = number <= held
                return Fault("disagree", group, number, odd) if early else None
        return None

    def _root(self, rank):
        """Return the fault at the end of the wait-for path from `rank`."""
        path = []
        while rank not in path:
            path.append(rank)
            at, lacking = self.waiting[rank], self.lacking[rank]
            idle = tuple(sorted(lacking - self.waiting.keys()))
            if idle or not lacking:
                inside = (rank,) if at.peers else self._inside(at.group, at.number)
                kind = "missing" if idle else "stalled"
                return Fault(kind, at.group, at.number, idle or inside, inside)
            rank = min(lacking)
        cycle = path[path.index(rank) :]
        first = cycle.index(min(cycle))
        cycle = tuple(cycle[first:] + cycle[:first])
        at = self.waiting[cycle[0]]
        return Fault("deadlock", at.group, at.number, cycle, cycle)
