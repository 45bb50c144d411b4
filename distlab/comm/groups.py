"""The process groups that carry the messages of subgroups."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import torch.distributed as dist

__all__ = ["ProcessGroups"]


class ProcessGroups:
    """The process groups that splits have made in this process.

    A call of a persistent world takes those of the call before, in the same order: a
    process group is expensive, and a rank notes what it does in a limited number.
    """

    def __init__(self):
        self._made, self._taken, self._call = defaultdict(list), Counter(), 0

    def take(self, ranks: Sequence[int], name: str, call: int):
        """Return a process group of these ranks of the world, for call number `call`.

        All its members have to ask for it.
        """
        if call != self._call:
            self._call, self._taken = call, Counter()
        made, which = self._made[tuple(ranks), name], self._taken[tuple(ranks), name]
        self._taken[tuple(ranks), name] += 1
        if which == len(made):
            desc = f"mesh_{name}" if name else None
            how = {"use_local_synchronization": True, "group_desc": desc}
            made.append(dist.new_group(list(ranks), **how))
        return made[which]
