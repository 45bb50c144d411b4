"""`LiveTensors`: which memory is in use, whoever holds it.

    dispatch of every torch operation ─▶ a weak reference to each storage it touches
    sizes()                           ─▶ those that are still there, and their size

What autograd saved for backward counts as much as what a list holds, and a view counts
as all that it is a view of, because storages are counted and not tensors.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["LiveTensors"]


class LiveTensors(TorchDispatchMode):
    """Counts the memory that this thread's operations touch while the block runs.

    What another thread makes is counted once this thread has used it.
    """

    def __init__(self):
        super().__init__()
        self._known = {}

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # else torch's compiler is imported, which takes seconds

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in _tensors((*args, *(kwargs or {}).values(), result)):
            storage = tensor.untyped_storage()
            self._known.setdefault(storage._cdata, StorageWeakRef(storage))
        return result

    def sizes(self) -> dict[int, int]:
        """Return the bytes of each storage that is in use, by its address.

        Its address is another's only once it is not in use any more.
        """
        find = torch.UntypedStorage._new_with_weak_ptr
        found = {key: find(weak.cdata) for key, weak in self._known.items()}
        sizes = {key: s.nbytes() for key, s in found.items() if s is not None}
        self._known = {key: self._known[key] for key in sizes if sizes[key]}
        return {key: size for key, size in sizes.items() if size}


def _tensors(things):
    for thing in things:
        if isinstance(thing, torch.Tensor):
            yield thing
        elif isinstance(thing, list | tuple):
            yield from _tensors(thing)
