"""What an algorithm must cost, before anybody runs it: rounds, bytes, seconds.

The model is the field's usual one: a message of b bytes takes alpha + b * beta seconds
(alpha: latency, beta: seconds per byte), and a rank sends one message and receives one
at the same time. Bytes and rounds are exact and are tested against traces; seconds are
as good as the model.

Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH" (2005).
"""

from dataclasses import dataclass

__all__ = [
    "Cost",
    "all_reduce_bound_bytes",
    "naive_all_reduce",
    "ring_all_reduce",
    "tree_all_reduce",
]


@dataclass(frozen=True)
class Cost:
    """The cost of one collective.

    rounds: messages one after another on the longest chain.
    busiest_bytes: bytes sent by the rank that sends most.
    chain_bytes: bytes of the messages on that longest chain, added up.
    """

    rounds: int
    busiest_bytes: float
    chain_bytes: float

    def seconds(self, latency_s: float, bytes_per_s: float) -> float:
        """Return the time on links of this latency and rate."""
        return self.rounds * latency_s + self.chain_bytes / bytes_per_s


def all_reduce_bound_bytes(world_size: int, tensor_bytes: int) -> float:
    """Return 2(n-1)/n S: no all-reduce lets its busiest rank send less.

    Source: Patarasuk and Yuan (2009), theorem 1.
    """
    return 2 * (world_size - 1) * tensor_bytes / world_size


def naive_all_reduce(world_size: int, tensor_bytes: int) -> Cost:
    """Return the cost of gathering on rank 0 and sending back."""
    n, size = world_size, tensor_bytes
    return Cost(2 * (n - 1), (n - 1) * size, 2 * (n - 1) * size)


def tree_all_reduce(world_size: int, tensor_bytes: int) -> Cost:
    """Return the cost of a binomial tree up and down."""
    levels = (world_size - 1).bit_length()
    return Cost(2 * levels, levels * tensor_bytes, 2 * levels * tensor_bytes)


def ring_all_reduce(world_size: int, tensor_bytes: int) -> Cost:
    """Return the cost of the ring, for a tensor that its chunks divide evenly."""
    bound = all_reduce_bound_bytes(world_size, tensor_bytes)
    return Cost(2 * (world_size - 1), bound, bound)
