"""What a check has the ranks do: make inputs, call the learner's function, look."""

import reprlib
import time
from collections.abc import Iterable
from numbers import Real
from types import FunctionType

from distlab import collectives
from distlab.collectives.chunks import split
from distlab.grading.calling import called

__all__ = [
    "MARKS",
    "all_gather_probe",
    "all_reduce_probe",
    "broadcast_probe",
    "in_chunks",
    "lock",
    "lock_the_library",
    "number_in",
    "reduce_scatter_probe",
    "shown",
    "turns_probe",
    "unreturned",
    "with_root",
]

MARKS = "(check) {} begins", "(check) {} has ended"
_SPEAK_S, _PREPARE_S = 0.01, 0.06


def broadcast_probe(comm, function, root, numbers) -> dict:
    """Return what the tensor holds after the call; root: () or (root,)."""
    lock_the_library()
    tensor = _tensor(comm, numbers)
    returned = called(function, comm, tensor, *root)
    return {"held": tensor.tolist(), "returned": shown(returned)}


def all_gather_probe(comm, function, inputs) -> dict:
    """Return what the pieces hold after the call, and what stands in their list."""
    import torch  # here, because only ranks may load it

    lock_the_library()
    pieces = [torch.tensor(numbers) for numbers in inputs]
    given = list(pieces)
    returned = called(function, comm, pieces)
    return {
        "held": [piece.tolist() for piece in given],
        "listed": _lists(pieces),
        "returned": _lists(returned),
    }


def _lists(things):
    """Return tensors as lists of numbers; anything else is none."""
    if not isinstance(things, list | tuple):
        return []
    return [thing.tolist() for thing in things if hasattr(thing, "tolist")]


def all_reduce_probe(comm, function, numbers) -> dict:
    """Return what the tensor holds after the call, and what the function returned."""
    lock_the_library()
    tensor = _tensor(comm, numbers)
    returned = called(function, comm, tensor)
    return {"held": tensor.tolist(), "returned": shown(returned)}


def reduce_scatter_probe(comm, function, numbers) -> dict:
    """Return the same for a function that is given the tensor in chunks."""
    lock_the_library()
    tensor = _tensor(comm, numbers)
    returned = called(function, comm, split(tensor, comm.world_size))
    index = number_in(returned)
    whole = isinstance(index, int) and 0 <= index < comm.world_size
    return {
        "held": tensor.tolist(),
        "owner": index if whole else None,
        "returned": shown(returned),
    }


def in_chunks(function, comm, tensor):
    """Call a function that is given the tensor in chunks, one for each rank."""
    return function(comm, split(tensor, comm.world_size))


def with_root(function, root, comm, tensor):
    """Call a function that is given a tensor and, if root is no empty tuple, a root."""
    return function(comm, tensor, *root)


def unreturned(function, comm, tensor):
    """Call a function of whose result nothing is wanted, not even that it travels."""
    function(comm, tensor)


def turns_probe(comm, function, prepares=False, *more) -> dict:
    """Return how often the function had this rank "speak", and "prepare" if it does.

    All begin together, and lower ranks speak longer, so that ranks which do not wait
    end in the wrong order. The barrier for it is the first event of each rank.
    """
    lock_the_library()
    comm.barrier()
    acts = {"prepare": _Act(comm, "prepare", _PREPARE_S)} if prepares else {}
    seconds = _SPEAK_S * (comm.world_size - comm.rank)
    acts["speak"] = _Act(comm, "speak", seconds)
    called(function, comm, *acts.values(), *more)
    return {name: act.calls for name, act in acts.items()}


class _Act:
    """What the learner's function calls: it takes a while, and marks both its ends."""

    def __init__(self, comm, name, seconds):
        self._comm, self._seconds = comm, seconds
        self._begins, self._ended = (mark.format(name) for mark in MARKS)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        self._comm.mark(self._begins)
        time.sleep(self._seconds)
        self._comm.mark(self._ended)


def _tensor(comm, numbers):
    import torch  # here, because only ranks may load it

    dtype = torch.float32 if comm.world_size <= 8 else torch.float64
    return torch.tensor(numbers, dtype=dtype)


def shown(value) -> str:
    """Return a value as one short line."""
    return " ".join(reprlib.repr(value).split())


def number_in(value) -> int | float | None:
    """Return a number of Python, numpy or torch as Python's own; None for the rest."""
    if hasattr(value, "item"):
        try:
            value = value.item()
        except (ValueError, RuntimeError):  # numpy's and torch's word for several
            return None
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, Real) else None


def lock_the_library():
    """Make distlab's own collectives unusable in this rank, also under another name."""
    lock([collectives], _library_call)


def lock(modules: Iterable, refuse: FunctionType) -> None:
    """Have every function and class that these modules offer do what `refuse` does.

    refuse: takes any arguments, and uses nothing of a function around it.
    """
    for module in modules:
        for name in module.__all__:
            offered = getattr(module, name)
            is_class = isinstance(offered, type)
            own = vars(offered).get("__init__") if is_class else offered
            # Code that uses a name around it, as super() does, cannot be exchanged.
            if isinstance(own, FunctionType) and not own.__code__.co_freevars:
                own.__code__ = refuse.__code__
            elif is_class:
                offered.__init__ = refuse


def _library_call(*args, **options):
    raise NotImplementedError(
        "this exercise asks for your own; distlab's is locked here"
    )
