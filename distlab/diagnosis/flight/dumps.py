"""The wait-for graph of a job that has left dumps: each rank's first unfinished call.

Calls are matched by group and sequence number, as by torch's own analyzer.
"""

from functools import cache

from distlab.diagnosis.flight.reading import DEFAULT, FlightEntry, Group, RankDump
from distlab.diagnosis.graph import WaitForGraph
from distlab.diagnosis.words import ranks_in_words

__all__ = ["DumpsGraph"]


class DumpsGraph(WaitForGraph):
    """The wait-for graph of all ranks, also of those without a dump.

    cut: those whose file is cut off.
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

    def numbers(self, group):
        """Return the numbers of the collectives that any dump has."""
        lanes = (self.entries(group, rank) for rank in self.members(group))
        return sorted(set().union(*lanes))

    def sides(self, group, number):
        """Return (call, ranks that made it as collective `number`), fewest first."""
        made: dict[str, list[int]] = {}
        for rank in self.members(group):
            if entry := self.entries(group, rank).get(number):
                made.setdefault(entry.call, []).append(rank)
        return sorted(made.items(), key=lambda item: len(item[1]))

    def among(self, group):
        """Return the members of a group and its name in words, "" for all ranks."""
        whole = not any(group.description == DEFAULT for group in self.groups)
        if group.description == DEFAULT or (
            whole and self.members(group) == tuple(self.everyone)
        ):
            return ""
        named = group.description not in ("", "undefined")
        name = f"{group.name}, {group.description}" if named else group.name
        return f" among {ranks_in_words(self.members(group))} (group {name})"

    def untold(self, ranks):
        """Return the reason why the calls of ranks are not known, or ""."""
        gone = [rank for rank in ranks if rank not in self.dumps]
        if not gone:
            return ""
        if self.cut.issuperset(gone):
            return "left a dump that is cut off"
        return f"left no {'whole ' * bool(self.cut.intersection(gone))}dump"

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
        called = ((r, self.entries(group, r).get(number)) for r in self.members(group))
        late = {rank for rank, entry in called if entry and entry.state != "done"}
        return late.difference(self.inside(group, number))

    def _waits_for(self, rank, at):
        if at.peers:
            return {p for way, p, _ in at.peers if not self._meets(way, p, rank)}
        return self.missing(at.group, at.number) or self.behind(at.group, at.number)

    def _meets(self, way, peer, rank):
        """Return True if `peer` is in the matching receive or send for `rank`."""
        wanted = ("recv" if way == "send" else "send"), rank
        pending = self.dumps[peer].unfinished if peer in self.dumps else ()
        return any(end[:2] == wanted for each in pending for end in each.peers)
