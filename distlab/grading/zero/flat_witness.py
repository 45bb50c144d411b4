"""`FlatWitness`: what the check of ZeRO 1 hears from each rank, and what it answers.

"start"             ──▶      the parameters
"flat", what it is  ──▶      this rank's gradient there; nothing after the last step
"""

from typing import ClassVar

from distlab.grading.zero.tasks import FlatTask
from distlab.grading.zero.witness import RankWitness, Witness, demand, numbers_of

__all__ = ["FlatWitness"]


class _Rank(RankWitness):
    """flats: the parameters at the start and after each step. kept: bytes, as told."""

    def __init__(self, name):
        super().__init__(name)
        self.flats, self.kept = [], 0

    def result(self):
        return super().result() | {"flats": self.flats, "kept": self.kept}


class FlatWitness(Witness):
    """What is known of a training of one flat tensor."""

    def __init__(self, task: FlatTask, name: str):
        super().__init__([_Rank(name) for _ in range(task.world_size)])
        self._task = task

    def _start(self, rank, step):
        return self._task.start()[0].tolist()

    def _kept(self, rank, step, nbytes):
        self.ranks[rank].kept = int(nbytes)

    def _flat(self, rank, step, numbers):
        """Return a rank's gradient for these parameters; None after the last step."""
        own, task = self.ranks[rank], self._task
        demand(not own.ended, "training is over")
        flat = numbers_of(numbers, [task.numbers])
        own.flats.append(flat.tolist())
        own.ended = len(own.flats) > task.steps
        if own.ended:
            return None
        own.began.append(step)
        (gradient,) = task.gradients(rank, len(own.flats) - 1, 0, [flat])
        return gradient.tolist()

    _KINDS: ClassVar[dict] = Witness._KINDS | {
        "start": _start,
        "kept": _kept,
        "flat": _flat,
    }
