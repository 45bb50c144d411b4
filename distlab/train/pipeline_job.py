"""Parts of lesson 14's training job beside its pipeline: `TorchComm`, and clipping."""

import torch
import torch.distributed as dist
from torch import nn

from distlab.errors import InvalidArgument
from distlab.train.pipeline import (
    Schedule,
    dual_pipe_v,
    gpipe,
    interleaved,
    naive,
    one_f_one_b,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)

__all__ = ["TorchComm", "clip_over_stages", "schedule_named"]

_SCHEDULES = {
    "naive": naive,
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved": interleaved,
    "zb-h1": zero_bubble_h1,
    "zb-h2": zero_bubble_h2,
    "zb-v": zero_bubble_v,
    "dualpipe-v": dual_pipe_v,
}


def schedule_named(name: str, microbatches: int) -> Schedule:
    """Return a schedule with a stage for each rank, such as "1f1b".

    Raises: InvalidArgument for an unknown name.
    """
    if name not in _SCHEDULES:
        raise InvalidArgument(f"{name!r} is none of {', '.join(_SCHEDULES)}.")
    return _SCHEDULES[name](dist.get_world_size(), microbatches)


def clip_over_stages(parameters: list[nn.Parameter], most: float) -> torch.Tensor:
    """Scale gradients to a norm over all stages of at most `most`; return the norm."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    square = nn.utils.get_total_norm(gradients).square()
    dist.all_reduce(square)
    nn.utils.clip_grads_with_norm_(parameters, most, square.sqrt())
    return square.sqrt()


class TorchComm:
    """The part of a Comm that `play` uses, on torch.distributed alone.

    Ranks with neighbouring stages have a process group of their own. NCCL sends the
    messages of a group one after another; so each pair needs an order of its own
    messages only, and does not wait for those of other pairs.
    """

    def __init__(self, device: torch.device):
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.device, self._groups = device, {}
        ranks = range(self.world_size)
        for pair in sorted({tuple(sorted((s, (s + 1) % len(ranks)))) for s in ranks}):
            group = dist.new_group([*{*pair}])  # every rank makes every group
            if self.rank in pair:
                self._groups[sum(pair) - self.rank] = group

    def isend(self, tensor: torch.Tensor, dst: int):
        """Begin to send; the request's `wait()` ends it."""
        return _Request(dist.isend, tensor.contiguous(), dst, self._groups[dst])

    def irecv(self, tensor: torch.Tensor, src: int):
        """Begin to receive; the request's `wait()` returns the tensor."""
        return _Request(dist.irecv, tensor, src, self._groups[src])

    def send_object(self, thing: object, dst: int) -> None:
        """Send an object that pickles."""
        dist.send_object_list([thing], dst, self._groups[dst], self.device)

    def recv_object(self, src: int) -> object:
        """Return the next object that a rank sends."""
        found = [None]
        dist.recv_object_list(found, src, self._groups[src], self.device)
        return found[0]

    def work(self, label: str, *, seconds: float = 0.0):
        """Return a context that labels its body for PyTorch's profiler."""
        return torch.profiler.record_function(label)


class _Request:
    """A message in flight; it keeps the tensor alive."""

    def __init__(self, begin, tensor, peer, group):
        self._tensor = tensor
        message = dist.P2POp(begin, tensor, peer, group)
        self._works = dist.batch_isend_irecv([message])

    def wait(self):
        for work in self._works:
            work.wait()
        return self._tensor
