"""Sentences on a step of a run, derived from the tables of chunks before and after.

Nothing here knows an algorithm: a wrong one is described as truly as a right one.
"""

from collections import Counter

from distlab.show.canvas.text import literal
from distlab.show.player.shown_steps import gone_ranks
from distlab.show.reading.alt_text import capital, listed, plural
from distlab.trace import members_of, mesh_dimension_of
from distlab.units import readable_bytes, readable_seconds

__all__ = ["explain", "fault_words", "title_of"]

_LISTED = 4
_VERBS = {
    "kill": "was killed",
    "hang": "hangs",
    "died": "died",
    "crash": "crashes",
    "restart": "starts again",
    "corrupt": "sends one bit wrong",
    "suspected": "is suspected and killed",
}


def title_of(stop, rounds: int) -> str:
    """Return the algorithm's own label of a step, or its number."""
    words = ", ".join(word for word in (stop.phase, stop.step) if word)
    if not words:
        first, last = stop.rounds
        span = f"Round {first}" if first == last else f"Rounds {first} to {last}"
        return f"{span} of {rounds}"
    return capital(words)


def explain(stop, before: dict, reading) -> str:
    """Return sentences on the step `stop`; `before` is the table before it."""
    world_size = reading.trace.world_size
    if stop.meeting:
        return _meeting(stop, world_size)
    chunks = {chunk for _, chunk in before}
    whole = chunks == {0}
    said = [_who_sends(stop, world_size, whole)] if stop.moves else []
    if stop.broken:
        said = _ending(reading)
    if before:
        after = before | stop.tables
        said += _what_becomes(stop, before, after)
        said += _mistakes(stop, before, after, whole)
        complete = {chunk: reading.trace.shares.complete(chunk) for chunk in chunks}
        said += _progress(stop, before, after, complete)
    return " ".join(said)


def _meeting(stop, world_size):
    everyone = len(stop.ranks) == world_size
    who = "All ranks" if everyone else f"Ranks {listed(stop.ranks, 8)}"
    among = _among(stop.groups, world_size)
    if stop.meeting == "barrier":
        return f"{who} wait until the last of them is there{among}."
    return f"{who} call {stop.meeting}{among}; what it sends inside is not recorded."


def _among(groups, world_size):
    """Return words for the groups of a step, "" for the world."""
    groups = [group for group in groups if group]
    if not groups:
        return ""
    dimensions = {mesh_dimension_of(group) for group in groups}
    if len(dimensions) == 1 and dimensions != {""}:
        return f" along {dimensions.pop()}"
    if len(groups) == 1:
        return f" among ranks {listed(members_of(groups[0], world_size), 8)}"
    return f" in {len(groups)} groups"


def _who_sends(stop, n, whole):
    moves = [move for move in stop.moves if move.fate != "dropped"]
    dropped = [move for move in stop.moves if move.fate == "dropped"]
    count = sum(move.count for move in dropped)
    lost = [f"{plural(count, 'message')} dropped on the way."] if dropped else []
    if not moves:
        return " ".join(lost)
    sizes = {move.bytes for move in moves}
    each = readable_bytes(sizes.pop()) if len(sizes) == 1 else ""
    count = sum(move.count for move in moves)
    chunks = {len(move.chunks) for move in moves}
    what = "one chunk" if chunks == {1} and not whole else "one message"
    if count > len(moves):
        what = f"{count // len(moves)} messages" if count % len(moves) == 0 else "some"
    node_steps = {(move.dst - move.src) % n for move in moves}
    everyone = len({move.src for move in moves}) == len(moves) == n > 2
    if everyone and node_steps in ({1}, {n - 1}):
        on, first, last = ("+", n - 1, 0) if node_steps == {1} else ("-", 0, n - 1)
        size = f", {each}," if each else ""
        said = f"Every rank r sends {what}{size} to rank r {on} 1 ({first} to {last})."
    elif len(moves) <= _LISTED:
        said = capital("; ".join(_described(move, whole) for move in moves) + ".")
    else:
        total = readable_bytes(sum(move.bytes for move in moves))
        size = f" of {each}" if each and count == len(moves) else f", {total} in all"
        said = f"{plural(count, 'message')}{size}."
    among = _among(stop.groups, n).strip()
    if among:
        said = f"{capital(among)}: {said[0].lower()}{said[1:]}"
    return " ".join([said, *lost])


def _described(move, whole):
    size = readable_bytes(move.bytes)
    if move.count > 1:
        size = f"{move.count} messages, {size}"
    elif len(move.chunks) == 1 and not whole:
        size = f"chunk {move.chunks[0]}, {size}"
    return f"rank {move.src} sends {size} to rank {move.dst}"


def _what_becomes(stop, before, after):
    """Return a sentence: arrived data was added, replaced old data, or neither."""
    became, elsewhere = Counter(), ""
    for move in stop.moves:
        changed = [chunk for rank, chunk in stop.tables if rank == move.dst]
        for chunk, carried in zip(move.chunks, move.counts, strict=True):
            old = before.get((move.dst, chunk))
            fate = _fate(old, carried, after.get((move.dst, chunk)))
            if fate == "unused" and changed:
                fate = "other"
                elsewhere = elsewhere or (
                    f"Chunk {chunk} arrives on rank {move.dst}, and chunk "
                    f"{changed[0]} changes there."
                )
            became[fate] += 1
    if elsewhere:
        return [elsewhere]
    words = {
        "added": "is added to what is there",
        "replaced": "replaces what was there",
        "filled": "fills what was empty",
        "unused": "has not yet changed the receiver's tensor",
    }
    described = [words[fate] for fate in words if became[fate]]
    if not described:
        return []
    if len(described) == 1 and not became["other"]:
        return [f"What arrives {described[0]}."]
    counts = [f"{became[fate]} {fate}" for fate in words if became[fate]]
    return [f"Of what arrives: {', '.join(counts)}."]


def _fate(old, carried, new):
    if None in (old, carried, new):
        return "other"
    total = tuple(a + b for a, b in zip(old, carried, strict=True))
    if new == total and any(old) and any(carried):
        return "added"
    if new == old:
        return "unused"
    if new != carried:
        return "other"
    return "replaced" if any(old) else "filled"


def _mistakes(stop, before, after, whole):
    """Return a sentence on contributions counted twice or lost, and on corrupt sums."""
    said = []
    for (rank, chunk), new in stop.tables.items():
        old, where = before[rank, chunk], _place(rank, chunk, whole)
        if new is None:
            said.append(f"{where} is no sum of whole contributions any more")
            continue
        was = old or (0,) * len(new)
        double = [
            r for r, (n, o) in enumerate(zip(new, was, strict=True)) if n > max(1, o)
        ]
        lost = [r for r, (n, o) in enumerate(zip(new, was, strict=True)) if o and not n]
        if double:
            said.append(f"{where} counts {_shares_of(double)} more than once")
        if lost:
            said.append(f"{where} loses {_shares_of(lost)}")
    more = [f"and {len(said) - 3} more like it"] if len(said) > 3 else []
    words = "; ".join([*said[:3], *more])
    return [f"{capital(words)}."] if words else []


def _shares_of(ranks):
    if len(ranks) == 1:
        return f"the contribution of rank {ranks[0]}"
    return f"the contributions of ranks {listed(ranks, 6)}"


def _progress(stop, before, after, complete):
    """Return a sentence on progress, and at the end on the complete chunks.

    complete: chunk -> its counts when it is complete.
    """
    n, whole = len({rank for rank, _ in after}), len(complete) == 1
    done = [key for key, counts in after.items() if counts == complete[key[1]]]
    if len(done) == len(after):
        return ["Every chunk is now complete on every rank."] if stop.tables else []
    if stop.last:
        return [_at_the_end(done, after, n, whole)]
    new = [(r, c) for r, c in done if before[r, c] != complete[c]]
    if new and len(new) <= n:
        where = [_place(*key, whole) for key in new]
        return [f"Newly complete: {listed(where, 4)}."]
    if not done:
        most = max(sum(map(bool, counts or ())) for counts in after.values())
        what = "tensor" if whole else "chunk"
        there = max(map(sum, complete.values()))
        return [f"The fullest {what} holds {most} of {plural(there, 'contribution')}."]
    return []


def _at_the_end(done, after, n, whole):
    where = [_place(*key, whole) for key in done]
    each = len({r for r, _ in done}) == len({c for _, c in done}) == len(done) == n
    if each and n > 1 and not whole:
        return f"At the end each rank holds one complete chunk: {listed(where, 8)}."
    described = f": {listed(where, 6)}" if done else ""
    what = "tensors" if whole else "chunks"
    return f"At the end {len(done)} of {len(after)} {what} are complete{described}."


def _place(rank, chunk, whole):
    return f"rank {rank}" if whole else f"chunk {chunk} on rank {rank}"


def fault_words(event) -> str:
    """Return the effect of a fault, as "rank 2 was killed"."""
    if event.label.startswith("partition"):
        return f"the network is partitioned{literal(event.label, 40)[9:]}"
    verb = _VERBS.get(event.label)
    rank = f"rank {event.rank}"
    if event.label.startswith("raised "):
        verb = literal(event.label, 40)
    return f"{rank} {verb}" if verb else f"{rank}: {literal(event.label, 40)}"


def _with_fate(words, fates):
    """Return "send to 2" with the fate of rank 2, if it has one."""
    fate = fates.get(words.rpartition(" ")[2])
    return f"{words}, which {fate}" if fate else words


def _ending(reading):
    """Return a sentence on the faults, the blocked ranks, and the time of the stop."""
    faults = [event for event in reading.trace.events if event.kind == "fault"]
    said = [fault_words(event) for event in faults]
    fates = {str(rank): "is gone" for rank in gone_ranks(reading.trace)}
    fates |= {str(event.rank): "hangs" for event in faults if event.label == "hang"}
    for rank in sorted(reading.stuck):
        where = [_with_fate(words, fates) for words in reading.stuck[rank]]
        said.append(f"rank {rank} is left in {listed(where, 2)}")
    described = [capital(listed(said, 8, "; ")) + "."]
    if reading.trace.cut_s is not None:
        cut = readable_seconds(reading.trace.cut_s)
        described.append(f"The world was stopped {cut} in.")
    return described
