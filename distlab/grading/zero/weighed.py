"""The check of ZeRO 3 that weighs ranks: what they hold the system says, not they."""

from dataclasses import dataclass
from typing import ClassVar

from distlab.grading.zero.check import NUMBER
from distlab.grading.zero.layers import FreedLayers, named
from distlab.grading.zero.memory_hints import hint_for_weight

__all__ = ["WeighedLayers"]

_MIB = 2**20

# In layers, besides the parameters and gradients of its own parts. Right passes hold
#     1  the layer that works, and at the most
#     2  the next one, which may be on its way: what has come of it, and all in a row
#     2  its messages: what leaves and what arrives, each half a layer, and twice
# and none between passes. Who keeps every layer, or every full gradient, has all of
# them in the end, beside one that works; who keeps views of full gradients has the
# other half of each after backward. What is measured is that to 0.3 MiB; what else the
# code imports comes to it, such as 6 MiB for pytest.
_MOST_AT_WORK, _COUNT = 5, 12
_ALLOWED = {True: (_MOST_AT_WORK + _COUNT) / 2, False: 4}  # whether one works


def _probe(comm, *args):
    from distlab.grading.zero.weighing import train_large_stack  # torch

    return train_large_stack(comm, *args)


@dataclass
class WeighedLayers(FreedLayers):
    """Nothing stays of layers that are large, in whatever form: ranks are weighed.

    mebibytes: of a layer, or a few bytes more. Of its numbers as many matter as a layer
    of that width has.
    """

    width: int = 4
    optimizer: str = "SGD"
    mebibytes: int = 3

    _probe = staticmethod(_probe)
    _needs: ClassVar[str] = "distlab.grading.zero.weighing"
    _count, _steps = _COUNT, 1

    @property
    def title(self):
        """Say what is tried."""
        ranks = "1 rank" if self.world_size == 1 else f"{self.world_size} ranks"
        return f"{ranks}, {self._count} layers of {self.mebibytes} MiB, weighed"

    @property
    def _lengths(self):
        numbers = self.mebibytes * _MIB // NUMBER
        return [numbers + i % 2 for i in range(self._count)]

    def _new_witness(self):
        from distlab.grading.zero.weighed_witness import LargeStackTask, WeighedWitness

        many = {"steps": self._steps, "passes": self._passes}
        task = LargeStackTask(self.world_size, self.width, self._lengths, **many)
        return WeighedWitness(task)

    def _weighed(self, rank, held):
        self._witness.weighed(rank, held)

    def _too_much_state(self):
        return None  # it has none

    def _compare(self, report):
        return super()._compare(report) or self._too_heavy()

    def _too_heavy(self):
        """Return a verdict for the first look at which a rank held too much."""
        for rank, result in enumerate(self._results()):
            for place, look in enumerate(result["looks"]):
                if look["held"] is not None and look["held"] > self._most(look):
                    found = self._weight_told(rank, result["looks"], place)
                    return self._fail(found, hint_for_weight(place))
        return None

    def _weight_told(self, rank, looks, place):
        lines = [f"{'':>22}  {'held':>9}  {'allowed':>9}"]
        for each in looks[max(0, place - 9) : place + 1]:
            held, most = each["held"] / _MIB, self._most(each) / _MIB
            lines.append(f"{named(each):>22}  {held:>5.1f} MiB  {most:>5.1f} MiB")
        lines[-1] += "  ← too much"
        lines.append(
            f"All memory of rank {rank}, as the system counts it, but for what it had "
            f"before your code came.\nOne whole layer has {self._unit / _MIB:.1f} MiB, "
            f"and this rank's parts of all have {self._parts * NUMBER / _MIB:.1f} MiB."
        )
        return "\n".join(lines)

    def _most(self, look):
        """Return how many bytes a rank may hold at a look."""
        before = look["phase"] in ("start", "forward") and look["step"] == 0
        own = self._parts * NUMBER * (1 if before else 2)  # gradients come in backward
        return own + _ALLOWED[look["layer"] is not None] * self._unit
