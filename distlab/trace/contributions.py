"""Contributions of ranks (`Shares`) to each chunk after each call, decoded from digits.

Two runs of one algorithm on inputs that encode their origin:

    weights     every element of rank r is 8**r      a sum's octal digit r is the number
                                                     of rank r's contributions in it
    places      element p of every rank is p + 4097  a sum of k of them is k (p + 4097)

An element on which both runs agree is a whole sum of contributions, at a known index;
any other is not, and is shown as that. Up to eight ranks fit a float32 exactly. Indices
begin far from zero, so that garbage and the algorithm's own small numbers are none.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "BASE",
    "FIRST_PLACE",
    "Contributions",
    "Shares",
    "counts_in",
    "shares_named",
]

BASE, FIRST_PLACE = 8, 4097

Counts = tuple[int, ...] | None


@lru_cache(maxsize=4096)  # the same few sums are looked at again and again
def counts_in(value: float, world_size: int) -> Counts:
    """Return each rank's number of contributions in `value`; None if no such sum."""
    if not math.isfinite(value) or value != int(value) or value < 0:
        return None
    rest, counts = int(value), []
    for _ in range(world_size):
        rest, count = divmod(rest, BASE)
        counts.append(count)
    return None if rest else tuple(counts)


def shares_named(counts: tuple[int, ...]) -> str:
    """Return the ranks that contributed to a sum, as "0+1+3"; "" for none."""
    ranks = [str(rank) for rank, count in enumerate(counts) for _ in range(count)]
    return "+".join(ranks)


class Contributions(NamedTuple):
    """The contents of one message: its chunks, and the contributions in each.

    chunks: numbers of the chunks, in order; empty if the indices are not known.
    counts: for each of them, the number of each rank's contributions in it.
    """

    chunks: tuple[int, ...]
    counts: tuple[Counts, ...]


@dataclass
class Shares:
    """The contributions that each rank held after each call, and sent in each message.

    A chunk is a range of elements that the algorithm never treated differently.

    bounds: the first index of each chunk, and the length of the whole.
    held: for each rank, (step, counts of each chunk) after that step; the first is its
        input, with step 0. Counts are None where elements are no sum of contributions.
    sent: (from, to) -> the payloads in the order in which they were sent.
    """

    bounds: list[int]
    held: list[list[tuple[int, tuple[Counts, ...]]]]
    sent: dict[tuple[int, int], list[Contributions]]

    @classmethod
    def read(cls, weights: Sequence[dict], places: Sequence[dict]) -> "Shares":
        """Return the shares decoded from the records of both runs, one per rank.

        A record has "held", a list of (step, numbers), and "sent", a list of
        (peer, numbers). A message that only one of the runs sent is left out.
        """
        world_size = len(weights)
        held = [
            [
                (step, _described(numbers, there, world_size))
                for (step, numbers), (_, there) in zip(
                    one["held"], other["held"], strict=False
                )
            ]
            for one, other in zip(weights, places, strict=True)
        ]
        length = len(weights[0]["held"][0][1])
        sent = [
            (rank, peer, _located(numbers, there, world_size, length))
            for rank, (one, other) in enumerate(zip(weights, places, strict=True))
            for (peer, numbers), (_, there) in zip(
                one["sent"], other["sent"], strict=False
            )
        ]
        return cls._cut(length, held, sent)

    @classmethod
    def _cut(cls, length, held, sent):
        """Cut the elements into chunks wherever neighbours ever differed."""
        cuts = {0, length}
        tables = [table for tables in held for _, table in tables]
        cuts |= {i for t in tables for i in range(1, length) if t[i] != t[i - 1]}
        for _, _, numbers in sent:
            cuts |= _ends(numbers)
        bounds = sorted(cuts)
        firsts = bounds[:-1]
        chunk_at = {first: chunk for chunk, first in enumerate(firsts)}
        messages = {}
        for rank, peer, numbers in sent:
            found = [(chunk_at[p], c) for p, c in numbers if p in chunk_at]
            payload = Contributions(*zip(*found, strict=True) if found else ((), ()))
            messages.setdefault((rank, peer), []).append(payload)
        small = [
            [(step, tuple(table[i] for i in firsts)) for step, table in tables]
            for tables in held
        ]
        return cls(bounds, small, messages)

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.bounds) - 1

    def complete(self, chunk: int) -> tuple[int, ...]:
        """Return the counts of `chunk` with every contribution of the start."""
        starts = [tables[0][1][chunk] for tables in self.held]
        return tuple(map(sum, zip(*starts, strict=True)))

    def after(self, rank: int, step: int) -> tuple[Counts, ...]:
        """Return the counts of each chunk that `rank` held after its `step`-th call."""
        tables = self.held[rank]
        last = bisect_right(tables, step, key=lambda entry: entry[0]) - 1
        return tables[max(0, last)][1]


def _described(numbers, there, world_size):
    """Return the counts at each index of a tensor; None where the runs disagree."""
    return tuple(
        counts if counts is not None and sum(counts) * place == other else None
        for place, (counts, other) in enumerate(
            zip([counts_in(x, world_size) for x in numbers], there, strict=True),
            FIRST_PLACE,
        )
    )


def _located(numbers, there, world_size, length):
    """Return (index, counts) of each element of a message whose index is known."""
    found = []
    for number, other in zip(numbers, there, strict=False):
        counts = counts_in(number, world_size)
        shares = sum(counts) if counts else 0
        if shares and other % shares == 0:
            place = int(other // shares) - FIRST_PLACE
            if 0 <= place < length:
                found.append((place, counts))
    return found


def _ends(numbers):
    """Return the indices at which a message's ranges of neighbours begin and end."""
    ends, last = set(), None
    for place, counts in numbers:
        if last is None or last != (place - 1, counts):
            ends.add(place)
            if last is not None:
                ends.add(last[0] + 1)
        last = place, counts
    return ends | ({last[0] + 1} if last else set())
