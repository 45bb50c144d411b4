"""The diagnosis as text: the fault, its place, the calls of all ranks, advice."""

import textwrap
from collections import defaultdict
from datetime import UTC, datetime

from distlab.calls.failure_location import source_lines, whereabouts
from distlab.diagnosis.flight.dumps import DumpsGraph
from distlab.diagnosis.graph import Fault
from distlab.diagnosis.verdict import verdict
from distlab.diagnosis.words import agreeing, ranks_in_words

__all__ = ["doing", "first_line", "tell"]

_SHOWN = 12  # as many sets of ranks as leave the verdict on one screen


def tell(job: DumpsGraph, faults: list[Fault], notes: list[str]) -> str:
    """Return the whole explanation; notes: the gaps of the dumps."""
    first = faults[0] if faults else None
    lines = [first_line(job, first), "", *(_place(job, first) if first else [])]
    lines += ["  What each rank was doing:", *_doings(job, first), ""]
    if first:
        lines += ["  What to do:", *_wrapped(_advice(job, first)), ""]
    if faults[1:]:
        more = [f"    {first_line(job, fault)}" for fault in faults[1:_SHOWN]]
        lines += ["  Also:", *more, ""]
    if notes:
        lines += ["  What the dumps do not tell:"]
        lines += [line for note in notes for line in _wrapped(note)]
    text = "\n".join(lines).rstrip()
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def first_line(job: DumpsGraph, fault: Fault | None) -> str:
    """Return the fault in one line."""
    if not job.groups:
        return "no rank has recorded a call, so nothing can be told"
    if fault is None:
        return "no rank is behind: as far as the dumps tell, nothing hangs"
    return "deadlock: " * (fault.kind == "deadlock") + verdict(job, fault)


def _place(job, fault):
    """Return lines with the call's place in the code, on each side, and its start."""
    if fault.kind == "deadlock":
        return []
    if fault.kind == "disagree":
        sides = [r for _, r in job.sides(fault.group, fault.number)[:_SHOWN]]
        stacks = [job.entries(fault.group, r[0])[fault.number].stack for r in sides]
        pairs = zip(sides, map(whereabouts, stacks), strict=True)
        return [*(f"    {ranks_in_words(r)}{place}" for r, place in pairs if place), ""]
    first = min(fault.inside, key=lambda rank: job.waiting[rank].since_ns)
    at = datetime.fromtimestamp(job.waiting[first].since_ns / 1e9, UTC)
    begun = f"begun first by rank {first}, at {at:%Y-%m-%d %H:%M:%S} UTC"
    lines = source_lines(reversed(job.waiting[first].entry.stack[:3]))
    lines += [f"    It is {_numbered(job, job.waiting[first])}, {begun}."]
    for rank in fault.ranks if fault.kind == "missing" else ():
        if parted := job.parting(fault.group, rank, first):
            here, there = (job.entries(fault.group, r)[parted] for r in (rank, first))
            lines += [
                f"    Collective {parted} they called from different lines:",
                f"        rank {rank}{whereabouts(here.stack)}",
                f"        rank {first}{whereabouts(there.stack)}",
            ]
            break
    return [*lines, ""]


def _doings(job, fault):
    """Return a line for each set of ranks that did the same."""
    together = defaultdict(list)
    for rank in job.everyone:
        together[doing(job, rank)].append(rank)
    blamed = set(fault.ranks if fault else ())
    sets = sorted(together.items(), key=lambda each: blamed.isdisjoint(each[1]))
    lines = [f"    {ranks_in_words(r)} {agreeing(words, r)}" for words, r in sets]
    left = sum(len(ranks) for _, ranks in sets[_SHOWN:])
    more = f"    and {left} more ranks, in {len(sets) - _SHOWN} more ways"
    return lines[:_SHOWN] + ([more] if left else [])


def doing(job: DumpsGraph, rank: int) -> str:
    """Return the activity of `rank` in words, with {wait} or {have} as its verb."""
    if rank not in job.dumps:
        return job.untold([rank])
    at = job.waiting.get(rank)
    last = at or job.dumps[rank].last
    if last is None:
        return "{have} called nothing"
    where = f"{last.entry.call}, {_numbered(job, last)}"
    place = whereabouts(last.entry.stack).replace(", ", "\n        ", 1)
    if at is None:
        return f"{{have}} finished {where}, and called nothing since{place}"
    dump = job.dumps[rank]
    queued = last.entry.state == "scheduled" and not (dump.gloo or dump.torchcomms)
    queued = ", which has not started on its device" if queued else ""
    whom = f", for {ranks_in_words(job.lacking[rank])}" if job.lacking[rank] else ""
    return f"{{wait}} in {where}{queued}{whom}{place}"


def _numbered(job, at):
    kind = "call" if at.peers else "collective"
    return f"{kind} {at.number}{job.among(at.group)}"


def _advice(job, fault):
    if fault.kind == "deadlock":
        return "Let all ranks call the collectives of these groups in one order."
    if fault.kind == "disagree":
        sides = job.sides(fault.group, fault.number)
        calls = [call.partition("(") for call, _ in sides]
        same = len({name for name, *_ in calls}) == 1
        types = len({rest.partition("[")[0] for *_, rest in calls}) > 1
        what = ("type" if types else "shape") if same else "call"
        return (
            f"The {what} differs.{_shift(job, fault)} Look for a branch that not all "
            "ranks take, or for data whose size differs. Every rank must call the same "
            "collectives, in the same order, with the same shape and type."
        )
    if fault.kind == "stalled":
        return (
            "The calls fit together: look at the hosts, devices and links (the kernel's"
            " log, NCCL_DEBUG=INFO). If the job was not stuck, this is work in flight."
        )
    who = ranks_in_words(fault.ranks)
    if not set(fault.ranks) <= job.dumps.keys():
        if job.cut.issuperset(fault.ranks):
            return (
                f"Look for a whole dump of {who}: was the disk full, or the job killed?"
            )
        return f"Read the output of {who}: what is killed or crashes leaves no dump."
    return (
        f"Look at what {who} ran after its last call: a branch that skips one, a batch "
        "less, an early return, an exception that was caught, or long work. A dump "
        "can't tell these apart; `py-spy dump --pid PID` on that host can."
    )


def _shift(job, fault):
    """Return a sentence if the odd call is the others' next or previous one, or ""."""
    (_, odd), *_, (_, most) = job.sides(fault.group, fault.number)
    ours, theirs = (job.entries(fault.group, ranks[0]) for ranks in (odd, most))
    here, after = fault.number, fault.number + 1
    skipped = after in theirs and ours[here].call == theirs[after].call
    early = after in ours and ours[after].call == theirs[here].call
    did = {(1, 1): "called two in the other order", (0, 1): "made one call more"}
    did = (did | {(1, 0): f"skipped {theirs[here].call}"}).get((skipped, early))
    return f" By what follows, {ranks_in_words(odd)} {did}." if did else ""


def _wrapped(text):
    return textwrap.wrap(text, 88, initial_indent="    ", subsequent_indent="    ")
