"""Lower bounds of the costs of any algorithm, as long as ranks do the adding.

Each `..._bound_bytes` is the least that the busiest rank must send or receive. Divided
by the rate of a link it is the least time, whatever the latency. tensor_bytes is S, and
shard_bytes S/n, as everywhere in `cost`.
"""

__all__ = [
    "all_gather_bound_bytes",
    "all_reduce_bound_bytes",
    "all_to_all_bound_bytes",
    "barrier_bound_bytes",
    "bound_rounds",
    "broadcast_bound_bytes",
    "gather_bound_bytes",
    "reduce_bound_bytes",
    "reduce_scatter_bound_bytes",
    "scatter_bound_bytes",
]


def bound_rounds(world_size: int) -> int:
    """Return ceil(log2 n): no collective ends in fewer rounds.

    In each of them, data of all ranks must reach some rank, or data of one rank all
    others; and in one round the number of ranks that data has reached at most doubles.
    """
    return (world_size - 1).bit_length()


def all_reduce_bound_bytes(world_size: int, tensor_bytes: int) -> float:
    """Return 2(n-1)/n S: n-1 contributions to each element and n-1 results are sent.

    Source: Patarasuk and Yuan (2009), theorem 1.
    """
    return 2 * (world_size - 1) * tensor_bytes / world_size


def reduce_scatter_bound_bytes(world_size: int, tensor_bytes: int) -> float:
    """Return (n-1)/n S: n-1 contributions to each element are sent."""
    return (world_size - 1) * tensor_bytes / world_size


def all_gather_bound_bytes(world_size: int, shard_bytes: int) -> float:
    """Return (n-1)/n S: a rank has to receive all tensors but its own."""
    return (world_size - 1) * shard_bytes


def gather_bound_bytes(world_size: int, shard_bytes: int) -> float:
    """Return (n-1)/n S: the root has to receive all tensors but its own."""
    return (world_size - 1) * shard_bytes


def scatter_bound_bytes(world_size: int, shard_bytes: int) -> float:
    """Return (n-1)/n S: the root has to send all pieces but its own."""
    return (world_size - 1) * shard_bytes


def all_to_all_bound_bytes(world_size: int, shard_bytes: int) -> float:
    """Return (n-1)/n S: a rank has to send all its tensors but one."""
    return (world_size - 1) * shard_bytes


def broadcast_bound_bytes(world_size: int, tensor_bytes: int) -> float:
    """Return S: the root has to send every element once."""
    return tensor_bytes if world_size > 1 else 0


def reduce_bound_bytes(world_size: int, tensor_bytes: int) -> float:
    """Return S: the root has to receive every element's sum, or a part of it, once."""
    return tensor_bytes if world_size > 1 else 0


def barrier_bound_bytes(world_size: int, tensor_bytes: int = 0) -> float:
    """Return 0: the messages of a barrier may be empty."""
    return 0
