"""The first difference between two animations, in words."""

from collections import Counter
from typing import NamedTuple

from distlab.show.reading.alt_text import capital
from distlab.trace import shares_named
from distlab.units import readable_bytes

__all__ = ["first_difference"]


class _Known(NamedTuple):
    """The identity of a message. numbers: ranges of elements, as (first, end)."""

    src: int
    dst: int
    bytes: int
    count: int
    fate: str
    numbers: tuple


def first_difference(mine, ideal, names: tuple[str, str]) -> tuple[int, str]:
    """Return the first step where two animations differ, and how; (0, "") if none.

    names: the names of the two in the sentence.
    """
    pair = _Pair(mine, ideal, names)
    for number in range(1, max(len(mine.frames), len(ideal.frames))):
        said = pair.at(number)
        if said:
            return number, said
    return 0, ""


class _Pair:
    """Two animations, `ours` and `theirs`, compared frame by frame."""

    def __init__(self, mine, ideal, names):
        self.animations = mine, ideal
        self.ours = names[0]
        self.theirs = "the ideal" if names[1] == "ideal" else names[1]
        self.shares = bool(mine.chunks and ideal.chunks)

    def at(self, number):
        frames = [
            animation.frames[number] if number < len(animation.frames) else None
            for animation in self.animations
        ]
        return self._course(*frames) or self._messages(*frames) or self._tables(*frames)

    def _course(self, ours, theirs):
        """Return a sentence if one run has ended, or is in another collective."""
        if ours is None:
            return f"{self.ours} has ended here; {self.theirs} goes on: {theirs.text}"
        if theirs is None:
            return f"{self.theirs} has ended here; {self.ours} goes on: {ours.text}"
        if ours.broken != theirs.broken:
            broken, whose = (ours, self.ours) if ours.broken else (theirs, self.theirs)
            return f"{whose} goes no further. {broken.text}"
        other_end = ours.broken and ours.text != theirs.text
        meetings = [(f.ranks, f.title) if f.ranks else None for f in (ours, theirs)]
        if other_end or meetings[0] != meetings[1]:
            return f"{self.ours}: {ours.text} {capital(self.theirs)}: {theirs.text}"
        return ""

    def _messages(self, ours, theirs):
        """Return a sentence on a message with another peer, size or element range."""
        sent = [
            Counter(self._known(animation, move) for move in frame.moves)
            for animation, frame in zip(self.animations, (ours, theirs), strict=True)
        ]
        extra, missing = sent[0] - sent[1], sent[1] - sent[0]
        pairs = sorted({known[:2] for known in (*extra, *missing)})
        if not pairs:
            return ""
        src, dst = pairs[0]
        mine = next((k for k in extra if k[:2] == pairs[0]), None)
        other = next((k for k in missing if k[:2] == pairs[0]), None)
        more = _more(len(pairs) - 1)
        if mine and other:
            said = f"rank {src} sends {self._what(0, mine)} to rank {dst}"
            return f"{said}, and in {self.theirs} {self._what(1, other)}.{more}"
        if mine:
            instead = next((k for k in missing if k.src == src), None)
            said = f"rank {src} sends {self._what(0, mine)} to rank {dst}"
            if instead:
                return f"{said}, and in {self.theirs} to rank {instead.dst}.{more}"
            return f"{said}, and in {self.theirs} it does not.{more}"
        instead = next((k for k in extra if k.src == src), None)
        said = f"in {self.theirs} rank {src} sends {self._what(1, other)} to rank {dst}"
        if instead:
            return f"{said}, and in {self.ours} to rank {instead.dst}.{more}"
        return f"{said}, and in {self.ours} it does not.{more}"

    def _known(self, animation, move):
        numbers = _numbers(animation, move.chunks) if self.shares else ()
        return _Known(*move[:3], move.count, move.fate, numbers)

    def _what(self, which, known):
        """Return the contents of a message, as "chunk 2 (40 B)"."""
        animation, size = self.animations[which], readable_bytes(known.bytes)
        if known.count > 1:
            size = f"{known.count} messages, {size},"
        if known.fate != "arrived":
            size += ", dropped" if known.fate == "dropped" else ", stuck"
        if not known.numbers or animation.chunks == 1:
            return size
        first, end = known.numbers[0]
        chunk = animation.bounds.index(first)
        if animation.bounds[chunk + 1] == end:
            return f"chunk {chunk} ({size})"
        return f"numbers {first} to {end - 1} ({size})"

    def _tables(self, ours, theirs):
        """Return a sentence on a chunk with other contributions than in the ideal."""
        if not self.shares:
            return ""
        mine, ideal = self.animations
        length = min(mine.bounds[-1], ideal.bounds[-1])
        firsts = sorted({*mine.bounds, *ideal.bounds})
        for rank in range(mine.world_size):
            for first in (place for place in firsts if place < length):
                chunk = _chunk_at(ideal, first)
                one = ours.tables[rank, _chunk_at(mine, first)]
                other = theirs.tables[rank, chunk]
                if one != other:
                    whole = ideal.chunks == 1
                    where = f"rank {rank}" if whole else f"chunk {chunk} of rank {rank}"
                    return (
                        f"afterwards {where} holds {_shares(one)}, and in "
                        f"{self.theirs} {_shares(other)}."
                    )
        return ""


def _more(count):
    if count < 1:
        return ""
    if count == 1:
        return " The messages of one other pair of ranks differ, too."
    return f" The messages of {count} other pairs of ranks differ, too."


def _numbers(animation, chunks):
    """Return the ranges of elements, as (first, end), that chunks are."""
    runs = []
    for chunk in chunks:
        first, end = animation.bounds[chunk], animation.bounds[chunk + 1]
        if runs and runs[-1][1] == first:
            first = runs.pop()[0]
        runs.append((first, end))
    return tuple(runs)


def _chunk_at(animation, place):
    return max(c for c in range(animation.chunks) if animation.bounds[c] <= place)


def _shares(counts):
    if counts is None:
        return "no whole sum of contributions"
    named = shares_named(counts)
    if sum(counts) == 1:
        return f"the contribution of {named}"
    return f"the contributions {named}" if named else "no rank's contribution"
