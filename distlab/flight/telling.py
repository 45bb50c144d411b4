"""The diagnosis as text: the fault, its place, the calls of all ranks, advice."""

import textwrap
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise

from distlab.calls.failure_location import source_lines, whereabouts
from distlab.flight.matching import Fault, RankDumps
from distlab.flight.reading import DEFAULT, Group

__all__ = ["described", "doing", "ranks_in_words", "tell", "verdict"]

_SHOWN = 12  # as many sets of ranks as leave the verdict on one screen


def tell(job: RankDumps, faults: list[Fault], notes: list[str]) -> str:
    """Return the whole explanation; notes: the gaps of the dumps."""
    first = faults[0] if faults else None
    lines = [verdict(job, first), "", *(_place(job, first) if first else [])]
    lines += ["  What each rank was doing:", *_doings(job, first), ""]
    if first:
        lines += ["  What to do:", *_wrapped(_advice(job, first)), ""]
    if faults[1:]:
        more = [f"    {verdict(job, fault)}" for fault in faults[1:_SHOWN]]
        lines += ["  Also:", *more, ""]
    if notes:
        lines += ["  What the dumps do not tell:"]
        lines += [line for note in notes for line in _wrapped(note)]
    text = "\n".join(lines).rstrip()
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def verdict(job: RankDumps, fault: Fault | None) -> str:
    """Return a one-line description of the fault."""
    if not job.groups:
        return "no rank has recorded a call, so nothing can be told"
    if fault is None:
        return "no rank is behind: as far as the dumps tell, nothing hangs"
    who, where = ranks_in_words(fault.ranks), described(job, fault.group)
    if fault.kind == "disagree":
        sides = job.calls(fault.group, fault.number).items()
        said = [f"{ranks_in_words(ranks)} called {call}" for call, ranks in sides]
        said = [*said[:6], f"and {len(said) - 6} more calls"] if said[6:] else said
        heading = f"ranks disagree about collective {fault.number} of {where}"
        return f"{heading}: {', '.join(said)}"
    at = job.waiting[fault.inside[0]]
    if fault.kind == "deadlock":
        steps = [
            f"waits in {job.waiting[rank].entry.call} of "
            f"{described(job, job.waiting[rank].group)} for rank {after}"
            for rank, after in zip(
                fault.ranks, [*fault.ranks[1:], fault.ranks[0]], strict=True
            )
        ]
        rest = f", and so on, back to rank {fault.ranks[0]}" if steps[4:] else ""
        return f"deadlock: rank {fault.ranks[0]} {', which '.join(steps[:4])}{rest}"
    if fault.kind == "stalled" and not at.peers:
        return f"all ranks of {where} called {at.entry.call}, and {who} did not end it"
    call = f"{at.entry.call} of {where}"
    waits = f"{ranks_in_words(fault.inside)} {_agreeing('{waits}', fault.inside)} in"
    if fault.kind == "stalled":
        return f"{waits} {call}, which the other side has called, and it does not end"
    alive = [rank for rank in fault.ranks if rank in job.dumps]
    dead = [rank for rank in fault.ranks if rank not in job.dumps]
    left = f"{ranks_in_words(dead)} left {_no_dump(job, dead)}" if dead else ""
    if not alive:
        return f"{left}, and {waits} {call}"
    call = f"the other side of {call}" if at.peers else call
    left = left and f"; {left}"
    return f"{ranks_in_words(alive)} never called {call}, which {waits}{left}"


def _place(job, fault):
    """Return lines with the call's place in the code, on each side, and its start."""
    if fault.kind == "deadlock":
        return []
    if fault.kind == "disagree":
        sides = list(job.calls(fault.group, fault.number).values())[:_SHOWN]
        stacks = [job.entries(fault.group, r[0])[fault.number].stack for r in sides]
        pairs = zip(sides, map(whereabouts, stacks), strict=True)
        return [*(f"    {ranks_in_words(r)}{place}" for r, place in pairs if place), ""]
    first = min(fault.inside, key=lambda rank: job.waiting[rank].since_ns)
    at = datetime.fromtimestamp(job.waiting[first].since_ns / 1e9, UTC)
    lines = [f"    It is {_numbered(job, job.waiting[first])},"]
    lines += [f"    begun first by rank {first}, at {at:%Y-%m-%d %H:%M:%S} UTC."]
    lines += source_lines(reversed(job.waiting[first].entry.stack[:3]))
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
    lines = [f"    {ranks_in_words(r)} {_agreeing(words, r)}" for words, r in sets]
    left = sum(len(ranks) for _, ranks in sets[_SHOWN:])
    more = f"    and {left} more ranks, in {len(sets) - _SHOWN} more ways"
    return lines[:_SHOWN] + ([more] if left else [])


def _no_dump(job, ranks):
    whole = "a dump that is cut off" if job.cut.issuperset(ranks) else "no dump"
    return (
        "no whole dump" if job.cut.intersection(ranks) and whole == "no dump" else whole
    )


def doing(job: RankDumps, rank: int) -> str:
    """Return the activity of `rank` in words, with {waits} or {has} as its verb."""
    if rank not in job.dumps:
        return f"left {_no_dump(job, [rank])}"
    at = job.waiting.get(rank)
    last = at or job.dumps[rank].last
    if last is None:
        return "{has} called nothing"
    where = f"{last.entry.call}, {_numbered(job, last)}"
    place = whereabouts(last.entry.stack).replace(", ", "\n        ", 1)
    if at is None:
        return f"{{has}} finished {where}, and called nothing since{place}"
    queued = last.entry.state == "scheduled" and not job.dumps[rank].gloo
    queued = ", which has not started on its device" if queued else ""
    whom = f", for {ranks_in_words(job.lacking[rank])}" if job.lacking[rank] else ""
    return f"{{waits}} in {where}{queued}{whom}{place}"


def _numbered(job, at):
    kind = "call" if at.peers else "collective"
    return f"{kind} {at.number} of {described(job, at.group)}"


def _agreeing(words, ranks):
    one = len(ranks) == 1
    waits, has = ("waits", "has") if one else ("wait", "have")
    return words.replace("{waits}", waits).replace("{has}", has)


def _advice(job, fault):
    if fault.kind == "deadlock":
        return "Let all ranks call the collectives of these groups in one order."
    if fault.kind == "disagree":
        calls = [call.partition("(") for call in job.calls(fault.group, fault.number)]
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
    odd, *_, most = job.calls(fault.group, fault.number).values()
    ours, theirs = (job.entries(fault.group, ranks[0]) for ranks in (odd, most))
    here, after = fault.number, fault.number + 1
    skipped = after in theirs and ours[here].call == theirs[after].call
    early = after in ours and ours[after].call == theirs[here].call
    did = {(1, 1): "called two in the other order", (0, 1): "made one call more"}
    did = (did | {(1, 0): f"skipped {theirs[here].call}"}).get((skipped, early))
    return f" By what follows, {ranks_in_words(odd)} {did}." if did else ""


def _wrapped(text):
    return textwrap.wrap(text, 88, initial_indent="    ", subsequent_indent="    ")


def described(job: RankDumps, group: Group) -> str:
    """Return the name of a group, with its members."""
    if group.description == DEFAULT:
        return "the default group"
    named = group.description not in ("", "undefined")
    name = f"{group.name} ({group.description})" if named else group.name
    return f"group {name} [{', '.join(_runs(job.members(group)))}]"


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Return "rank 2", "ranks 0, 1 and 3" or "ranks 0 to 511 and 513 to 1023"."""
    *first, last = _runs(ranks)
    noun = "rank" if not first and last.isdecimal() else "ranks"
    return f"{noun} {', '.join(first)} and {last}" if first else f"{noun} {last}"


def _runs(ranks):
    """Return the ranks as words; runs of four or more, or even steps, become one."""
    ranks, runs = sorted(ranks), []
    steps = {after - before for before, after in pairwise(ranks)}
    if len(ranks) > 4 and len(steps) == 1 and steps != {1}:
        return [f"{ranks[0]}, {ranks[1]}, … {ranks[-1]}"]
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    words: list[str] = []
    for run in runs:
        words += [f"{run[0]} to {run[-1]}"] if len(run) > 3 else map(str, run)
    return [*words[:9], f"{len(words) - 9} more"] if len(words) > 10 else words
