"""Call origins of collectives: DDP, FSDP or the caller, and the backward pass.

DDP and FSDP issue their collectives from hooks of autograd, DDP's from C++, and DDP
waits for them in C++ at the end of backward. So each one's origin is found from the
Python frames above it, or from their absence between it and autograd.
"""

import functools
import itertools
import re
import sys
import weakref
from bisect import bisect, bisect_left
from collections.abc import Callable

import torch
from torch.nn.parallel import DistributedDataParallel

__all__ = ["OBJECTS", "CallOrigin", "in_backward"]

_PASSED = re.compile("/torch/|/launch/cuda_on_cpu.py")
_ENGINE = "torch/autograd/graph.py"
_SORTED = "rebuilt_per_bucket_param_indices"
OBJECTS = {"all_gather_object", "broadcast_object_list", "gather_object"}
OBJECTS |= {"scatter_object_list"}


def in_backward() -> bool:
    """Return True if autograd is calling."""
    return torch._C._current_graph_task_id() != -1


class CallOrigin:
    """The tracker of this process's present backward pass and its DDP modules.

    hold: called at the end of backward, before DDP waits, with the collectives begun in
        it; the function that it returns is called after DDP has waited.
    """

    def __init__(self, hold: Callable[[list], Callable[[], None]]):
        self._hold, self._pass, self._works, self._offset = hold, -1, [], 0
        self._buckets = weakref.WeakKeyDictionary()  # DDP -> its parameters, their ends
        init = DistributedDataParallel.__init__

        @functools.wraps(init)
        def known(made, /, *args, **kwargs):
            init(made, *args, **kwargs)
            self._learn_names(made)

        DistributedDataParallel.__init__ = known

    def take(self, recorder, group, tensors: list) -> str:
        """Return the origin of a collective, with "*" for its name, and its pass.

        That is "" for the caller's own, else "DDP's *" and a line "backward" below it.
        """
        task = torch._C._current_graph_task_id()
        if task not in (-1, self._pass):
            self._pass, self._works, self._offset = task, [], 0
            recorder.begin_pass()
            _at_end(self._finish)
        frame = _frame(3)
        if task != -1 and (frame is None or frame.f_code.co_filename.endswith(_ENGINE)):
            count = sum(each.numel() for each in tensors)
            return f"{self._bucket(group, count)}\nbackward"
        owner = _owner(frame)
        inner = owner.startswith("FSDP's")
        return owner + f"\n{'forward' if task == -1 else 'backward'}" * inner

    def begun(self, work) -> None:
        """Keep a collective that was begun in backward, and not waited for yet."""
        if in_backward():
            self._works.append(work)

    def _finish(self):
        works, self._works = self._works, []
        _at_end(self._hold(works))

    def _learn_names(self, module):
        """Read the layout of the buckets, after each forward until DDP rebuilds them.

        It does so in its second; in backward it holds a lock, so a query would hang.
        """

        def learn(*_):
            described = module._get_ddp_logging_data().get(_SORTED, "")
            order = [int(index) for index in described.replace(",", " ").split()]
            self._buckets[module] = _layout(module, order)
            if described:
                hook.remove()

        hook = module.register_forward_hook(learn)
        learn()

    def _bucket(self, group, count):
        """Return "DDP's * of a to b" for a bucket of `count` elements, if certain."""
        begin, self._offset = self._offset, self._offset + count
        here = [m for m in self._buckets if m.process_group is group]
        if len(here) != 1:
            return "DDP's *"
        names, ends = self._buckets[here[0]]
        first, last = bisect(ends, begin), bisect_left(ends, begin + count)
        exact = last < len(ends) and ends[last] == begin + count
        if not exact or begin not in (0, ends[first - 1]):
            return "DDP's *"
        through = f" to {names[last]}" if last > first else ""
        return f"DDP's * of {names[first]}{through}"


def _frame(depth):
    """Return the caller's frame at `depth`, or None.

    Autograd's thread of a GPU calls hooks with no frame of Python below them.
    """
    try:
        return sys._getframe(depth + 1)
    except ValueError:
        return None


def _at_end(call):
    torch.autograd.Variable._execution_engine.queue_callback(call)


def _layout(module, order):
    """Return the names of parameters in the order of DDP's buckets, and their ends."""
    skipped = set(getattr(module, "parameters_to_ignore", ()))
    named = [
        (name, each.numel())
        for name, each in module.module.named_parameters()
        if each.requires_grad and name not in skipped
    ]
    lie = [named[index] for index in order or range(len(named))[::-1]]
    ends = itertools.accumulate(count for _, count in lie)
    return [name for name, _ in lie], list(ends)


def _owner(frame):
    """Return the origin of a collective from the frames of torch above it, or ""."""
    while frame is not None and _PASSED.search(frame.f_code.co_filename):
        place, name = frame.f_code.co_filename, frame.f_code.co_name
        if name in OBJECTS:
            return f"{name}'s *"
        if "/torch/distributed/fsdp/" in place:
            here = getattr(frame.f_locals.get("self"), "_module_fqn", None)
            if here is not None:
                return f"FSDP's * of {here or 'the root module'}"
        elif place.endswith("/torch/nn/parallel/distributed.py"):
            return "DDP's *"
        elif "/torch/distributed/tensor/" in place:
            return "DTensor's *"
        frame = frame.f_back
    return ""
