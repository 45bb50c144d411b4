"""Ray: worlds on the nodes of a cluster, with the same `run`, `World` and report.

    from distlab.engines.ray import ray_cluster

    with ray_cluster(nodes=3, cpus=4) as cluster:
        run(fn, 8, on=cluster)

    cell ── run(on=) ──▶ RayCluster: a placement group ──▶ an actor on each node
                              │                              │ process server
                              └── RayRanks ◀─ connection ──▶ RanksOfNode ── ranks

Ray places the ranks and holds their CPUs or GPUs; its actor on a node stays for the
life of the cluster, with a process server that has imported torch. The ranks are forks
of that, as on one machine, not actors of their own: see tests/bench/ray_worlds.py.
"""

from importlib import import_module
from importlib.util import find_spec

__all__ = ["RayCluster", "is_installed", "ray_cluster"]


def is_installed() -> bool:
    """Return True if Ray is installed."""
    return find_spec("ray") is not None


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'distlab.engines.ray' has no attribute {name!r}")
    return getattr(import_module("distlab.engines.ray.cluster"), name)
