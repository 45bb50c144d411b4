"""`RandomState`: the state of this rank's random number generators."""

import random

import numpy as np
import torch

__all__ = ["RandomState"]


class RandomState:
    """The generators of torch, on CPU and GPU, of numpy and of Python, of this process.

    It holds nothing: `state_dict` reads them, and `load_state_dict` sets them.
    """

    def state_dict(self) -> dict:
        """Return the states as tensors and plain data."""
        name, keys, *rest = np.random.get_state()
        version, numbers, gauss = random.getstate()
        return {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "numpy": [name, keys.tolist(), *rest],
            "python": [version, list(numbers), gauss],
        }

    def load_state_dict(self, state: dict) -> None:
        """Set the generators, so that they continue as after `state_dict`."""
        torch.set_rng_state(state["torch"])
        if len(state["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(state["cuda"])
        name, keys, *rest = state["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        version, numbers, gauss = state["python"]
        random.setstate((version, tuple(numbers), gauss))
