"""ZeRO 1 and 2: every rank has the whole model, and a part of what an optimizer needs.

    stage   parameters   gradients   optimizer state   moved, in times the parameters
      0         1            1             1             2 (n-1)/n    an all-reduce
      1         1            1            1/n            2 (n-1)/n    its two halves
      2         1           1/n           1/n            2 (n-1)/n
      3        1/n          1/n           1/n            3 (n-1)/n    see `fsdp`

An all-reduce is a reduce-scatter and an all-gather. Between the two each rank has the
complete mean gradient of its part, and needs no more to step that part.

Source: Rajbhandari et al., "ZeRO" (2020).
"""

from collections.abc import Callable

from torch import nn

from distlab.errors import InvalidArgument
from distlab.train.buckets import BUCKET_BYTES, FIRST_BUCKET_BYTES, grouped
from distlab.train.sameness import check_same_model, copy_from_rank_0
from distlab.train.shards import FlatGroup, all_gather_parts, mean_part

__all__ = ["ZeroOptimizer"]


class ZeroOptimizer:
    """An optimizer of one part of the parameters on each rank; all get all of them.

        optimizer = ZeroOptimizer(comm, model, lambda p: torch.optim.Adam(p), stage=2)
        loss.backward()
        optimizer.step()

    make_optimizer: makes an optimizer from a list of parameters. It must treat each
        number by itself, as SGD with momentum and Adam do: parts are cut anywhere.
    stage: 1 keeps gradients until the step; 2 gives them away during backward, a group
        at a time, and keeps this rank's part only.

    Raises: InvalidArgument for another stage, or models that differ between ranks.
    Cost: 2(n-1)/n times the parameters' bytes per rank and step.
    """

    def __init__(
        self,
        comm,
        module: nn.Module,
        make_optimizer: Callable,
        *,
        stage: int = 1,
        first_bytes: int = FIRST_BUCKET_BYTES,
        group_bytes: int = BUCKET_BYTES,
    ):
        if stage not in (1, 2):
            raise InvalidArgument(f"stage is 1 or 2, and got {stage!r}; 3 is `fsdp`.")
        self.comm, self.stage = comm, stage
        check_same_model(comm, module)
        copy_from_rank_0(comm, module)
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        self.groups = [
            FlatGroup(comm, group) for group in grouped(named, first_bytes, group_bytes)
        ]
        for group in self.groups:
            views = group.views(group.full)
            for parameter, view in zip(group.parameters, views, strict=True):
                parameter.data = view
            group.shard = nn.Parameter(group.own(group.full))
        self.optimizer = make_optimizer([group.shard for group in self.groups])
        self._under_way = []
        if stage == 2:
            self._of = {p: group for group in self.groups for p in group.parameters}
            for parameter in self._of:
                parameter.register_post_accumulate_grad_hook(self._is_ready)

    def step(self) -> None:
        """Average the gradients, step this rank's part, and get the others' parts."""
        started = len(self._under_way)
        for group in self.groups[started:]:
            self._reduce(group)
        self._settle()
        self.optimizer.step()
        for group in self.groups:
            group.shard.grad = None
            group.missing = set(group.parameters)
            all_gather_parts(self.comm, group.full)
        self._under_way = []

    def _is_ready(self, parameter):
        self._of[parameter].missing.discard(parameter)
        for group in self.groups[len(self._under_way) :]:
            if group.missing:
                break
            self._settle()  # one group's full gradient at a time
            self._reduce(group)

    def _reduce(self, group):
        flat = group.flat_gradient()
        self._under_way.append((group, self.comm.start(mean_part, flat)))

    def _settle(self):
        for group, request in self._under_way:
            if group.shard.grad is None:
                group.shard.grad = request.wait()
