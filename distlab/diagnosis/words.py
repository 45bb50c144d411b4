"""Ranks, and the verbs that agree with them, in words."""

from collections.abc import Collection, Iterable
from itertools import pairwise

__all__ = ["agreeing", "ranks_in_words"]

_MOST = 10  # words of ranks or runs of them


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
    left = len(words) - _MOST + 1
    return [*words[: _MOST - 1], f"{left} more"] if left > 1 else words


def agreeing(words: str, ranks: Collection[int]) -> str:
    """Return the words with {wait}, {have} and {are} as one rank, or several, need."""
    one = {"{wait}": "waits", "{have}": "has", "{are}": "is"}
    for verb, form in one.items():
        words = words.replace(verb, form if len(ranks) == 1 else verb[1:-1])
    return words
