"""What a check says of a sum: whose shares are in it, and what is wrong with that."""

from distlab.trace import counts_in, shares_named

__all__ = ["in_words", "what_is_wrong"]


def in_words(value: float, world_size: int) -> str:
    """Return whose shares are in `value`, such as "0+1+3"; "?" if it is no such sum."""
    counts = counts_in(value, world_size)
    if counts is None:
        return "?"
    return shares_named(counts) or "nobody"


def what_is_wrong(counts: tuple[int, ...] | None) -> str:
    """Return which shares are missing or counted too often, in words."""
    if counts is None:
        return "this is no sum of whole shares"
    missing = [str(rank) for rank, count in enumerate(counts) if count == 0]
    extra = [
        f"{rank} ({count} times)" for rank, count in enumerate(counts) if count > 1
    ]
    told = []
    if missing:
        told.append(f"{_shares_of(missing)} missing")
    if extra:
        told.append(f"{_shares_of(extra)} in it too often")
    return ", ".join(told)


def _shares_of(ranks):
    if len(ranks) == 1:
        return f"the share of rank {ranks[0]} is"
    return f"the shares of ranks {', '.join(ranks[:-1])} and {ranks[-1]} are"
