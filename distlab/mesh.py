"""`Mesh`: the ranks of a world in a grid, with a subgroup along each mesh dimension.

    Mesh(comm, dp=2, tp=4)      tp ─▶
                            dp   0  1  2  3      tp: {0 1 2 3} {4 5 6 7}
                             ▼   4  5  6  7      dp: {0 4} {1 5} {2 6} {3 7}

The last dimension is the innermost: its groups are ranks with consecutive numbers,
which share a node. So tensor parallelism, which sends most, is named last.
"""

import math
from itertools import product

from distlab.errors import InvalidArgument

__all__ = ["Mesh"]

_TAKEN = ("comm", "sizes", "coordinates", "ranks")


class Mesh:
    """A grid of a Comm's ranks; all of them must make it, with the same sizes.

        mesh = Mesh(comm, pp=2, dp=2, tp=2)
        ring_all_reduce(mesh.tp, partial_sums)
        ring_all_reduce(mesh["dp", "tp"], loss)

    mesh.tp, mesh["tp"]: the Comm among the ranks that differ in that coordinate only.
    mesh["dp", "tp"]: among those that differ in these, the last one innermost. All of
        its ranks must make the first access together.
    sizes, coordinates: of each dimension, by name. comm: the Comm of all.

    Raises: InvalidArgument if the sizes do not multiply to the number of ranks;
        CollectiveMismatch if other ranks make another mesh.
    Source: torch's DeviceMesh has the same order; Narayanan et al., "Efficient
        large-scale language model training on GPU clusters" (2021), section 3, why.
    """

    def __init__(self, comm, **sizes: int):
        _check(sizes, comm.world_size)
        self.comm, self.sizes = comm, sizes
        grid = product(*map(range, sizes.values()))
        self._places = [dict(zip(sizes, place, strict=True)) for place in grid]
        self.coordinates = self._places[comm.rank]
        self._comms = {}
        for dimension in sizes:
            self._make((dimension,))

    def __repr__(self):
        at = ", ".join(f"{name}={at}" for name, at in self.coordinates.items())
        return f"{self._words()} at {at}"

    def __getattr__(self, name):
        if name not in self.__dict__.get("sizes", ()):
            raise AttributeError(f"this mesh has no dimension {name!r}")
        return self._comms[name,]

    def __getitem__(self, names: str | tuple[str, ...]):
        """Return the Comm along one dimension, or along several."""
        names = (names,) if isinstance(names, str) else tuple(names)
        if not names or len(set(names)) < len(names) or not set(names) <= {*self.sizes}:
            raise InvalidArgument(
                f"{self._words()} has the dimensions {', '.join(self.sizes)}, and not "
                f"{', '.join(map(repr, names)) or 'none'}."
            )
        if names not in self._comms:
            self._make(names)
        return self._comms[names]

    def ranks(self, **coordinates: int) -> list[int]:
        """Return the ranks of `comm` that have these coordinates, in order."""
        return [
            rank
            for rank, place in enumerate(self._places)
            if coordinates.items() <= place.items()
        ]

    def _make(self, names):
        """Split off the group along these dimensions; all ranks call this."""
        others = {n: at for n, at in self.coordinates.items() if n not in names}
        color = self.ranks(**others)[0]
        key = 0
        for name in names:
            key = key * self.sizes[name] + self.coordinates[name]
        name = "_".join(names)
        words = f"{self._words()}.{name}"
        self._comms[names] = self.comm.split_as(color, key, name, words)

    def _words(self):
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"Mesh({sizes})"


def _check(sizes, world_size):
    words = " × ".join(f"{name}={size}" for name, size in sizes.items())
    for name, size in sizes.items():
        if name.startswith("_") or name in _TAKEN:
            raise InvalidArgument(f"a mesh has no room for a dimension {name!r}.")
        if type(size) is not int or size < 1:
            raise InvalidArgument(
                f"the size of a mesh dimension is a whole number above 0, not {words}."
            )
    if not sizes:
        raise InvalidArgument("a mesh has dimensions, such as Mesh(comm, dp=2, tp=2).")
    if (total := math.prod(sizes.values())) != world_size:
        raise InvalidArgument(
            f"{words} makes {total} ranks, and there are {world_size}. The sizes of a "
            "mesh multiply to the number of ranks."
        )
