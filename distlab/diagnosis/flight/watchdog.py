"""NCCL's watchdog in logs: the rank that is behind, by how much, and how sure that is.

    [rank1]:[E604 ...] [Rank 1] Watchdog caught collective operation timeout:
        WorkNCCL(SeqNum=397, OpType=BROADCAST, NumelIn=1024, ...) ran for 600044 ms ...
    [rank1]:[E604 ...] [PG ID 0 PG GUID 0(default_pg) Rank 1] ... detected by watchdog
        at work: 397, last enqueued NCCL work: 397, last completed NCCL work: 396.

A log names a suspect and is no proof: a rank that wrote nothing may be the cause.

Source: the messages of ProcessGroupNCCL.cpp, PyTorch 1.10 to 2.11, from public reports.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from distlab.diagnosis.graph import WaitForGraph
from distlab.diagnosis.verdict import verdict
from distlab.diagnosis.words import ranks_in_words
from distlab.errors import InvalidArgument

__all__ = ["LogsGraph", "has_watchdog", "read_logs"]

_NEEDED = re.compile(rb"WorkNCCL\(|last enqueued|Error: |exitcode: -")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX = re.compile(r"\[rank(\d+)\]:")  # torch's, with the rank of the world
_TIMEOUT = re.compile(
    r"(?:\[PG (?:ID )?(?P<id>\d+)(?: PG GUID (?P<guid>\d+))?(?:\((?P<name>\w+)\))?)?"
    r"[^\[\]]*\[?Rank (?P<rank>\d+)\]\s*Watchdog caught collective operation timeout:"
    r" WorkNCCL\((?P<work>.*?)\) ran for (?P<ran>\d+)"
)
_STATUS = re.compile(
    r"\[PG (?:ID )?(?P<id>\d+)(?: PG GUID (?P<guid>\d+))?(?:\((?P<name>\w+)\))? "
    r"Rank (?P<rank>\d+)\][^\[\]]*?work(?: sequence id)?: (?P<at>\d+)[^\[\]]*?"
    r"last enqueued(?: NCCL)? work: (?P<enqueued>-?\d+)"
)
_WORK = re.compile(r"(SeqNum|OpType|NumelIn)=(\w+)")
_RAISED = re.compile(r"\[rank(\d+)\]:\s*((?:\w+\.)*\w*Error: .+)")
_KILLED = re.compile(r"exitcode: (-\d+)\).*?local_rank: (\d+)")
_ECHOES = ("DistBackendError", "DistStoreError", "DistNetworkError")
_OWN_SIZES = re.compile("ALLTOALL|GATHER$|SCATTER$|COALESCED|BARRIER")
_NAMES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "BROADCAST": "broadcast",
}
_NAMES |= {"_ALLGATHER_BASE": "all_gather_into_tensor", "ALLTOALL": "all_to_all"}
_NAMES |= {"_REDUCE_SCATTER_BASE": "reduce_scatter_tensor", "BARRIER": "barrier"}
_NAMES |= {"ALLTOALL_BASE": "all_to_all_single", "REDUCE_SCATTER": "reduce_scatter"}
_NEXT_TIME = (
    "To have dumps next time, which name lines of code and prove it, set\n"
    "    TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
    "TORCH_FR_DUMP_TEMP_FILE=/shared/dumps/rank_"
)


@dataclass
class _LoggedCall:
    """What a rank's watchdog wrote of its first call in a group that timed out.

    peers: of a send or receive, whose other side no log names, not ().
    """

    group: str
    number: int
    call: str = "a collective"
    peers: tuple = ()
    ran_s: float = 0.0
    enqueued: int = -1
    where: str = ""


class LogsGraph(WaitForGraph):
    """The wait-for graph of a job, as far as the lines of its watchdogs tell it.

    errors: rank -> (what it raised or was killed by before any time-out, its line).
    """

    def __init__(
        self, calls: dict[int, list[_LoggedCall]], errors: dict[int, tuple[str, str]]
    ):
        self.errors = errors
        self.groups = sorted({at.group for each in calls.values() for at in each})
        self._by_group = defaultdict(dict)
        for rank, each in sorted(calls.items()):
            for at in each:
                self._by_group[at.group].setdefault(rank, at)
        self.everyone = range(max([*calls, *errors], default=-1) + 1)
        self.waiting = {rank: each[0] for rank, each in sorted(calls.items())}
        self.silent = set(self.everyone) - set(calls) - set(errors)
        self.lacking = {rank: self._lacks(at) for rank, at in self.waiting.items()}

    def _lacks(self, at):
        behind = set() if at.peers else self.missing(at.group, at.number)
        uneven = len(self.numbers(at.group)) > 1
        return behind or (set() if uneven else self.silent | set(self.errors))

    def members(self, group):
        """Return the ranks that wrote of a group."""
        return tuple(self._by_group[group])

    def numbers(self, group):
        """Return the numbers of the collectives that timed out."""
        return sorted({at.number for at in self._by_group[group].values()})

    def sides(self, group, number):
        """Return (call, ranks that timed out in it), fewest first."""
        made: dict[str, list[int]] = {}
        for rank, at in self._by_group[group].items():
            if at.number == number and not at.peers:
                made.setdefault(at.call, []).append(rank)
        made = {each: made[each] for each in made if each != "a collective"} or made
        return sorted(made.items(), key=lambda item: len(item[1]))

    def missing(self, group, number):
        """Return the ranks that timed out in an earlier collective of the group."""
        return {r for r, at in self._by_group[group].items() if at.number < number}

    def among(self, group):
        """Return the name of a group, "" for the default group."""
        return "" if group.startswith("0") else f" of group {group}"

    def untold(self, ranks):
        """Return the reason why the calls of ranks are not known, or ""."""
        return "wrote nothing" if self.silent.issuperset(ranks) else ""

    def left(self, ranks):
        """Return the way in which ranks ended, "" if they only timed out."""
        return "had failed" if ranks and set(ranks) <= self.errors.keys() else ""

    @property
    def found(self) -> bool:
        """Whether there is anything to explain."""
        return bool(self.waiting or self.errors)

    def __str__(self):
        faults = self.faults()
        messages = [rank for rank, at in self.waiting.items() if at.peers]
        sure = self._certainty()
        if self.errors:
            rank = next(iter(self.errors))  # the first in the log
            said, where = self.errors[rank]
            lines = [f"rank {rank} {said}, before any time-out", f"    {where}"]
            sure = "The time-outs of the others follow from it, or from what caused it."
        elif faults and faults[0].ranks[0] not in messages:
            lines = [verdict(self, faults[0]), *self._places(faults[0])]
        else:
            lines = [
                f"{ranks_in_words(messages)} timed out in sends or receives, whose "
                "other side a log does not name"
            ]
        lines += [f"    {sure}", "", "What each rank wrote first:"]
        for rank, at in sorted(self.waiting.items()):
            queued = at.enqueued - at.number
            more = f", {queued} more enqueued" if queued > 0 else ""
            ran = f", for {at.ran_s:.0f} s" if at.ran_s else ""
            call = f"{at.call}, number {at.number:,}{self.among(at.group)}"
            lines.append(f"    rank {rank}: {call}{ran}{more}")
        return "\n".join([*lines, "", _NEXT_TIME])

    def _places(self, fault):
        """Return the lines of the log that say so: of the blamed rank, and another."""
        ranks = [*fault.ranks, *fault.inside, *self.waiting]
        places = [self.waiting[r].where for r in ranks if r in self.waiting]
        return [f"    {', and '.join(list(dict.fromkeys(places))[:2])}"]

    def _certainty(self):
        """Return a sentence on how sure that is."""
        if self.silent:
            who = ranks_in_words(self.silent)
            return f"A suspect, not a proof: {who} wrote nothing, and may be the cause."
        if any(self.lacking.values()):
            return (
                "A suspect, not a proof: it may have skipped a collective, or be stuck "
                "before one."
            )
        return (
            "Not sure: a rank beyond these may be missing, or a host compute, or a "
            "link fail."
        )


def has_watchdog(path: Path) -> bool:
    """Return True if a file is text with lines of the watchdog's time-outs."""
    with path.open("rb") as file:
        return any(b"WorkNCCL(" in line or b"last enqueued" in line for line in file)


def read_logs(logs: Sequence[tuple[str, Iterable[bytes]]]) -> LogsGraph:
    """Return the calls that NCCL's watchdogs wrote in some logs, (name, lines) of each.

    Raises: InvalidArgument if there is no line of it.
    """
    calls, states, errors = [], [], {}
    for name, lines in logs:
        for at, line in enumerate(lines, 1):
            if _NEEDED.search(line):
                text = _COLOR.sub("", line.decode("utf-8", errors="replace"))
                where = f"{name}, line {at}"
                _take(text, where, calls, states, {} if calls else errors)
    if not calls and not states:
        names = ", ".join(name for name, _ in logs[:3])
        raise InvalidArgument(
            f"{names}: no dump of the flight recorder, and no line of NCCL's watchdog, "
            "such as 'Watchdog caught collective operation timeout: WorkNCCL(...)'."
        )
    return LogsGraph(_by_rank(calls, states), errors)


def _take(text, where, calls, states, errors):
    """Take all messages of a line, which may be several, from their ranks."""
    for found in _TIMEOUT.finditer(text):
        work = dict(_WORK.findall(found["work"]))
        op, size = work.get("OpType", "?"), work.get("NumelIn")
        size = "" if size is None or _OWN_SIZES.search(op) else _elements(int(size))
        peers = ("?",) if op in ("SEND", "RECV") else ()
        call = f"{_NAMES.get(op, op.lower())}({size})"
        number, ran_s = int(work.get("SeqNum", 0)), int(found["ran"]) / 1000
        made = _LoggedCall(_group(found), number, call, peers, ran_s, where=where)
        calls.append((_rank(text, found), made))
    for found in _STATUS.finditer(text):
        made = _LoggedCall(_group(found), int(found["at"]), where=where)
        made.enqueued = int(found["enqueued"])
        states.append((_rank(text, found), made))
    if (raised := _RAISED.search(text)) and not any(e in raised[2] for e in _ECHOES):
        errors.setdefault(int(raised[1]), (f"raised {raised[2].strip()[:120]}", where))
    if killed := _KILLED.search(text):
        errors.setdefault(
            int(killed[2]), (f"was killed by signal {killed[1][1:]}", where)
        )


def _elements(count):
    return f"{count:,} element{'s' * (count != 1)}"


def _group(found):
    """Return the name of a group, by its number among all groups if it is given."""
    number = found["guid"] or found["id"]
    return f"{number} ({found['name']})" if found["name"] else number


def _rank(text, found):
    """Return the rank in the world, from torch's prefix, else that in the group."""
    before = _PREFIX.findall(text, 0, found.start("rank"))
    return int(before[-1] if before else found["rank"])


def _by_rank(calls, states):
    """Return rank -> its calls, with the groups that the lines after them name."""
    of_rank = defaultdict(dict)
    for rank, made in calls:
        known = [s for r, s in states if r == rank and s.number == made.number]
        if made.group is None and known:
            made.group = known[0].group
        elif made.group is None:
            groups = {state.group for _, state in states}
            made.group = groups.pop() if len(groups) == 1 else "0"
        first = of_rank[rank].setdefault(made.group, made)
        if made.number < first.number:  # the first that was called is the cause
            of_rank[rank][made.group] = made
    for rank, state in states:
        made = of_rank[rank].setdefault(state.group, state)
        made.enqueued = max(made.enqueued, state.enqueued)
    return {rank: list(each.values()) for rank, each in of_rank.items()}
