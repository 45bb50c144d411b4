"""Powers of two: the distances of a tree, and the reduction of any n to one.

Halving and doubling need a power of two. With n = p + extra ranks, p the largest power
of two in n, the first 2 extra ranks form pairs. In each pair the odd rank is folded: it
sends its data to the even one, its host, and receives the result at the end. The p
ranks that are not folded have places 0 to p - 1:

    n = 6, p = 4      rank    0  1  2  3  4  5
                      place   0  .  1  .  2  3        1 is folded into 0, 3 into 2

The ranks of places a to b - 1, with those folded into them, are consecutive, and so are
their chunks in a tensor.

Source: Thakur, Rabenseifner and Gropp (2005).
"""

__all__ = ["Places", "powers_below", "subtree"]


def powers_below(n: int) -> list[int]:
    """Return the powers of two below n: 1, 2, 4 and so on, ceil(log2 n) of them."""
    return [2**k for k in range((n - 1).bit_length())]


def subtree(place: int, n: int) -> int:
    """Return the number of places in the subtree of `place` in a binomial tree of n.

    Place 0 is the root of all; the subtree of place 4 of 8 is 4, 5, 6 and 7.
    """
    return min(place & -place or n, n - place)


class Places:
    """One rank's place in an algorithm for a power of two, in a world of any size.

    count: the number of places, p.
    place: this rank's, or None for a folded one.
    host, folded: this rank's partner in that role, or None.
    """

    def __init__(self, rank: int, world_size: int):
        self.count = 2 ** (world_size.bit_length() - 1)
        self.extra = world_size - self.count
        self.place = self.host = self.folded = None
        if rank >= 2 * self.extra:
            self.place = rank - self.extra
        elif rank % 2 == 0:
            self.place, self.folded = rank // 2, rank + 1
        else:
            self.host = rank - 1

    def rank_at(self, place: int) -> int:
        """Return the rank at a place; for `count`, the world size.

        It is also the first chunk of the place, if each rank has one.
        """
        return place + min(place, self.extra)

    def take_in(self, comm, flat, arrived, op) -> None:
        """Receive a folded rank's tensor, if any, into `arrived`; combine it."""
        if self.folded is not None:
            comm.mark("take in the guests, step 1 of 1")
            op.combine(flat, comm.recv(arrived, self.folded))

    def tell(self, comm, result) -> None:
        """Send the result to the rank folded into this one, if any."""
        if self.folded is not None:
            comm.mark("tell the guests, step 1 of 1")
            comm.send(result, self.folded)
