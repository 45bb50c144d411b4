"""Process-wide state that each simulated rank has for itself: modes and randomness.

Ranks are coroutines of one process. A rank that resumes finds torch's grad mode as it
left it, and with up to `MOST` ranks also the random state of torch, numpy and Python;
with more, saving that would take longer than the messages.
"""

import copy
import random
from contextlib import contextmanager
from sys import modules

from numpy import random as numpys_random

from distlab.errors import InvalidArgument

__all__ = ["MOST", "Own", "one_thread"]

MOST = 32


class Own:
    """The state of the coroutine that runs; each begins with a copy of the caller's."""

    def __init__(self, world_size: int):
        self._random = world_size <= MOST
        self._first = self.save()

    def begin(self) -> None:
        """Restore a copy of the caller's state."""
        self.restore(copy.deepcopy(self._first))

    def save(self):
        """Return the state to restore when this coroutine resumes.

        Raises: InvalidArgument inside of a backward pass that has no thread.
        """
        torch = modules.get("torch")
        mode = torch.is_grad_enabled() if torch else None
        if torch and torch._C._current_graph_task_id() != -1:
            raise InvalidArgument(
                "a simulated rank cannot wait for a message inside of this backward "
                "pass: its function has imported torch, and that came too late. "
                "Import torch before run()."
            )
        if not self._random:
            return mode
        torchs = torch.default_generator.get_state() if torch else None
        return mode, torchs, numpys_random.get_bit_generator(), random.getstate()

    def restore(self, saved) -> None:
        """Restore a saved state."""
        mode = saved
        if self._random:
            mode, torchs, numpys, pythons = saved
            random.setstate(pythons)
            numpys_random.set_bit_generator(numpys)
            if torchs is not None:
                modules["torch"].default_generator.set_state(torchs)
        if mode is not None and modules["torch"].is_grad_enabled() is not mode:
            modules["torch"].set_grad_enabled(mode)


@contextmanager
def one_thread():
    """Limit torch to one thread: several would wait for each other's cores."""
    torch = modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    if torch:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(before)
