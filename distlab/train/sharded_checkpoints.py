"""Sharded checkpoints by step, for lesson 12's training job with FSDP2."""

from pathlib import Path

import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.optim import Optimizer

__all__ = ["resume", "save"]


def save(folder: str, step: int, model: nn.Module, optimizer: Optimizer) -> None:
    """Write every rank's own shards into a folder named after the step."""
    dcp.save(_state(model, optimizer), checkpoint_id=Path(folder) / str(step))


def resume(folder: str, model: nn.Module, optimizer: Optimizer) -> int:
    """Load the last complete checkpoint, also of another world size; return its step.

    The file .metadata is written last, so a save that was cut off has none.
    """
    steps = [int(file.parent.name) for file in Path(folder).glob("*/.metadata")]
    if not folder or not steps:
        return 0
    state = _state(model, optimizer)
    dcp.load(state, checkpoint_id=Path(folder) / str(max(steps)))
    both = state["model"], state["optimizer"]
    set_state_dict(model, optimizer, model_state_dict=both[0], optim_state_dict=both[1])
    return max(steps)


def _state(model, optimizer):
    """Return this rank's shards, by names that do not depend on the world size."""
    both = get_state_dict(model, optimizer)
    return dict(zip(("model", "optimizer"), both, strict=True))
