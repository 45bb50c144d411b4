"""Whole and sharded parameters of ranks that share a model, and their differences.

                        sharded parameter      whole parameter
gradient                this rank's own        the same on all; with sequence
                                               parallelism each has part of it
counts in the norm      on every rank          on one
dropout on its output   another mask on each   the same mask
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from distlab.collectives import ring_all_reduce
from distlab.train.optimizer_steps import clip_over

__all__ = ["RegionSeeds", "clip_gradients", "finalize_gradients", "sharded_parameters"]


def sharded_parameters(module: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of which each rank has a part; all others are whole."""
    found = {
        getattr(each, name): None
        for each in module.modules()
        for name in getattr(each, "sharded", ())
    }
    return [parameter for parameter in found if parameter is not None]


def finalize_gradients(comm, module: nn.Module) -> None:
    """All-reduce gradients of whole parameters that each saw part of the sequence.

    Once after the backwards of a step; it does nothing for modules without sequence.
    Megatron-LM: finalize_model_grads.

    Cost: one all-reduce of these gradients.
    """
    sharded = set(sharded_parameters(module))
    inside = [each for each in module.modules() if getattr(each, "sequence", False)]
    whole = {p: None for each in inside for p in each.parameters() if p not in sharded}
    gradients = [p.grad for p in whole if p.grad is not None]
    if gradients:
        total = torch.cat([gradient.flatten() for gradient in gradients])
        ring_all_reduce(comm, total)
        parts = total.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


def clip_gradients(
    parameters: Iterable[nn.Parameter], most: float, tp, *others, sharded=(), again=()
) -> float:
    """Scale gradients so that the norm over all ranks is `most` at most; return it.

    tp: the Comm that shares the model; `sharded` parameters count on each of its
        ranks, all others once. others: Comms whose ranks have other parameters, such
        as the stages of a pipeline.
    again: parameters that another stage counts, such as a tied embedding.
    Cost: an all-reduce of one number for each Comm.
    """
    parameters, sharded = list(parameters), set(sharded)
    whole = [p for p in parameters if p not in sharded]
    uncounted = [*again, *(whole if tp.rank else ())]  # these count on one rank of tp
    return clip_over(parameters, most, [tp, *others], uncounted)


class RegionSeeds:
    """Random numbers for dropout: the same on all ranks, or this rank's own.

        seeds = RegionSeeds(comm, 1)
        x = dropout(x)              # whole on every rank: the same mask everywhere
        with seeds.split():
            hidden = dropout(hidden)        # cut among the ranks: another mask on each

    With sequence parallelism norms and residuals are cut, too. Ranks of other replicas
    of the model take another seed. Megatron-LM: model-parallel-rng.
    """

    def __init__(self, comm, seed: int):
        device = torch.device(comm.device)
        self._source = torch.cuda if device.type == "cuda" else torch
        torch.manual_seed(seed + 1 + comm.rank)
        self._own = self._source.get_rng_state()
        torch.manual_seed(seed)

    @contextmanager
    def split(self) -> Iterator[None]:
        """Draw this rank's own numbers in here, and the shared ones after it."""
        shared = self._source.get_rng_state()
        self._source.set_rng_state(self._own)
        try:
            yield
        finally:
            self._own = self._source.get_rng_state()
            self._source.set_rng_state(shared)
