"""Whose share is in a number: told by its digits, chunk by chunk, call by call.

Two runs of one algorithm on inputs that tell where they come from:

    weights     every number of rank r is 8**r      a sum's octal digit r says how often
                                                    rank r's share is in it
    places      number p of every rank is p + 4097  a sum of k shares is k (p + 4097)

A number that both runs agree on is a whole sum of shares, at a known place; any other
is not, and is shown as that. Up to eight ranks fit a float32 exactly. Places begin far
from zero, so that garbage and small numbers of the algorithm's own are none.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

__all__ = ["BASE", "FIRST_PLACE", "Payload", "Shares", "counts_in", "shares_named"]

BASE, FIRST_PLACE = 8, 4097

Counts = tuple[int, ...] | None


@lru_cache(maxsize=4096)  # the same few sums are looked at again and again
def counts_in(value: float, world_size: int) -> Counts:
    """Return how often each rank's share is in `value`; None if it is no such sum."""
    if not math.isfinite(value) or value != int(value) or value < 0:
        return None
    rest, counts = int(value), []
    for _ in range(world_size):
        rest, count = divmod(rest, BASE)
        counts.append(count)
    return None if rest else tuple(counts)


def shares_named(counts: tuple[int, ...]) -> str:
    """Return the ranks whose shares are in a sum, as "0+1+3"; "" for nobody's."""
    ranks = [str(rank) for rank, count in enumerate(counts) for _ in range(count)]
    return "+".join(ranks)


class Payload(NamedTuple):
    """What one message carried: which chunks, and whose shares of each.

    chunks: numbers of the chunks, in order; empty if the places are not known.
    counts: for each of them, how often each rank's share is in it.
    """

    chunks: tuple[int, ...]
    counts: tuple[Counts, ...]


@dataclass
class Shares:
    """Whose shares each rank held after each of its calls, and sent in each message.

    A chunk is a run of numbers that the algorithm never treated differently.

    bounds: where each chunk begins, and the length of the whole.
    held: for each rank, (step, counts of each chunk) after that step; the first is its
        input, with step 0. Counts are None where the numbers are no sum of shares.
    sent: (from, to) -> the payloads in the order in which they were sent.
    """

    bounds: list[int]
    held: list[list[tuple[int, tuple[Counts, ...]]]]
    sent: dict[tuple[int, int], list[Payload]]

    @classmethod
    def read(cls, weights: Sequence[dict], places: Sequence[dict]) -> "Shares":
        """Read the shares from what both runs saw, one record per rank.

        A record has "held", a list of (step, numbers), and "sent", a list of
        (peer, numbers). A message that only one of the runs sent is not told.
        """
        world_size = len(weights)
        held = [
            [
                (step, _told(numbers, there, world_size))
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
        """Cut the numbers into chunks wherever anything ever differed."""
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
            payload = Payload(*zip(*found, strict=True)) if found else Payload((), ())
            messages.setdefault((rank, peer), []).append(payload)
        small = [
            [(step, tuple(table[i] for i in firsts)) for step, table in tables]
            for tables in held
        ]
        return cls(bounds, small, messages)

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.bounds) - 1

    def complete(self, chunk: int) -> tuple[int, ...]:
        """Return the counts of `chunk` with every share that there was at the start."""
        starts = [tables[0][1][chunk] for tables in self.held]
        return tuple(map(sum, zip(*starts, strict=True)))

    def after(self, rank: int, step: int) -> tuple[Counts, ...]:
        """Return the counts of each chunk that `rank` held after its `step`-th call."""
        tables = self.held[rank]
        last = bisect_right(tables, step, key=lambda entry: entry[0]) - 1
        return tables[max(0, last)][1]


def _told(numbers, there, world_size):
    """Return the counts at each place of a tensor; None where the runs disagree."""
    return tuple(
        counts if counts is not None and sum(counts) * place == other else None
        for place, (counts, other) in enumerate(
            zip([counts_in(x, world_size) for x in numbers], there, strict=True),
            FIRST_PLACE,
        )
    )


def _located(numbers, there, world_size, length):
    """Return (place, counts) of each number of a message whose place is known."""
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
    """Return the places at which a message's runs of neighbours begin and end."""
    ends, last = set(), None
    for place, counts in numbers:
        if last is None or last != (place - 1, counts):
            ends.add(place)
            if last is not None:
                ends.add(last[0] + 1)
        last = place, counts
    return ends | ({last[0] + 1} if last else set())
