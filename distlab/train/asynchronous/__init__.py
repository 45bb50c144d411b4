"""Asynchronous training: parameter servers, local steps, rollouts, gossip's graphs.

serve(comm, Asynchronous(shard, optimizer, bound=2), updates=400)    a server
worker = Worker(comm, flat)                                          a worker
LocalSGD(comm, model, every=20, outer=nesterov)                      DiLoCo
run_rollouts(comm, RolloutPlan(...), generate, train)                a policy
"""

from distlab.train.asynchronous.gossip import (
    complete_graph,
    exponential_graph,
    ring_graph,
    spectral_gap,
    torus_graph,
)
from distlab.train.asynchronous.gradient_staleness import Gradient, gradients_of, replay
from distlab.train.asynchronous.local_sgd import (
    LocalSGD,
    StreamingLocalSGD,
    fragment_due,
    nesterov,
)
from distlab.train.asynchronous.pair_task import PairTask, Rollouts
from distlab.train.asynchronous.rollouts import (
    RolloutPlan,
    may_start,
    replay_rollouts,
    run_rollouts,
)
from distlab.train.asynchronous.server import Worker, serve, shard_of
from distlab.train.asynchronous.server_rules import (
    Asynchronous,
    ElasticAveraging,
    Synchronous,
)

__all__ = [
    "Asynchronous",
    "ElasticAveraging",
    "Gradient",
    "LocalSGD",
    "PairTask",
    "RolloutPlan",
    "Rollouts",
    "StreamingLocalSGD",
    "Synchronous",
    "Worker",
    "complete_graph",
    "exponential_graph",
    "fragment_due",
    "gradients_of",
    "may_start",
    "nesterov",
    "replay",
    "replay_rollouts",
    "ring_graph",
    "run_rollouts",
    "serve",
    "shard_of",
    "spectral_gap",
    "torus_graph",
]
