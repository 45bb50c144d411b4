"""The collectives, each algorithm one function of `comm` first.

A collective is a pattern of messages in which every rank takes part. Each function
here is written from `Comm`'s send and receive alone, works on torch tensors and numpy
arrays, and has the cost that the function of its name in `distlab.cost` predicts;
tests hold it to that.

    ring_all_reduce                the ring, one of the all-reduces
    variants("all_reduce")         all of them, by name

The modules of this folder are searched at the first access to a name. An exported
function whose name ends in that of a collective is an algorithm of it, so a new one
needs only a function in the `__all__` of a file here.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module

from distlab.collectives.reductions import AVERAGE, MAX, MIN, PRODUCT, SUM  # noqa: F401
from distlab.errors import InvalidArgument

_COLLECTIVES = (
    "broadcast",
    "reduce",
    "all_reduce",
    "gather",
    "all_gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
)
_OFFERED = ["AVERAGE", "MAX", "MIN", "PRODUCT", "SUM", "variants"]


def variants(collective: str) -> dict[str, Callable]:
    """Return the algorithms of a collective, by name.

    Raises: InvalidArgument if there is no such collective.
    """
    if collective not in _COLLECTIVES:
        raise InvalidArgument(
            f"there is no collective {collective!r}, but {', '.join(_COLLECTIVES)}."
        )
    return {
        name: function
        for name, function in _algorithms().items()
        if _collective_of(name) == collective
    }


def _collective_of(name):
    """Return the collective whose algorithm has this name, the longest that fits."""
    endings = [each for each in _COLLECTIVES if name.endswith(f"_{each}")]
    return max(endings, key=len, default="")


def _algorithms():
    """Return the algorithms that the modules of this folder export, by name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        home = import_module(f"{__name__}.{module.name}")
        names = filter(_collective_of, home.__all__)
        found |= {name: getattr(home, name) for name in names}
    return dict(sorted(found.items()))


def __getattr__(name):
    if name == "__all__":
        return sorted([*_algorithms(), *_OFFERED])
    function = _algorithms().get(name) if _collective_of(name) else None
    if function is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = function
    return function


def __dir__():
    return [*globals(), *_algorithms()]
