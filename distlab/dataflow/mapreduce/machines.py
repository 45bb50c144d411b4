"""Simulated machines: their number, their speed and the duration of a task.

The defaults describe the machines that sort 10¹⁰ records in the paper, as far as it
describes them.

Source: Dean and Ghemawat, "MapReduce" (2004), section 5.
"""

from dataclasses import dataclass
from random import Random

from distlab.dataflow.mapreduce.schedule import Attempt
from distlab.units import GB, MiB

__all__ = ["Machines"]

_USUALLY_SLOW = 8 / 9  # without the slowest tenth of all outliers


@dataclass(frozen=True)
class Machines:
    """Parameters of simulated machines, each published or assumed.

    workers: 1,746, as in section 5.5 of the paper.
    split_bytes: what a map task reads, section 5.3.
    startup_s: "about a minute" until the program is everywhere, section 5.2.
    map_s: median of a map task: when all workers together read 13 GB/s, the peak in
    section 5.3.
    reduce_s: median of a reduce task. Assumed, together with the next two: one choice
    for all of the paper's runs, made with their times in view.
    spread: of the logarithm of these times, from attempt to attempt. Assumed.
    slow_share: how many of the machines are slow. Assumed; how much is lost without
    backups depends on it more than on anything else.
    slow_least, slow_usual, slow_most: how many times slower those are. Four in five
    outliers take 1.5 to 2.5 times the median, one in ten more than 10 times
    (Ananthanarayanan et al., "Reining in the Outliers in Map-Reduce Clusters using
    Mantri", 2010, section 4). That last tenth is left out here. Assumed: the others'
    factors are evenly likely below 2.5, and above it their logarithms are.
    fetch_share, write_share: of a reduce's time; between the two it sorts. Assumed.
    look_s: how often idle workers ask for a backup to make.
    """

    workers: int = 1_746
    split_bytes: int = 64 * MiB
    startup_s: float = 60.0
    map_s: float = 64 * MiB / (13 * GB / 1_746)
    reduce_s: float = 170.0
    spread: float = 0.3
    slow_share: float = 0.01
    slow_least: float = 1.5
    slow_usual: float = 2.5
    slow_most: float = 10.0
    fetch_share: float = 0.4
    write_share: float = 0.4
    look_s: float = 1.0

    def factors(self, seed: int) -> list[float]:
        """Return the slowdown factor of each worker; 1.0 is the usual speed."""
        random = Random(f"{seed}: machines")
        return [
            self._slow(random) if random.random() < self.slow_share else 1.0
            for _ in range(self.workers)
        ]

    def _slow(self, random):
        if random.random() < _USUALLY_SLOW:
            return random.uniform(self.slow_least, self.slow_usual)
        return self.slow_usual * (self.slow_most / self.slow_usual) ** random.random()

    def attempt_s(self, attempt: Attempt, seed: int) -> float:
        """Return the duration of an attempt on a machine of usual speed, in seconds.

        It depends on the attempt and the seed alone, so two runs differ only by the
        parameters changed between them, and not by chance.
        """
        usual_s = self.map_s if attempt.task.kind == "map" else self.reduce_s
        return usual_s * Random(f"{seed}: {attempt}").lognormvariate(0, self.spread)
