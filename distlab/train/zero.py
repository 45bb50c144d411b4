"""ZeRO 1 and 2: every rank has the whole model, and a shard of the optimizer's state.

    stage   parameters   gradients   optimizer state   moved, in times the parameters
      0         1            1             1             2 (n-1)/n    an all-reduce
      1         1            1            1/n            2 (n-1)/n    its two halves
      2         1           1/n           1/n            2 (n-1)/n
      3        1/n          1/n           1/n            3 (n-1)/n    see `fsdp`

An all-reduce is a reduce-scatter and an all-gather. Between the two each rank has the
complete mean gradient of its shard, which suffices to step that shard.

Source: Rajbhandari et al., "ZeRO" (2020).
"""

from collections.abc import Callable

from torch import nn

from distlab.errors import InvalidArgument
from distlab.train.buckets import BUCKET_BYTES, FIRST_BUCKET_BYTES, grouped
from distlab.train.parameter_checksums import ParameterWatch, about_to_step, stepped
from distlab.train.replica_checks import (
    check_same_model,
    check_same_values,
    copy_from_rank_0,
)
from distlab.train.shards import (
    FlatGroup,
    add_to_gradient,
    all_gather_parts,
    at_the_end_of_backward,
    first_names,
    mean_part,
)

__all__ = ["ZeroOptimizer"]


class ZeroOptimizer:
    """An optimizer of one shard of the parameters per rank, all-gathered in `step`.

        optimizer = ZeroOptimizer(comm, model, lambda p: torch.optim.Adam(p), stage=2)
        loss.backward()
        optimizer.step()

    make_optimizer: makes an optimizer from a list of parameters. It must treat each
        number by itself, as SGD with momentum and Adam do: parts are cut anywhere.
    stage: 1 keeps gradients until the step; 2 reduce-scatters them during backward, a
        group at a time, and keeps this rank's part only.
    shards: this rank's parts, with their mean gradients after `reduce_gradients`.
    names: the first name of every parameter, by each name that it has.

    Backwards before a step add up. Stage 1 then still reduces once, in the step; stage
    2, which has no room for whole gradients, reduces in each backward.

    Raises: InvalidArgument for another stage, or models that differ between ranks.
    Cost: 2(n-1)/n times the parameters' bytes per rank and step; in stage 2, (n-1)/n
        more for every further backward.
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
        self.comm, self.module, self.stage = comm, module, stage
        self.names = first_names(module)
        check_same_model(comm, module)
        copy_from_rank_0(comm, module)
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        self.groups = [
            FlatGroup(comm, group) for group in grouped(named, first_bytes, group_bytes)
        ]
        for group in self.groups:
            _place(group)
            group.shard = nn.Parameter(group.own(group.full))
        self.shards = [group.shard for group in self.groups]
        self.optimizer = make_optimizer(self.shards)
        self.parameters = [p for group in self.groups for p in group.parameters]
        self.watch = ParameterWatch(comm, {p: [(name, 0)] for name, p in named})
        self._under_way, self._reduced = [], False
        self._waiting = None  # in a backward: the groups that have not been started
        if stage == 2:
            self._of = {p: group for group in self.groups for p in group.parameters}
            for parameter in self._of:
                parameter.register_post_accumulate_grad_hook(self._is_ready)

    def reduce_gradients(self) -> None:
        """Reduce mean gradients into `shards`, as for clipping; else `step` does it.

        Call it after the last backward of a step.
        """
        if self.stage == 1:
            for group in self.groups:
                self._reduce(group)
            self._settle()
        self._reduced = True

    def step(self) -> None:
        """Average the gradients, step this rank's shard, and gather the others."""
        about_to_step(self.parameters)
        if self._reduced and any(p.grad is not None for p in self.parameters):
            raise InvalidArgument(
                f"rank {self.comm.rank}: a backward ran after reduce_gradients(), and "
                "its gradients are in no shard. Reduce after the last one of a step."
            )
        if not self._reduced:
            self.reduce_gradients()
        self.optimizer.step()
        for group in self.groups:
            all_gather_parts(self.comm, group.full)
        self.zero_grad()
        stepped(self.parameters)

    def zero_grad(self) -> None:
        """Drop all gradients, to skip a step; `step` itself does so too."""
        for parameter in [*self.parameters, *self.shards]:
            parameter.grad = None
        self._reduced = False

    def accept_changes(self) -> None:
        """Accept values that were loaded into the module, on all ranks.

        Raises: InvalidArgument on every rank if they are not the same on all.
        """
        check_same_values(self.comm, self.module)
        for group in self.groups:
            _place(group)
        if hasattr(self.optimizer, "accept_changes"):
            self.optimizer.accept_changes()
        self.watch.forget()

    def _is_ready(self, parameter):
        if self._waiting is None:
            self._waiting = list(self.groups)
            at_the_end_of_backward(self._end_backward)
        self._of[parameter].missing.discard(parameter)
        while self._waiting and not self._waiting[0].missing:
            self._settle()  # one group's full gradient at a time
            self._reduce(self._waiting.pop(0))

    def _end_backward(self):
        # A parameter that this loss does not depend on delays its group until here.
        for group in self._waiting:
            self._reduce(group)
        self._settle()
        self._waiting = None

    def _reduce(self, group):
        flat = group.flat_gradient()
        group.missing = set(group.parameters)
        self._under_way.append((group, self.comm.start(mean_part, flat)))

    def _settle(self):
        for group, request in self._under_way:
            add_to_gradient(group.shard, request.wait())
        self._under_way = []


def _place(group):
    """Make a group's parameters views of its flat tensor, with their values."""
    views = group.views(group.full)
    for parameter, view in zip(group.parameters, views, strict=True):
        view.copy_(parameter.detach())
        parameter.data = view
