"""NCCL's watchdog in logs: the rank that is behind, by how much, and how sure that is.

    [rank1]:[E604 ...] [Rank 1] Watchdog caught collective operation timeout:
        WorkNCCL(SeqNum=397, OpType=BROADCAST, NumelIn=1024, ...) ran for 600044 ms ...
    [PG ID 0 PG GUID 0(default_pg) Rank 1] ... last enqueued work: 397, last completed

A log names a suspect and is no proof: a rank that wrote nothing may be the cause.

Source: the messages of ProcessGroupNCCL.cpp, PyTorch 1.10 to 2.11, from public reports.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distlab.errors import InvalidArgument

__all__ = ["WatchdogLog", "has_watchdog", "read_logs"]

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TIMEOUT = re.compile(
    r"(?:\[PG (?:ID )?(?P<pg>\d+)[^\]]*?\s*)?\[?Rank (?P<rank>\d+)\].*?"
    r"WorkNCCL\(SeqNum="
    r"(?P<number>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<elements>\d+))?[^)]*?"
    r"Timeout\(ms\)=(?P<limit>\d+)\) ran for (?P<ran>\d+)"
)
_STATUS = re.compile(
    r"\[PG (?:ID )?(?P<pg>\d+)(?:[^\]]*?\((?P<name>\w+)\))?[^\]]*?Rank (?P<rank>\d+)\]"
    r".*?last enqueued(?: NCCL)? work: (?P<enqueued>-?\d+), "
    r"last completed(?: NCCL)? work: (?P<completed>-?\d+)"
)
_NEXT_TIME = (
    "To have dumps next time, which name lines of code and prove it, set\n"
    "    TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
    "TORCH_FR_DUMP_TEMP_FILE=/shared/dumps/rank_"
)
_NAMES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "BROADCAST": "broadcast",
}
_NAMES |= {"_ALLGATHER_BASE": "all_gather_into_tensor", "ALLTOALL": "all_to_all"}
_NAMES |= {"_REDUCE_SCATTER_BASE": "reduce_scatter_tensor", "BARRIER": "barrier"}
_NAMES |= {"ALLTOALL_BASE": "all_to_all_single", "REDUCE_SCATTER": "reduce_scatter"}


@dataclass
class _WatchdogRank:
    """The latest that one rank's watchdog wrote of one group, and its line."""

    number: int = -1
    call: str = ""
    ran_s: float = 0.0
    enqueued: int = -1
    where: str = ""


@dataclass
class WatchdogLog:
    """The watchdog's lines of a job. groups: group -> rank -> what it wrote."""

    groups: dict[str, dict[int, _WatchdogRank]] = field(default_factory=dict)

    @property
    def faults(self) -> list[int]:
        """The ranks that are behind, the furthest first; [] if none is."""
        return self._behind(self._main)[1]

    @property
    def _main(self):
        """The group whose ranks differ most, or the first that timed out."""
        return max(self.groups, key=lambda g: (self._spread(g), len(self.groups[g])))

    def _spread(self, group):
        numbers = [rank.number for rank in self.groups[group].values()]
        return max(numbers) - min(numbers)

    def _behind(self, group):
        ranks = self.groups[group]
        most = max(rank.number for rank in ranks.values())
        late = [number for number, rank in ranks.items() if rank.number < most]
        return most, sorted(late, key=lambda number: ranks[number].number)

    def __str__(self):
        group = self._main
        ranks, (most, late) = self.groups[group], self._behind(group)
        ahead = [number for number, rank in ranks.items() if rank.number == most]
        lines = []
        if late:
            first = ranks[late[0]]
            lines.append(
                f"rank {late[0]} is behind by {most - first.number:,} collectives: it "
                f"waited in {first.call} (number {first.number:,}), "
                f"{_words(ahead)} in {ranks[ahead[0]].call} (number {most:,})"
            )
        else:
            lines.append(
                f"{_words(ahead)} timed out in the same collective, "
                f"{ranks[ahead[0]].call} (number {most:,}): none of them is behind"
            )
        lines += [f"    {ranks[n].where}" for n in (late[:1] or ahead[:1])]
        lines += ["", *self._silent(ranks, late), "", "What each rank wrote:"]
        for number, rank in sorted(ranks.items()):
            more = rank.enqueued - rank.number
            queued = f", {more} more enqueued" if more > 0 else ""
            lines.append(
                f"    rank {number}: {rank.call}, number {rank.number:,}, for "
                f"{rank.ran_s:.0f} s{queued}"
            )
        if len(self.groups) > 1:
            others = ", ".join(sorted(each for each in self.groups if each != group))
            lines.append(f"    (of group {group}; also in the log: {others})")
        return "\n".join([*lines, "", _NEXT_TIME])

    def _silent(self, ranks, late):
        """Return a sentence on its certainty: silent ranks may be the cause."""
        missing = sorted(set(range(max(ranks) + 1)) - set(ranks))
        if missing:
            verb = "ranks" if len(missing) > 1 else "rank"
            shown = ", ".join(map(str, missing[:12])) + ", …" * (len(missing) > 12)
            return [
                f"A suspect, not a proof: {verb} {shown} wrote nothing, and may be "
                "what the others wait for."
            ]
        known = "may have skipped a collective or be stuck before one"
        unknown = "a rank beyond these, or a host that computes, may be missing"
        return [
            f"A suspect, not a proof: it {known}." if late else f"Not sure: {unknown}."
        ]


def has_watchdog(path: Path) -> bool:
    """Return True if a file is text with lines of the watchdog's time-outs."""
    with path.open("rb") as file:
        return any(b"WorkNCCL(SeqNum=" in line for line in file)


def read_logs(paths: Sequence[Path]) -> WatchdogLog:
    """Return the lines of all ranks' watchdogs in some logs, read.

    Raises: InvalidArgument if there is no line of it.
    """
    groups = defaultdict(lambda: defaultdict(_WatchdogRank))
    for path in paths:
        text = path.read_text("utf-8", errors="replace")
        for at, line in enumerate(text.splitlines(), 1):
            _take(groups, _COLOR.sub("", line), f"{path.name}, line {at}")
    groups = {
        group: {number: rank for number, rank in ranks.items() if rank.number >= 0}
        for group, ranks in groups.items()
    }
    groups = {group: ranks for group, ranks in groups.items() if ranks}
    if not groups:
        names = ", ".join(path.name for path in paths[:3])
        raise InvalidArgument(
            f"{names}: no dump of the flight recorder, and no line of NCCL's watchdog, "
            "such as 'Watchdog caught collective operation timeout: WorkNCCL(...)'."
        )
    return WatchdogLog(groups)


def _take(groups, line, where):
    if found := _TIMEOUT.search(line):
        rank = groups[f"PG {found['pg'] or 0}"][int(found["rank"])]
        if rank.number < 0:  # the first time-out is the cause of the later ones
            rank.number, rank.where = int(found["number"]), where
            name = _NAMES.get(found["op"], found["op"].lower())
            elements = found["elements"]
            rank.call = (
                f"{name}({int(elements):,} elements)" if elements else f"{name}()"
            )
            rank.ran_s = int(found["ran"]) / 1000
    elif found := _STATUS.search(line):
        rank = groups[f"PG {found['pg']}"][int(found["rank"])]
        rank.enqueued = max(rank.enqueued, int(found["enqueued"]))


def _words(ranks):
    shown = ", ".join(map(str, ranks[:8])) + ", …" * (len(ranks) > 8)
    return f"rank{'s' * (len(ranks) > 1)} {shown}"
