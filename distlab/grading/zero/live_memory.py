"""`LiveTensors`: which memory is in use, whoever holds it.

    dispatch of every torch operation ─▶ a weak reference to each storage it touches
    nbytes()                          ─▶ those that are still there, and their size

What autograd saved for backward counts as much as what a list holds, and a view counts
as all that it is a view of, because storages are counted and not tensors.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

__all__ = ["LiveTensors", "WeakStorage"]


class WeakStorage:
    """A storage, without keeping it."""

    def __init__(self, storage: torch.UntypedStorage):
        self._reference = StorageWeakRef(storage)

    @property
    def nbytes(self) -> int:
        """Its bytes; 0 if nobody holds it any more, or it was resized to nothing."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self._reference.cdata)
        return 0 if storage is None else storage.nbytes()


class LiveTensors(TorchDispatchMode):
    """Counts the memory that this thread's operations touch while the block runs.

    What another thread makes is counted once this thread has used it.
    """

    def __init__(self):
        super().__init__()
        self._storages, self._paused = {}, False

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # else torch's compiler is imported, which takes seconds

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not self._paused:
            for thing in tree_iter((args, kwargs, result)):
                if isinstance(thing, torch.Tensor):
                    storage = thing.untyped_storage()
                    self._storages.setdefault(storage._cdata, WeakStorage(storage))
        return result

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing of what the body makes or uses."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def sizes(self) -> dict[int, int]:
        """Return the bytes of each storage that is in use, by its address."""
        sizes = {key: weak.nbytes for key, weak in self._storages.items()}
        sizes = {key: size for key, size in sizes.items() if size}
        self._storages = {key: self._storages[key] for key in sizes}
        return sizes
