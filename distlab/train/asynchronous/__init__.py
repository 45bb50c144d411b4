"""Asynchronous training: parameter servers, local steps, gossip.

serve(comm, Asynchronous(shard, optimizer, bound=2), updates=400)    a server
worker = Worker(comm, flat)                                          a worker
LocalSGD(comm, model, every=20, outer=nesterov)                      DiLoCo
Gossip(comm, model, ring_graph(comm.world_size))                     no center
"""

from distlab.train.asynchronous.gossip import (
    Gossip,
    complete_graph,
    consensus_distance,
    exponential_graph,
    random_graph,
    ring_graph,
    spectral_gap,
    torus_graph,
)
from distlab.train.asynchronous.gradient_staleness import Gradient, gradients_of, replay
from distlab.train.asynchronous.local_sgd import LocalSGD, nesterov
from distlab.train.asynchronous.server import Worker, serve, shard_of
from distlab.train.asynchronous.server_rules import (
    Asynchronous,
    ElasticAveraging,
    Synchronous,
)

__all__ = [
    "Asynchronous",
    "ElasticAveraging",
    "Gossip",
    "Gradient",
    "LocalSGD",
    "Synchronous",
    "Worker",
    "complete_graph",
    "consensus_distance",
    "exponential_graph",
    "gradients_of",
    "nesterov",
    "random_graph",
    "replay",
    "ring_graph",
    "serve",
    "shard_of",
    "spectral_gap",
    "torus_graph",
]
