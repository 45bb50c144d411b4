"""Eight ranks on three nodes of a local Ray cluster, beside Ray Train's TorchTrainer.

    python tests/bench/ray_worlds.py            # a table; kills=50 for more kills

Times are from the call to its result. The cluster is up before any of them.
"""

import random
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist

from distlab import RankDied, World, run
from distlab.engines.ray import ray_cluster

RANKS, NODES = 8, 3


def summed(comm=None):
    values = torch.ones(4)
    dist.all_reduce(values)
    return values[0].item()


def forever(comm):
    while True:
        dist.all_reduce(torch.ones(4))


def timed_s(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def with_ray_train():
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    with tempfile.TemporaryDirectory() as folder:
        TorchTrainer(
            lambda config=None: summed(),
            scaling_config=ScalingConfig(num_workers=RANKS),
            torch_config=TorchConfig(backend="gloo"),
            run_config=RunConfig(storage_path=folder),
        ).fit()


def named_after_s(cluster, draw):
    """Return the seconds from the kill of a node to the error that names it."""
    number, at = int(cluster.nodes[-1].split()[-1]), []

    def kill():
        at.append(time.perf_counter())
        cluster.kill_node(number)

    killer = threading.Timer(draw.uniform(0.5, 3), kill)
    killer.start()
    try:
        run(forever, RANKS, quiet=True, on=cluster)
    except RankDied as error:
        assert f"node {number} was lost" in str(error)
    took_s = time.perf_counter() - at[0]
    killer.join()
    cluster.add_node(3)
    return took_s


def main(kills):
    began = time.perf_counter()
    with ray_cluster(nodes=NODES, cpus=3) as cluster:
        print(f"cluster started        {time.perf_counter() - began:8.2f} s")
        once = lambda: run(summed, RANKS, quiet=True, on=cluster)  # noqa: E731
        print(f"first run              {timed_s(once):8.2f} s")
        print(f"later run, best of 5   {min(timed_s(once) for _ in range(5)):8.2f} s")
        with World(RANKS, on=cluster) as world:
            warm = sorted(timed_s(lambda: world.run(summed)) for _ in range(30))
            print(f"warm call, median      {1e3 * warm[15]:8.1f} ms")
        print(f"Ray Train, one run     {timed_s(with_ray_train):8.2f} s")
        draw = random.Random(1)
        took = sorted(named_after_s(cluster, draw) for _ in range(kills))
        print(f"{kills} kills, named after  {took[-1]:8.2f} s at most")


if __name__ == "__main__":
    main(int(dict(a.split("=") for a in sys.argv[1:]).get("kills", 3)))
