"""Text alternatives of pictures: the counts that they draw, in sentences."""

from collections import defaultdict

from distlab.show.canvas.text import literal
from distlab.units import readable_bytes, readable_seconds

__all__ = ["capital", "clocks", "headline", "left_out", "listed", "plural", "sentences"]


def headline(reading) -> str:
    """Return ranks, messages, bytes, rounds and duration in one line."""
    count, trace = sum(reading.sent.values()), reading.trace
    ranks = plural(trace.world_size, "rank")
    duration_s = trace.duration_s()
    lasted = f", {readable_seconds(duration_s)}" if duration_s else ""
    if not count:
        calls = sum(event.kind == "collective" for event in trace.events)
        said = plural(calls, "collective call") if calls else "no messages were sent"
        return f"{ranks}, {said}{lasted}"
    moved = readable_bytes(sum(reading.sent_bytes.values()))
    rounds = plural(reading.rounds, "round")
    return f"{ranks}, {plural(count, 'message')}, {moved} sent in {rounds}{lasted}"


def sentences(reading) -> list[str]:
    """Return sentences on bytes sent, waiting, unfinished calls and injected faults."""
    said, waited_s, stuck = [], reading.waited_s, reading.stuck
    if reading.sent:
        said.append(f"Bytes sent: {_amounts(reading)}.")
    if waited_s:
        longest = max(waited_s, key=waited_s.get)
        lasted = readable_seconds(waited_s[longest])
        said.append(f"Rank {longest} waited longest for its peers, {lasted}.")
    if stuck:
        where = [f"rank {rank} in {listed(stuck[rank], 3)}" for rank in sorted(stuck)]
        said.append(f"Never ended: {listed(where, 8, '; ')}.")
    faults = [event for event in reading.trace.events if event.kind == "fault"]
    if faults:
        said.append(f"Faults: {listed(map(_happened, faults), 8)}.")
    return said


def capital(words: str) -> str:
    """Return words with their first letter as a capital."""
    return words[:1].upper() + words[1:]


def plural(count: int, noun: str) -> str:
    """Return "1 rank" or "4 ranks"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def left_out(noun: str, first: int, last: int) -> str:
    """Return a sentence on the things that a picture does not show."""
    if first == last:
        return f"{noun.capitalize()} {first} is left out."
    return f"{noun.capitalize()}s {first} to {last} are left out."


def clocks(trace) -> list[str]:
    """Return a sentence on the clocks of a run on several nodes, else none."""
    if not trace.clock_error_s:
        return []
    error = readable_seconds(trace.clock_error_s)
    return [f"Clocks of different nodes agree within {error}."]


def listed(things, limit: int, between: str = ", ") -> str:
    """Return the first `limit` of `things`, and the number of the others."""
    words = [str(thing) for thing in things]
    more = [f"and {len(words) - limit} more"] if len(words) > limit else []
    return between.join([*words[:limit], *more])


def _amounts(reading):
    """Return the bytes that each rank sent, ranks that sent the same together."""
    senders = defaultdict(list)
    for rank in range(reading.trace.world_size):
        senders[reading.sent_bytes[rank]].append(rank)
    if len(senders) == 1:
        return f"{readable_bytes(*senders)} by each rank"
    if len(senders) <= 8:
        return ", ".join(
            f"{readable_bytes(count)} by {_ranks(ranks)}"
            for count, ranks in senders.items()
        )
    ends = [
        f"{readable_bytes(count)} by {_ranks(senders[count])}"
        for count in (min(senders), max(senders))
    ]
    return "from {} to {}".format(*ends)


def _ranks(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(ranks, 8)}"


def _happened(fault):
    when = readable_seconds(fault.start)
    return f"{literal(fault.label, 40)} on rank {fault.rank} at {when}"
