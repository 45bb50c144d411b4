"""Parts of an optimizer step: clipping by one norm of all gradients, master weights."""

from collections.abc import Callable, Iterable

import torch
from torch import nn

from distlab.collectives import ring_all_reduce
from distlab.train.parameter_checksums import about_to_step, stepped

__all__ = ["MasterWeights", "clip_gradients", "clip_over"]


def clip_gradients(parameters: Iterable[nn.Parameter], most: float, comm=None) -> float:
    """Shrink all gradients together so that their norm is `most` at most; return it.

    After averaging all ranks have the same gradients and so find the same norm. Before
    it each would shrink by its own. Where ranks hold shards, the norm is of all shards
    together: pass the shards, once their gradients are averaged, and their Comm.
    """
    return clip_over(parameters, most, [] if comm is None else [comm])


def clip_over(
    parameters: Iterable[nn.Parameter], most: float, comms, uncounted: Iterable = ()
) -> float:
    """Clip like `clip_gradients`, with squares summed over Comms, such as tp and pp.

    uncounted: parameters that another rank counts, such as those that all ranks have.
    Cost: an all-reduce of one number for each Comm.
    """
    parameters, uncounted = list(parameters), set(uncounted)
    gradients = [p.grad for p in parameters if p.grad is not None]
    counted = [p.grad for p in parameters if p.grad is not None and p not in uncounted]
    squares = [torch.linalg.vector_norm(g, dtype=torch.float64) ** 2 for g in counted]
    total = sum(squares, torch.zeros((), dtype=torch.float64)).reshape(1)
    for comm in comms:
        total = total.to(comm.device)
        ring_all_reduce(comm, total)
    norm = total.sqrt().item()
    scale = most / (norm + 1e-6)  # as torch's, which never divides by zero
    if scale < 1:
        for gradient in gradients:
            gradient *= scale
    return norm


class MasterWeights:
    """An optimizer of a bfloat16 model on float32 copies of its parameters.

        optimizer = MasterWeights(model.parameters(), lambda p: torch.optim.Adam(p))

    A bfloat16 has 8 bits of precision: adding a step smaller than 1/256 of a weight
    changes nothing. So steps are added up in float32, and the model gets the rounding.

    make_optimizer: makes an optimizer from a list of parameters.
    Source: Micikevicius et al., "Mixed precision training" (2018), section 3.1.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], make_optimizer: Callable):
        self.parameters = [p for p in parameters if p.requires_grad]
        self.masters = [nn.Parameter(self.fetch(p.detach())) for p in self.parameters]
        self.optimizer = make_optimizer(self.masters)

    def step(self) -> None:
        """Take a step with the model's gradients, and round the result into it."""
        about_to_step(self.parameters)
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            if parameter.grad is not None:
                master.grad = self.fetch(parameter.grad)
        self.optimizer.step()
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            self.give_back(master.detach(), parameter.detach())
            master.grad = None  # 4 bytes per element, not needed until the next step
        stepped(self.parameters)

    def fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor for the optimizer: float32, or more if it is so."""
        dtype = torch.promote_types(tensor.dtype, torch.float32)
        return tensor.to(dtype, copy=True)

    def give_back(self, master: torch.Tensor, parameter: torch.Tensor) -> None:
        """Copy a master's values into a parameter, rounded."""
        parameter.copy_(master)

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def accept_changes(self) -> None:
        """Copy the model's values to the masters, as after loading a checkpoint."""
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            master.detach().copy_(parameter.detach())

    def state_dict(self) -> dict:
        """Return the masters and the optimizer's own state."""
        masters = [master.detach() for master in self.masters]
        return {"masters": masters, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        """Load a state that `state_dict` returned, and round it into the model."""
        for master, values in zip(self.masters, state["masters"], strict=True):
            master.detach().copy_(values)
        self.optimizer.load_state_dict(state["optimizer"])
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            self.give_back(master.detach(), parameter.detach())
