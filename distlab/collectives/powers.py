"""Powers of two: the distances of a tree, and how any n is brought to one.

Halving and doubling need a power of two. With n = p + extra ranks, p the largest power
of two in n, the first 2 extra ranks sit in pairs. Of each pair the odd rank, the guest,
hands its data to the even one, its host, and gets the result back at the end. The p
ranks that are not guests have places 0 to p - 1:

    n = 6, p = 4      rank    0  1  2  3  4  5
                      place   0  .  1  .  2  3        1 is the guest of 0, 3 of 2

The ranks of places a to b - 1, with their guests, are neighbours, and so are their
chunks in a tensor.

Source: Thakur, Rabenseifner and Gropp (2005).
"""

__all__ = ["Places", "powers_below", "subtree"]


def powers_below(n: int) -> list[int]:
    """Return 1, 2, 4 and so on, as far as they are below n: ceil(log2 n) of them."""
    return [2**k for k in range((n - 1).bit_length())]


def subtree(place: int, n: int) -> int:
    """Return how many places a binomial tree of n has from `place` on, downwards.

    Place 0 is the root of all; place 4 of 8 is that of 4, 5, 6 and 7.
    """
    return min(place & -place or n, n - place)


class Places:
    """The seats of a world of any size at a game for a power of two.

    count: how many places there are, p.
    place: this rank's, or None for a guest.
    host, guest: the rank that sits with this one, in that role, or None.
    """

    def __init__(self, rank: int, world_size: int):
        self.count = 2 ** (world_size.bit_length() - 1)
        self.extra = world_size - self.count
        self.place = self.host = self.guest = None
        if rank >= 2 * self.extra:
            self.place = rank - self.extra
        elif rank % 2 == 0:
            self.place, self.guest = rank // 2, rank + 1
        else:
            self.host = rank - 1

    def rank_at(self, place: int) -> int:
        """Return the rank at a place; for `count`, the world size.

        It is also the first chunk of the place, if each rank has one.
        """
        return place + min(place, self.extra)

    def take_in(self, comm, flat, arrived, op) -> None:
        """Combine this host's guest's tensor, received into `arrived`, with its own."""
        if self.guest is not None:
            comm.mark("take in the guests, step 1 of 1")
            op.combine(flat, comm.recv(arrived, self.guest))

    def tell(self, comm, result) -> None:
        """Send this host's guest its result."""
        if self.guest is not None:
            comm.mark("tell the guests, step 1 of 1")
            comm.send(result, self.guest)
