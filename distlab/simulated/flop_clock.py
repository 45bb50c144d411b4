"""The time of torch's products on a simulated rank's clock: FLOPs over a rate.

Only matrix products, convolutions and attention count, as in MFU: what moves memory
rather than multiplies, such as a norm, takes no time, and a product of any shape runs
at one rate. Causal attention counts as the whole square.
"""

from functools import cache

import torch
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["FlopClock"]

_FLOPS = dict(flop_counter.flop_registry)
_aten = torch.ops.aten
_FLOPS |= {  # attention on CPUs, which torch's table lacks
    _aten._scaled_dot_product_flash_attention_for_cpu: flop_counter.sdpa_flop,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        flop_counter.sdpa_backward_flop
    ),
}


class FlopClock(TorchDispatchMode):
    """A mode in which products of torch advance the clock of the rank that runs.

    Their time is recorded as work, "forward" or "backward", unless it is part of a
    `comm.work`; products without a gap between them are one event.
    """

    def __init__(self, engine, flops_per_s: float):
        super().__init__()
        self._engine, self._flops_per_s = engine, flops_per_s
        self._unrecorded = {}  # rank -> start, end, step and label

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run an operator of torch, then advance the clock by the time of its FLOPs."""
        kwargs = kwargs or {}
        if _is_made_of_others(function):  # such as `linear` in inference mode
            with self:
                return function.decompose(*args, **kwargs)
        made = function(*args, **kwargs)
        if count := _FLOPS.get(function._overloadpacket):
            self._pass(count(*args, **kwargs, out_val=made) / self._flops_per_s)
        return made

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled here, and asking takes long

    def _pass(self, seconds):
        engine, rank = self._engine, self._engine.running
        if rank >= engine.world_size:  # a collective in the background
            return
        start = max(engine.clock.now, engine.ahead_s[rank])
        end = engine.ahead_s[rank] = start + seconds
        engine.is_ahead[rank] = True
        if engine.at_work[rank]:
            return
        label = "forward" if torch._C._current_graph_task_id() == -1 else "backward"
        before = self._unrecorded.get(rank)
        if before and (before[1], before[3]) == (start, label):
            start = self._unrecorded.pop(rank)[0]
        self.record(rank)
        self._unrecorded[rank] = start, end, engine.steps[rank], label

    def record(self, rank: int | None = None) -> None:
        """Record the work of a rank, of all by default, that may have been going on."""
        for each in [*self._unrecorded] if rank is None else [rank]:
            if each in self._unrecorded:
                *span, label = self._unrecorded.pop(each)
                self._engine.table.point(each, *span, ("work", label))


@cache
def _is_made_of_others(function):
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    counted = function._overloadpacket in _FLOPS
    return not counted and function.has_kernel_for_dispatch_key(key)
