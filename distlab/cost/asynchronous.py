"""Costs of one exchange in training that does not wait for all ranks.

parameter server    a worker's gradient to each server, and parameters back
elastic averaging   the same, every few steps: parameters both ways
local SGD, DiLoCo   ring_all_reduce of the parameters, every H steps
"""

from distlab.cost.cost import Cost, checked
from distlab.errors import InvalidArgument

__all__ = ["check_servers", "parameter_server"]


def parameter_server(
    world_size: int, tensor_bytes: int, *, itemsize: int = 4, servers: int = 1
) -> Cost:
    """Return the cost of one exchange of each worker with all servers.

    S plus one element, the version, for each shard; each way. A server's NIC is the
    bottleneck: it receives one message after another, and replies one after another.

    T = 2w (alpha + (S/s + itemsize) beta), for s servers and w = n - s workers
    Raises: InvalidArgument if there is no server or no worker.
    """
    total = checked(world_size, tensor_bytes, itemsize)
    check_servers(servers, world_size)
    elements, workers = total // itemsize, world_size - servers
    counts = [(elements + servers - 1 - k) // servers for k in range(servers)]
    shards = [itemsize * (count + 1) for count in counts]
    sent = [workers * shard for shard in shards] + [sum(shards)] * workers
    messages = [workers] * servers + [servers] * workers
    moved = workers * shards[0]
    return Cost(2 * workers, 2 * moved, moved, tuple(sent), tuple(messages))


def check_servers(servers: int, world_size: int) -> None:
    """Refuse a world without a server or without a worker.

    Raises: InvalidArgument.
    """
    if type(servers) is not int or not 0 < servers < world_size:
        raise InvalidArgument(
            f"of {world_size} ranks {servers!r} can't be servers: there is at least "
            "one server and one worker."
        )
