"""A parameter server: ranks that hold parameters, and workers that compute gradients.

    rank 0   server: all parameters          rank 0   server: the first half
    rank 1   worker  ─ gradient ─▶ 0         rank 1   server: the second half
    rank 2   worker  ◀─ parameters 0         rank 2   worker: half of a message to each

The first ranks are servers, each with a shard of the parameters; all others are
workers. A message is a shard and one element more: the version of the shard, or that
the gradient was computed on. -1 marks the last message.

Source: Li et al., "Scaling distributed machine learning with the parameter server"
(2014).
"""

from collections.abc import Callable

import torch

from distlab.cost.asynchronous import check_servers
from distlab.errors import InvalidArgument
from distlab.train.asynchronous.server_rules import Rule

__all__ = ["Worker", "serve", "shard_of"]

NO_MORE = -1


def shard_of(flat: torch.Tensor, rank: int, servers: int) -> torch.Tensor:
    """Return the shard of flat parameters that server `rank` holds: a copy."""
    return flat.detach().tensor_split(servers)[rank].clone()


def serve(
    comm,
    rule: Rule,
    updates: int,
    *,
    servers: int = 1,
    after: Callable[[int], object] | None = None,
) -> None:
    """Answer workers by a rule until rank 0's parameters have had `updates` updates.

    Called on each server; `rule` has its shard. A rule that was used before continues.
    after: called with each new version, such as to keep a copy of `rule.values`.

    In the trace each update is a mark, "version 3".
    Raises: InvalidArgument for impossible numbers, or a gradient that is not finite,
        which is named with its rank and not applied.
    """
    _check(comm, servers, updates)
    message = rule.values.new_empty(len(rule.values) + 1)
    ready = rule.begin(range(servers, comm.world_size))
    while rule.workers:
        enough = comm.rank == 0 and rule.version >= updates
        for worker in ready + (rule.release() if enough else []):
            message[:-1] = rule.answer
            message[-1] = NO_MORE if enough else rule.version
            comm.send(message, worker)
            if enough:
                rule.leave(worker)
        if rule.workers:
            ready = _take_next(comm, rule, message, enough, after)


def _take_next(comm, rule, message, enough, after):
    """Wait for a worker's message; return the workers to answer now."""
    worker, before = comm.recv_any(message), rule.version
    values, version = message[:-1], int(message[-1])
    if version == NO_MORE:
        return rule.leave(worker)
    if enough:
        return [worker]
    finite = values.isfinite()
    if not bool(finite.all()):
        raise InvalidArgument(
            f"rank {worker} sent values that are not finite, the first at element "
            f"{int(finite.int().argmin())}, computed on version {version}. Version "
            f"{rule.version} of the parameters is unharmed: clip the gradient, or "
            "lower the learning rate."
        )
    ready = rule.push(worker, version, values)
    if rule.version > before:
        comm.mark(f"version {rule.version}")
        if after:
            after(rule.version)
    return ready


class Worker:
    """A worker's side: `pull` parameters, compute, `push` the rule's input.

        worker = Worker(comm, parameters_to_vector(model.parameters()))
        while (values := worker.pull()) is not None:
            vector_to_parameters(values, model.parameters())
            ...
            worker.push(gradient)

    like: flat, with the number of elements of the parameters.
    version: of the first server's parameters in the last pull.
    """

    def __init__(self, comm, like: torch.Tensor, *, servers: int = 1):
        _check(comm, servers)
        self.comm, self.version = comm, 0
        shards = like.detach().tensor_split(servers)
        self._incoming = [shard.new_empty(len(shard) + 1) for shard in shards]
        self._outgoing = [torch.empty_like(each) for each in self._incoming]
        self._answers = []

    def pull(self) -> torch.Tensor | None:
        """Return all servers' parameters, flat; None after the last update."""
        if not self._answers:
            self._expect_answers()
        for answer in self._answers:
            answer.wait()
        self._answers = []
        self.version = int(self._incoming[0][-1])
        if self.version == NO_MORE:
            self._tell_the_others()
            return None
        return torch.cat([shard[:-1] for shard in self._incoming])

    def push(self, values: torch.Tensor) -> None:
        """Send each server its shard, and return when all have been received.

        Each worker begins with another server, so that they do not all wait for one.
        """
        servers = len(self._outgoing)
        shards = values.detach().tensor_split(servers)
        versions = [int(shard[-1]) for shard in self._incoming]
        self._expect_answers()  # so a server that sends one need not wait for this rank
        for step in range(servers):
            server = (self.comm.rank + step) % servers
            message = self._outgoing[server]
            message[:-1], message[-1] = shards[server], versions[server]
            self.comm.send(message, server)

    def _expect_answers(self):
        incoming = enumerate(self._incoming)
        self._answers = [self.comm.irecv(shard, server) for server, shard in incoming]

    def _tell_the_others(self):
        for server, message in enumerate(self._outgoing[1:], start=1):
            message[-1] = NO_MORE
            self.comm.send(message, server)


def _check(comm, servers, updates=1):
    """Raise InvalidArgument for a world without servers, workers or updates."""
    check_servers(servers, comm.world_size)
    if type(updates) is not int or updates < 1:
        raise InvalidArgument(f"updates is a number from 1 up, and got {updates!r}.")
