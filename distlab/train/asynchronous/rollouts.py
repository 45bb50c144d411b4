"""Reinforcement learning on three kinds of ranks: a buffer, a trainer, rollout workers.

    rank 0   buffer           rollouts that wait, the newest weights, the bound
    rank 1   trainer          ◀─ a batch of rollouts ─ 0    ─ new weights ─▶ 0
    rank 2   rollout worker   ◀─ weights ─ 0                ─ a rollout ─▶ 0
    rank 3   rollout worker   the same

A **rollout** is one sample of the policy with its reward, a flat tensor. Its age is the
number of updates between the weights that it was generated with and those that are
trained with it. Rank 0 computes nothing, so that generation goes on during a training
step. How far it may run ahead is the bound: 0 is synchronous, 1 is one step off.

A message is weights or a rollout, padded to the longer, and one element more: the
version of the weights. -1 marks the last message.

Source: Fu et al., "AReaL: a large-scale asynchronous reinforcement learning system for
language reasoning" (2025), section 5.1.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from distlab.errors import InvalidArgument
from distlab.simulated.per_rank_globals import one_thread

__all__ = ["RolloutPlan", "may_start", "replay_rollouts", "run_rollouts"]

BUFFER, TRAINER, NO_MORE = 0, 1, -1


@dataclass(frozen=True)
class RolloutPlan:
    """The sizes and limits of one run, the same on all ranks.

    weights: flat, of the policy at the start. elements: of a rollout.
    batch: rollouts for an update. updates: after which training ends.
    bound: see `may_start`. drop_late: don't train with a rollout of a greater age.

    Raises: InvalidArgument for sizes, a bound or weights that can't be.
    """

    weights: torch.Tensor
    elements: int
    batch: int
    updates: int
    bound: float = math.inf
    drop_late: bool = False

    def __post_init__(self):
        for name in ("elements", "batch", "updates"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgument(
                    f"{name} is a number from 1 up, and got {value!r}."
                )
        if not self.bound >= 0:
            raise InvalidArgument(f"a bound is 0 or more, and got {self.bound!r}.")
        if self.weights.dim() != 1:
            raise InvalidArgument(
                "a policy's weights are one flat tensor, and got shape "
                f"{list(self.weights.shape)}. parameters_to_vector makes one."
            )

    def message(self) -> torch.Tensor:
        """Return room for one message: weights or a rollout, and a version."""
        return self.weights.new_zeros(max(len(self.weights), self.elements) + 1)


def may_start(version: int, accepted: int, running: int, plan: RolloutPlan) -> float:
    """Return the number of rollouts that may start now; none if it is 0 or less.

    Batch b trains version b to b + 1, so rollouts for the batches up to version + bound
    may exist, and no more. Those in order of arrival can be older: one that takes long
    is passed by others, and `drop_late` makes the bound hold for it, too.

    accepted: rollouts that have arrived, without those that were dropped.
    """
    return (version + plan.bound + 1) * plan.batch - accepted - running


def run_rollouts(
    comm,
    plan: RolloutPlan,
    generate: Callable[[torch.Tensor], torch.Tensor],
    train: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    allowed: Callable = may_start,
) -> torch.Tensor | int:
    """Train a policy on its own rollouts; called on all ranks.

    generate: from weights to a rollout; called on ranks 2 and up.
    train: from weights, rollouts [batch, elements] and their ages [batch] to new
        weights; called on rank 1.
    allowed: with the arguments of `may_start`.

    In the trace of rank 0 each update is a mark, "version 3".
    Returns: on rank 1 the weights after the last update; on rank 0 the number of
        dropped rollouts, on others of generated ones.
    Raises: InvalidArgument for fewer than 3 ranks, or a rollout of another size.
    """
    if comm.world_size < 3:
        raise InvalidArgument(
            "rollouts need a buffer, a trainer and a worker, 3 ranks at least, and got "
            f"{comm.world_size}."
        )
    if comm.rank == BUFFER:
        return _Buffer(comm, plan, allowed).serve()
    if comm.rank == TRAINER:
        return _train(comm, plan, train)
    return _generate(comm, plan, generate)


class _Buffer:
    """Rank 0's state. Invariant: running + idle workers = all workers not yet ended.

    idle: workers without weights. waiting: (version, rollout), in order of arrival.
    trains: whether the trainer has a batch.
    """

    def __init__(self, comm, plan, allowed):
        self.comm, self.plan, self.allowed = comm, plan, allowed
        self.weights, self.version, self.trains = plan.weights, 0, False
        self.accepted, self.running, self.dropped = 0, 0, 0
        self.idle, self.waiting = [*range(2, comm.world_size)], []

    def serve(self):
        """Answer all ranks until the last update; return how many were dropped."""
        message = self.plan.message()
        while self.version < self.plan.updates:
            self._start_rollouts(message)
            self._start_training()
            self._take_next(message)
        message[-1] = NO_MORE
        for rank in [*self.idle, TRAINER]:
            self._end(rank, message)
        for _ in range(self.running):
            self._end(self.comm.recv_any(self.plan.message()), message)
        return self.dropped

    def _start_rollouts(self, message):
        state = self.version, self.accepted, self.running
        ready = min(len(self.idle), self.allowed(*state, self.plan))
        for _ in range(max(0, int(ready))):
            message[: len(self.weights)], message[-1] = self.weights, self.version
            self.comm.send(message, self.idle.pop(0))
            self.running += 1

    def _start_training(self):
        if self.plan.drop_late:
            self._drop_late()
        batch = self.waiting[: self.plan.batch]
        if self.trains or len(batch) < self.plan.batch:
            return
        ages = [self.version - version for version, _ in batch]
        rows = torch.stack([rollout for _, rollout in batch])
        self.comm.send(torch.cat([rows, rows.new_tensor(ages)[:, None]], 1), TRAINER)
        self.waiting, self.trains = self.waiting[self.plan.batch :], True

    def _drop_late(self):
        oldest = self.version - self.plan.bound
        kept = [each for each in self.waiting if each[0] >= oldest]
        late = len(self.waiting) - len(kept)
        self.waiting, self.dropped = kept, self.dropped + late
        self.accepted -= late

    def _take_next(self, message):
        """Wait for a rollout, or for weights that are one version newer."""
        rank = self.comm.recv_any(message)
        if rank == TRAINER:
            self.weights = message[: len(self.weights)].clone()
            self.version, self.trains = self.version + 1, False
            self.comm.mark(f"version {self.version}")
            return
        rollout = message[: self.plan.elements].clone()
        self.waiting.append((int(message[-1]), rollout))
        self.idle.append(rank)
        self.running, self.accepted = self.running - 1, self.accepted + 1

    def _end(self, rank, message):
        size = (self.plan.batch, self.plan.elements + 1)
        last = torch.full(size, -1.0, dtype=message.dtype)
        self.comm.send(last if rank == TRAINER else message, rank)


def _train(comm, plan, train):
    """Train with each batch that rank 0 sends; return the last weights."""
    batch = plan.weights.new_empty(plan.batch, plan.elements + 1)
    weights, message = plan.weights, plan.message()
    while comm.recv(batch, BUFFER)[0, -1] >= 0:
        weights = train(weights, batch[:, :-1].clone(), batch[:, -1].clone())
        message[: len(weights)] = weights
        comm.send(message, BUFFER)
    return weights


def _generate(comm, plan, generate):
    """Generate a rollout with each version that arrives; return how many."""
    message, count = plan.message(), 0
    while comm.recv(message, BUFFER)[-1] >= 0:
        rollout = generate(message[: len(plan.weights)].clone())
        if rollout.shape != (plan.elements,):
            raise InvalidArgument(
                f"rank {comm.rank} generated a rollout of shape {list(rollout.shape)}, "
                f"where the plan has [{plan.elements}]."
            )
        message[: plan.elements] = rollout
        comm.send(message, BUFFER)
        count += 1
    return count


@one_thread()
def replay_rollouts(
    ages: Sequence[Sequence[int]],
    weights: torch.Tensor,
    generate: Callable[[torch.Tensor, int], torch.Tensor],
    train: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> list[torch.Tensor]:
    """Train in one process, with rollouts of the same ages as in a run.

    ages: of each batch. generate: from weights and a count to rows of rollouts.
    train: from weights and rows to new weights. Weights [..., elements] and rows
        [..., count, elements] may be those of many runs at once.
    Returns: the weights of all versions, `weights` first.
    """
    versions = [weights]
    for batch in ages:
        newest = len(versions) - 1
        counts = Counter(newest - int(age) for age in batch)
        parts = [generate(versions[number], count) for number, count in counts.items()]
        versions.append(train(versions[-1], torch.cat(parts, -2)))
    return versions
