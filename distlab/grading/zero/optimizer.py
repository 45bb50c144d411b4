"""The check of ZeRO 1: one flat tensor, of which each rank steps a part."""

from dataclasses import dataclass

from distlab.grading.tables import side_by_side
from distlab.grading.zero.check import NUMBER, ZeroCheck
from distlab.grading.zero.hints import hint_for_flat
from distlab.grading.zero.memory_hints import hint_for_kept, hint_for_sent

__all__ = ["ShardedOptimizer"]

_STEPS = 3


def _probe(comm, *args):
    from distlab.grading.zero.probes import train_flat  # torch: only ranks load it

    return train_flat(comm, *args)


@dataclass
class ShardedOptimizer(ZeroCheck):
    """ZeRO 1 trains one flat tensor as one process does, each rank its part.

    numbers: the length of the tensor. optimizer: "momentum" or "Adam".
    """

    numbers: int
    optimizer: str = "momentum"

    _probe = staticmethod(_probe)

    @property
    def title(self):
        """Say what is tried."""
        return f"{super().title}, {self.numbers} parameters, {self.optimizer}"

    @property
    def _lengths(self):
        return [self.numbers]

    def _new_witness(self):
        from distlab.grading.zero.flat_witness import FlatWitness  # which needs torch
        from distlab.grading.zero.tasks import FlatTask

        task = FlatTask(self.world_size, self.numbers, _STEPS)
        return FlatWitness(task, self.optimizer)

    def _compare(self, report):
        return (
            self._not_handed()
            or self._unended()
            or self._first_difference(report)
            or self._ready_made(report, "The parameters are right")
            or self._too_much_state()
            or self._view_of_more()
            or self._too_much_sent(report)
        )

    def _first_difference(self, report):
        right, mistakes = _flat_truth(self.world_size, self.numbers, self.optimizer)
        flats = [result["flats"] for result in self._results()]
        for step in range(1, _STEPS + 1):
            for rank, own in enumerate(flats):
                places = _unequal(own[step], right[step])
                if places:
                    return self._told(report, right, mistakes, step, rank, places)
        return None

    def _told(self, report, right, mistakes, step, rank, places):
        flats = [result["flats"] for result in self._results()]
        apart = abs(flats[rank][step][places[0]] - right[step][places[0]])
        digits = ".12g" if apart < 1e-3 else ".4g"
        wanted = [format(number, digits) for number in right[step]]
        rows = [(wanted, [format(x, digits) for x in own[step]]) for own in flats]
        lines = [f"The parameters after step {step}:"]
        lines += side_by_side(rows, rank, places[0])
        count = len(places)
        lines.append(
            f"Position {places[0]} on rank {rank} is the first to differ; "
            f"{count} of {self.numbers} do there."
        )
        ranks, since = [own[step] for own in flats], self._sent_since_the_step(report)
        hint = hint_for_flat(ranks, step, right, mistakes, since)
        return self._fail("\n".join(lines), hint)

    def _sent_since_the_step(self, report):
        """Return the bytes sent after the first optimizer step, before the second.

        None if no rank's optimizer has changed anything.
        """
        sent = [
            self._sent(report, rank, result["stepped"][0], result["begins"][1])
            for rank, result in enumerate(self._results())
            if result["stepped"]
        ]
        return sum(sent) if sent else None

    def _view_of_more(self):
        """Return a verdict if what the optimizer steps keeps more memory than it is."""
        for rank, result in enumerate(self._results()):
            size = sum(result["handed"]) * NUMBER
            if result["kept"] > size:
                found = (
                    f"The parameters are right. On rank {rank} the optimizer's part "
                    f"has {size:,} bytes, and keeps {result['kept']:,} in memory."
                )
                return self._fail(found, hint_for_kept())
        return None

    def _too_much_sent(self, report):
        n, size = self.world_size, self._parts * NUMBER
        ideal = 2 * (n - 1) * size * _STEPS
        sent = [
            self._sent(report, rank, result["begins"][0])
            for rank, result in enumerate(self._results())
        ]
        if max(sent) <= ideal:
            return None
        lines = [f"rank {rank}: sent {b:,} bytes" for rank, b in enumerate(sent)]
        lines.append(
            f"In {_STEPS} steps {ideal:,} are enough for each rank, 2(n-1)/n of the "
            "padded parameters a step."
        )
        return self._fail("\n".join(lines), hint_for_sent(sent, ideal / 2))


def _unequal(got, expected):
    """Return the places at which two lists of numbers differ by more than rounding."""
    return [
        place
        for place, (a, b) in enumerate(zip(got, expected, strict=True))
        if not abs(a - b) <= 1e-9 * max(1.0, abs(b))
    ]


def _flat_truth(world_size, numbers, name):
    """Return the parameters after each step, right and by each usual mistake."""
    from distlab.grading.zero.tasks import MISTAKES, FlatTask, Maker, trained

    task = FlatTask(world_size, numbers, _STEPS)

    def told(**mistake):
        return [f[0].tolist() for f in trained(task, Maker(name), **mistake)]

    return told(), {name_: told(**each) for name_, each in MISTAKES.items()}
