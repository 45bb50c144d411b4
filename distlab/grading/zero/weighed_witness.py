"""`WeighedWitness`: what the check that weighs ranks hears of them, and answers.

It is that of ZeRO 3, whose layers are now a few numbers at secret places of large ones,
and it is told besides, by who started the ranks, how much memory each of them holds.
"""

from typing import ClassVar

from distlab.grading.salt import salted
from distlab.grading.zero.stack_witness import StackWitness
from distlab.grading.zero.tasks import Maker, StackTask
from distlab.grading.zero.weighing import drawn
from distlab.grading.zero.witness import demand

__all__ = ["LargeStackTask", "WeighedWitness"]

_MOST_TENSORS = 1000


class LargeStackTask(StackTask):
    """Layers of `sizes` numbers, of which `lengths` matter, at `places`."""

    def __init__(self, world_size: int, width: int, sizes: list[int], **many):
        super().__init__(world_size, width, len(sizes), **many)
        self.sizes = sizes
        draw = salted("places", self.seed)
        self.seeds = [draw.getrandbits(60) for _ in sizes]
        self.places = [
            sorted(draw.sample(range(size), length))
            for size, length in zip(sizes, self.lengths, strict=True)
        ]
        self._start = [
            drawn(*each)[places]
            for *each, places in zip(self.seeds, sizes, self.places, strict=True)
        ]

    def start(self):
        """Return of each layer what matters of its start."""
        return [flat.clone() for flat in self._start]


class WeighedWitness(StackWitness):
    """What is known of a training of large layers.

    Each look of a rank has as "held" how many bytes it holds then beside what it held
    before there was anything of the learner's in it; None if the system does not say.
    """

    def __init__(self, task: LargeStackTask):
        super().__init__(task, "SGD")
        self._held = [[] for _ in self.ranks]  # first, and last
        self._handed = [[] for _ in self.ranks]
        self._made_so_far = [0 for _ in self.ranks]

    def weighed(self, rank: int, held: int | None) -> None:
        """Hear from who started a rank how many bytes it holds now."""
        self._held[rank][1:] = [held]

    def results(self):
        """Return for each rank what the check compares."""
        return [
            result | {"handed": handed, "made": made}
            for result, handed, made in zip(
                super().results(), self._handed, self._made_so_far, strict=True
            )
        ]

    def _start(self, rank, step):
        task = self._task
        seeds = list(zip(task.seeds, task.sizes, strict=True))
        return seeds, task.width, task.x_bytes

    def _places(self, rank, step, i):
        return self._task.places[i]

    def _look(self, rank, phase, layer, look):
        super()._look(rank, phase, layer, look)
        first, last = self._held[rank][0], self._held[rank][-1]
        known = first is not None and last is not None
        self.ranks[rank].looks[-1]["held"] = last - first if known else None

    def _made(self, rank, step, tensors):
        handed = self._handed[rank]
        demand(len(handed) + len(tensors) < _MOST_TENSORS, "too many tensors")
        handed += [int(size) for _, size in tensors]
        self._made_so_far[rank] += 1
        return self._made_so_far[rank] - 1

    def _stepped(self, rank, step, number):
        self.ranks[rank].stepped.append(step)
        return Maker(self._name).rate

    _KINDS: ClassVar[dict] = StackWitness._KINDS | {
        "start": _start,
        "places": _places,
        "made": _made,
        "stepped": _stepped,
    }
