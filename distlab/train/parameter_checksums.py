"""Checks that only the optimizer has changed the parameters, without communication.

    step ─▶ store a checksum of each parameter ..... compare ─▶ the next step

Data parallel ranks stay equal because all take the same steps from the same values. A
parameter that something else changes on one rank makes that rank train another model,
without any error.

Only what an optimizer has stepped is watched, so steps written by hand are fine.
"""

import itertools
import weakref
from collections.abc import Iterable

import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from distlab.errors import InvalidArgument

__all__ = ["ParameterWatch", "about_to_step", "stepped"]

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_watches = weakref.WeakSet()


class ParameterWatch:
    """The checksums of a rank's parameters, from the end of one step to the next.

    A checksum is the sum of all values' bits, as integers of their width: a change of
    one value never escapes it, but values that swap places do.

    names: the contents of each parameter, (name, first index): one name at 0, or
        several in a flat shard.
    Cost: two passes over the parameters per step.
    """

    def __init__(self, comm, names: dict[nn.Parameter, list[tuple[str, int]]]):
        self.comm, self._names = comm, names
        self._seen, self._views = {}, {}
        _watches.add(self)

    def note(self, parameters: Iterable[nn.Parameter]) -> None:
        """Store the checksums of those of these parameters that are watched."""
        mine = [p for p in parameters if p in self._names]
        self._seen |= self._checksums(mine)

    def check(self, parameters: Iterable[nn.Parameter]) -> None:
        """Compare the parameters with their stored checksums.

        Raises: InvalidArgument, naming the first parameter that has changed.
        """
        mine = [p for p in parameters if p in self._seen]
        for parameter, now in self._checksums(mine).items():
            if now != self._seen[parameter]:
                raise InvalidArgument(self._described(parameter, now))

    def forget(self) -> None:
        """Drop all checksums, to accept changes; the next step stores new ones."""
        self._seen.clear()

    def _checksums(self, parameters):
        """Return parameter -> (its address, checksums of its pieces)."""
        pieces = [self._bits(parameter) for parameter in parameters]
        sums = [bits.sum(dtype=bits.dtype) for each in pieces for bits in each]
        found = iter(torch.stack(sums).tolist() if sums else [])
        return {
            parameter: (parameter.data_ptr(), list(itertools.islice(found, len(each))))
            for parameter, each in zip(parameters, pieces, strict=True)
        }

    def _bits(self, parameter):
        """Return a parameter's pieces as integers: views, made once per address."""
        place, pieces = self._views.get(parameter, (None, []))
        if place != parameter.data_ptr():
            bits = parameter.detach().view(_BITS[parameter.element_size()])
            ends = [begin for _, begin in self._names[parameter][1:]]
            pieces = bits.tensor_split(ends) if ends else [bits]
            self._views[parameter] = (parameter.data_ptr(), pieces)
        return pieces

    def _described(self, parameter, now):
        (_, sums), (_, seen) = now, self._seen[parameter]
        pairs = zip(self._names[parameter], sums, seen, strict=True)
        name = next(
            (name for (name, _), one, other in pairs if one != other),
            self._names[parameter][0][0],  # the same values in another place
        )
        return (
            f"on rank {self.comm.rank}, {name} is not as the last step left it: "
            "something other than the optimizer has changed it. Ranks with other "
            "values train other models. If you loaded or changed it on all ranks, call "
            "accept_changes() on all ranks before the next step."
        )


def about_to_step(parameters: Iterable[nn.Parameter]) -> None:
    """Check these parameters in every `ParameterWatch`; a step is about to change them.

    Raises: InvalidArgument, as `ParameterWatch.check` does.
    """
    parameters = list(parameters)
    for watch in list(_watches):
        watch.check(parameters)


def stepped(parameters: Iterable[nn.Parameter]) -> None:
    """Store the parameters' checksums in every `ParameterWatch`, after a step."""
    parameters = list(parameters)
    for watch in list(_watches):
        watch.note(parameters)


def _parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


# Every torch optimizer calls these hooks.
register_optimizer_step_pre_hook(lambda o, *_: about_to_step(_parameters_of(o)))
register_optimizer_step_post_hook(lambda o, *_: stepped(_parameters_of(o)))
