"""`Cost`, and the arithmetic of chunks and trees for all formulas."""

import itertools
import operator
from dataclasses import dataclass

from distlab.errors import InvalidArgument

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """The cost of one collective on n ranks.

    rounds: messages one after another on the longest chain.
    chain_bytes: bytes that move one after another on that chain; where chunks are
        uneven, the longest message of each round counts.
    added_bytes: bytes that are added up, or otherwise combined, on that chain.
    sent_bytes, messages: the exact number that each rank sends; index r is rank r.
    """

    rounds: int
    chain_bytes: int
    added_bytes: int
    sent_bytes: tuple[int, ...]
    messages: tuple[int, ...]

    @property
    def busiest_bytes(self) -> int:
        """Bytes sent by the rank that sends most."""
        return max(self.sent_bytes)

    def __add__(self, then: "Cost") -> "Cost":
        """Return the cost of this collective and another after it."""
        sent = map(operator.add, self.sent_bytes, then.sent_bytes)
        messages = map(operator.add, self.messages, then.messages)
        return Cost(
            self.rounds + then.rounds,
            self.chain_bytes + then.chain_bytes,
            self.added_bytes + then.added_bytes,
            tuple(sent),
            tuple(messages),
        )

    def seconds(
        self, latency_s: float, bytes_per_s: float, add_bytes_per_s: float | None = None
    ) -> float:
        """Return the time on links of this latency and rate.

        add_bytes_per_s: a rank's rate of adding; without it, adding takes no time.
        """
        moving = self.rounds * latency_s + self.chain_bytes / bytes_per_s
        return moving + (self.added_bytes / add_bytes_per_s if add_bytes_per_s else 0)


def check_count(name: str, value: int) -> None:
    """Refuse an argument of that name that is no whole number from 1 up.

    Raises: InvalidArgument.
    """
    if type(value) is not int or value < 1:
        raise InvalidArgument(f"{name} is a whole number from 1 up, and got {value!r}.")


def checked(
    world_size: int, tensor_bytes: int, itemsize: int = 1, root: int = 0
) -> int:
    """Return `tensor_bytes` as an int, if the world and the tensor are valid.

    Raises: InvalidArgument.
    """
    for name, value, least in (
        ("world_size", world_size, 1),
        ("itemsize", itemsize, 1),
        ("root", root, 0),
    ):
        if type(value) is not int or value < least:
            raise InvalidArgument(f"{name} is a number from {least} up: {value!r}.")
    if root >= world_size:
        raise InvalidArgument(f"root={root} is no rank of a world of {world_size}.")
    # 4e6 is fine
    whole = int(tensor_bytes) if tensor_bytes == tensor_bytes // 1 else -1
    if whole < 0 or whole % itemsize:
        raise InvalidArgument(
            f"tensor_bytes={tensor_bytes!r} is no number of items of {itemsize} bytes."
        )
    return operator.index(whole)


def from_the_root(n: int, size: int, root: int) -> Cost:
    """Return the cost of `size` bytes from the root to one rank after another."""
    sent = by_rank([(n - 1) * size] + [0] * (n - 1), root)
    return Cost(n - 1, (n - 1) * size, 0, sent, by_rank([n - 1] + [0] * (n - 1), root))


def chunk_bytes(tensor_bytes: int, parts: int, itemsize: int) -> list[int]:
    """Return the bytes of each of `parts` chunks, cut as `collectives.chunks` does."""
    whole, longer = divmod(tensor_bytes // itemsize, parts)
    return [(whole + (part < longer)) * itemsize for part in range(parts)]


def edges_of(chunks: list[int]) -> list[int]:
    """Return the start of each chunk, and the end of the last."""
    return list(itertools.accumulate(chunks, initial=0))


def levels(n: int) -> int:
    """Return ceil(log2 n), the rounds of a binomial tree."""
    return (n - 1).bit_length()


def subtree(place: int, n: int) -> int:
    """Return the number of places in the subtree of a place in a binomial tree."""
    return min(place & -place or n, n - place)


def children(place: int, n: int) -> int:
    """Return the number of children of a place in a binomial tree."""
    return levels(subtree(place, n))


def by_rank(of_place: list[int], root: int) -> tuple[int, ...]:
    """Return values by rank from values by place, which counts from the root."""
    n = len(of_place)
    return tuple(of_place[(rank - root) % n] for rank in range(n))


class PairedRanks:
    """n = p + extra ranks as p places; the first 2 extra ranks share places in pairs.

    See `collectives.powers`: in a pair the odd rank is folded into the even one.
    """

    def __init__(self, n: int):
        self.places = 2 ** (n.bit_length() - 1)
        self.extra = n - self.places
        self.steps = self.places.bit_length() - 1  # log2 p
        self.folds = bool(self.extra)  # rounds before, and after, for folded ranks
        self.distances = [2**k for k in range(self.steps)]

    def first(self, place: int) -> int:
        """Return the lowest rank at a place."""
        return place + min(place, self.extra)

    def by_rank(self, of_folded, of_place) -> tuple:
        """Return the values of all ranks, in order.

        of_folded: function of the rank, for folded ranks.
        of_place: function of the place, and True if one is folded into it.
        """
        found = []
        for place in range(self.places):
            has_folded = place < self.extra
            found.append(of_place(place, has_folded))
            if has_folded:
                found.append(of_folded(self.first(place) + 1))
        return tuple(found)
