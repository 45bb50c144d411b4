"""NCCL's own estimates of the latency of its smallest all-reduce.

NCCL chooses between ring and tree by a model of latency and rate, with constants that
were measured once, in µs. Here it is for its protocol for short messages (LL), GPUs
connected by NVLink, and one network step at a time.

    ring   6.6 + (2(gN - 1) - 2(N - 1)) i + 2(N - 1) x    i = 0.6 on one node, else 1.0
    tree   6.8 + 2 ((g - 1) 0.6 + log2(N) 5.0)            x = 5.0 for g = 1, else 2.7

for N nodes of g GPUs. So it is since version 2.23.4; before (commit b647562) a ring
over several nodes had 2 N network steps, and x was 2.7 for g = 1, too.

Source: NCCL, src/graph/tuning.cc, version 2.28.3, with the network overhead of Intel's
    processors (1.0 µs, which is more than a step inside a node).
"""

from distlab.cost.cost import check_count

__all__ = ["nccl_ring_latency_s", "nccl_tree_latency_s"]

_NVLINK_S, _NETWORK_RING_S, _NETWORK_TREE_S = 0.6e-6, 2.7e-6, 5.0e-6
_RING_START_S, _TREE_START_S, _POSTING_S = 6.6e-6, 6.8e-6, 1.0e-6


def nccl_ring_latency_s(nodes: int, gpus_per_node: int = 8) -> float:
    """Return the time of a minimal all-reduce on a ring, in seconds."""
    steps = 2 * (_gpus(nodes, gpus_per_node) - 1)
    between = 2 * (nodes - 1)
    inside_s = _NVLINK_S if nodes == 1 else max(_NVLINK_S, _POSTING_S)
    between_s = _NETWORK_TREE_S if gpus_per_node == 1 else _NETWORK_RING_S
    return _RING_START_S + (steps - between) * inside_s + between * between_s


def nccl_tree_latency_s(nodes: int, gpus_per_node: int = 8) -> float:
    """Return the time of a minimal all-reduce on trees, in seconds.

    Inside a node, NCCL's tree is a chain.
    """
    _gpus(nodes, gpus_per_node)
    levels = nodes.bit_length() - 1
    one_way = (gpus_per_node - 1) * _NVLINK_S + levels * _NETWORK_TREE_S
    return _TREE_START_S + 2 * one_way


def _gpus(nodes, gpus_per_node):
    check_count("nodes", nodes)
    check_count("gpus_per_node", gpus_per_node)
    return nodes * gpus_per_node
