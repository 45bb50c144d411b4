"""CPU offload: optimizer state, kept and stepped in the CPU's memory.

    GPU    parameters and gradients, 16 bits     ── gradients ──▶    CPU    masters,
                                                 ◀─ new values ──           moments

Per element of the shard 2 bytes go each way, and 12 bytes less stay on the GPU.

Source: Ren et al., "ZeRO-Offload: democratizing billion-scale model training" (2021).
"""

from collections.abc import Callable, Iterable

import torch
from torch import nn

from distlab.train.optimizer_steps import MasterWeights

__all__ = ["Offloaded"]


class Offloaded(MasterWeights):
    """`MasterWeights` whose copies, and so the optimizer's state, are on a device.

        Offloaded(sharded.shards, lambda p: torch.optim.Adam(p))

    moved_bytes: of gradients sent there and of values copied back, counted also where
        both devices are the same, as they are without a GPU.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        make_optimizer: Callable,
        device: str | torch.device = "cpu",
    ):
        self.device, self.moved_bytes = torch.device(device), 0
        super().__init__(parameters, make_optimizer)
        self.moved_bytes = 0  # from here on; the first copy is no part of a step

    def fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy on the device, moved in its own type and widened there."""
        self.moved_bytes += tensor.nbytes
        return super().fetch(tensor.to(self.device))

    def give_back(self, master: torch.Tensor, parameter: torch.Tensor) -> None:
        """Copy a master's values back, rounded before the copy."""
        self.moved_bytes += parameter.nbytes
        parameter.copy_(master.to(parameter.dtype))
