"""The process groups that carry the messages of subgroups."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import torch.distributed as dist
from torch.distributed import distributed_c10d

__all__ = ["ProcessGroups"]


class ProcessGroups:
    """The process groups that splits have made in this process.

    A call of a persistent world reuses those of the call before, in the same order: a
    process group is expensive, and a recorder has room for a limited number.
    """

    def __init__(self):
        self._made, self._taken, self._call = defaultdict(list), Counter(), 0

    def take(self, ranks: Sequence[int], name: str, call: int):
        """Return a process group of these ranks of the world, for call number `call`.

        All its members have to call this.
        """
        if call != self._call:
            self._call, self._taken = call, Counter()
        made, which = self._made[tuple(ranks), name], self._taken[tuple(ranks), name]
        self._taken[tuple(ranks), name] += 1
        if which == len(made):
            made.append(_new_group(list(ranks), name, which))
        return made[which]


def _new_group(ranks, name, which):
    """Return a new process group; only its members call this.

    Its members rendezvous under a name that torch makes from a process's number of
    groups, which differs between members with other groups. So it gets another name.
    """
    named = f"split {name} {ranks} {which}"
    of_torch = distributed_c10d._hash_ranks_to_str
    distributed_c10d._hash_ranks_to_str = lambda ranks: named
    try:
        return dist.new_group(
            ranks,
            use_local_synchronization=True,
            group_desc=f"mesh_{name}" if name else None,
        )
    finally:
        distributed_c10d._hash_ranks_to_str = of_torch
