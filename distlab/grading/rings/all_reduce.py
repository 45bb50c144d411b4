"""Checks for a reduce-scatter and an all-reduce that a learner wrote.

Each check runs the learner's function on random numbers, which decide. If something is
wrong with that run there is another one, in which every number of rank r is 8**r: a
result, read in base 8, tells how often each rank's share is in it.
"""

from dataclasses import dataclass, replace
from functools import partial

from distlab import collectives
from distlab.collectives.chunks import chunk_lengths
from distlab.grading.check import WorldCheck
from distlab.grading.hints import hint_for_counts, hint_for_traffic
from distlab.grading.pictures import librarys, ring_seats
from distlab.grading.probes import all_reduce_probe, in_chunks, reduce_scatter_probe
from distlab.grading.rings.shares import in_words, what_is_wrong
from distlab.grading.salt import salted
from distlab.grading.tables import side_by_side
from distlab.trace import BASE, counts_in

__all__ = ["AllReduceSums", "AllReduceTraffic", "ReduceScatterSums"]


_IN_PLACE = (
    "Change the tensor itself: chunk += arrived writes in place, and "
    "chunk = chunk + arrived makes a new one."
)


@dataclass
class _RingCheck(WorldCheck):
    """A function under test, and the size of the world and tensor to try it on."""

    numbers: int

    _keeps_ranks = True
    _made_from = "comm.sendrecv"

    @property
    def title(self):
        """Say what is tried."""
        plural = "s" * (self.numbers != 1)
        return f"{super().title}, {self.numbers} number{plural}"

    @property
    def _returns(self):
        return {"held": [float, self.numbers], "returned": str}

    def _run(self):
        """Return the report of the run on random numbers, after the other one's."""
        randoms, shares = self._randoms(), self._shares()
        self._inputs = [randoms]
        reports = [self._world(_each(randoms))]
        if self._misshapen(reports) or self._compare(reports) is None:
            return reports
        self._inputs = [shares, randoms]
        return [self._world(_each(shares)), *reports]

    def _misshapen(self, reports):
        return next(filter(None, map(super()._misshapen, reports)), None)

    def _shares(self):
        """Return the numbers of each rank that say whose they are."""
        return [[BASE**rank] * self.numbers for rank in range(self.world_size)]

    def _randoms(self):
        """Return numbers of each rank that nobody finds by chance."""
        draw = salted(type(self).__name__, self.world_size, self.numbers)
        return [
            [draw.randrange(-9999, 10_000) for _ in range(self.numbers)]
            for _ in range(self.world_size)
        ]

    def _is_random(self, turn):
        return turn == len(self._inputs) - 1

    def _followed(self):
        return self._follow(self.function, self.numbers)

    def _ideals(self):
        seats = ring_seats(self.world_size)
        return librarys(self._algorithm, seats, numbers=self.numbers)

    def _sums(self):
        """Return, for each run, the sum of all ranks' numbers."""
        return [
            [sum(column) for column in zip(*inputs, strict=True)]
            for inputs in self._inputs
        ]

    @property
    def _tensor_bytes(self):
        """The bytes of one call's tensor: float32 up to eight ranks, else float64."""
        return self.numbers * (4 if self.world_size <= 8 else 8)

    def _shortcut(self, reports):
        """Return a verdict if the sums did not come through the learner's messages."""
        for report in reports:
            wrong = self._ready_made(report, "The sums are right")
            wrong = wrong or self._silent(report)
            if wrong:
                return wrong
        return None

    def _explained(self, wrong, reports):
        """Return a verdict on wrong sums, with the reason if nothing has come of it."""
        silent = wrong and self._silent(reports[0])
        if silent:
            found = f"{wrong.found}\n{silent.found}"
            return replace(wrong, found=found, hint=silent.hint)
        if wrong and list(map(_held, reports)) == self._inputs:
            return replace(wrong, hint=_IN_PLACE)
        return wrong

    def _sent(self, report):
        """Return the bytes that each rank sent."""
        return [report.trace.bytes_sent(rank) for rank in range(self.world_size)]

    def _first_difference(self, expected, got, where):
        """Return a verdict for the first rank and place that differ, or None.

        expected, got: for each run and rank a list of numbers. where: rank -> what that
        list is, in words.
        """
        for turn, (wanted, results) in enumerate(zip(expected, got, strict=True)):
            for rank, pair in enumerate(zip(wanted, results, strict=True)):
                for place, (right, yours) in enumerate(zip(*pair, strict=True)):
                    if right != yours:
                        table = self._table(turn, wanted, results, rank, place)
                        at = f"Position {place} of {where(rank)}"
                        return self._told(turn, results, rank, place, table, at)
        return None

    def _table(self, turn, wanted, results, rank, place):
        """Return expected and yours per rank, side by side, around `place`."""
        rows = [
            tuple([self._shown(turn, x) for x in values] for values in pair)
            for pair in zip(wanted, results, strict=True)
        ]
        return side_by_side(rows, rank, place)

    def _shown(self, turn, value):
        random = self._is_random(turn)
        return f"{value:g}" if random else in_words(value, self.world_size)

    def _told(self, turn, results, rank, place, table, at):
        if self._is_random(turn):
            table.append(f"{at} holds another sum.")
            return self._fail(
                "\n".join(table),
                "The right shares arrive at the wrong place: which chunk does a rank "
                "receive in each step?",
            )
        complete = sum(BASE**r for r in range(self.world_size))
        counts = counts_in(results[rank][place], self.world_size)
        table.append(f"{at}: {what_is_wrong(counts)}.")
        table.append("(a+b means: the shares of ranks a and b are in this number)")
        hint = hint_for_counts(
            counts,
            self.numbers,
            self.world_size,
            laps=self._laps,
            some_complete=any(complete in values for values in results),
        )
        return self._fail("\n".join(table), hint)


class AllReduceSums(_RingCheck):
    """Every rank ends with the sum of all ranks' numbers, in place."""

    _laps, _algorithm = 2, staticmethod(collectives.ring_all_reduce)
    _probe = staticmethod(all_reduce_probe)

    def _compare(self, reports):
        expected = [[total] * self.world_size for total in self._sums()]
        got = [_held(report) for report in reports]
        if self.world_size > 1 and got == self._inputs and self.numbers:
            returned = reports[0].results[0]["returned"]
            returns = f", and the function returned {returned}" * (returned != "None")
            found = f"The tensor is unchanged on every rank{returns}."
            return self._explained(self._fail(found, ""), reports)
        difference = self._first_difference(expected, got, "rank {}".format)
        return self._explained(difference, reports) or self._shortcut(reports)


class AllReduceTraffic(AllReduceSums):
    """The sums are right, and no rank sends more than it must, nor waits in turn."""

    def _compare(self, reports):
        wrong = super()._compare(reports)
        for report in reports:
            wrong = wrong or self._too_much(report)
        return wrong

    def _too_much(self, report):
        """Return a verdict if one run took more bytes or rounds than it has to."""
        n, size, sent = self.world_size, self._tensor_bytes, self._sent(report)
        longest = max(chunk_lengths(self.numbers, n)) * (size // self.numbers)
        if sum(sent) != 2 * (n - 1) * size or max(sent) > 2 * (n - 1) * longest:
            lines = [f"rank {rank}: sent {sent[rank]} bytes" for rank in range(n)]
            lines.append(f"A ring sends {2 * (n - 1) * size // n} bytes per rank.")
            return self._fail("\n".join(lines), hint_for_traffic(sent, size))
        rounds, ideal = report.trace.rounds(), 2 * (n - 1)
        if rounds > ideal:
            return self._fail(
                f"It took {rounds} rounds, where {ideal} are enough.",
                "Some ranks stand idle while others send. In a ring all send at once.",
            )
        return None


class ReduceScatterSums(_RingCheck):
    """Each rank ends with one complete chunk, a different one each, and says which."""

    _laps, _algorithm = 1, staticmethod(collectives.ring_reduce_scatter)
    _probe = staticmethod(reduce_scatter_probe)

    def _followed(self):
        return self._follow(partial(in_chunks, self.function), self.numbers)

    @property
    def _returns(self):
        return super()._returns | {"owner": (int, None)}

    def _compare(self, reports):
        n = self.world_size
        lengths = chunk_lengths(self.numbers, n)
        spans = [slice(sum(lengths[:i]), sum(lengths[: i + 1])) for i in range(n)]
        expected, got = [], []
        for report, total in zip(reports, self._sums(), strict=True):
            owners = [result["owner"] for result in report.results]
            if sorted(owners, key=str) != sorted(range(n), key=str):
                return self._unowned(report)
            pairs = zip(_held(report), owners, strict=True)
            expected.append([total[spans[owner]] for owner in owners])
            got.append([held[spans[owner]] for held, owner in pairs])
        owners = [result["owner"] for result in reports[0].results]
        return (
            self._other_chunk(owners, expected, got, _held(reports[0]), spans)
            or self._explained(
                self._first_difference(
                    expected, got, lambda rank: f"chunk {owners[rank]} on rank {rank}"
                ),
                reports,
            )
            or self._shortcut(reports)
            or next(filter(None, map(self._too_much, reports)), None)
        )

    def _unowned(self, report):
        returned = ", ".join(result["returned"] for result in report.results)
        return self._fail(
            f"The function returned, rank by rank: {returned}",
            "Return the index of the chunk that is complete on this rank; each "
            "rank completes another one.",
        )

    def _other_chunk(self, owners, expected, got, tensors, spans):
        """Return a verdict if a rank completed another chunk than the one it named."""
        complete = sum(BASE**rank for rank in range(self.world_size))
        for rank, owner in enumerate(owners):
            if got[0][rank] == expected[0][rank]:
                continue
            for index, span in enumerate(spans):
                if all(number == complete for number in tensors[rank][span]):
                    return self._fail(
                        f"Rank {rank} returned {owner}, and chunk {index} is complete.",
                        "Another chunk of this rank is complete than the one whose "
                        "index you return.",
                    )
        return None

    def _too_much(self, report):
        needed = (self.world_size - 1) * self._tensor_bytes
        sent = sum(self._sent(report))
        if sent == needed:
            return None
        return self._fail(
            f"The chunks are right, but all ranks together sent {sent} bytes, "
            f"where {needed} are enough.",
            "Each chunk makes n-1 hops around the ring. How many steps is that?",
        )


def _each(numbers):
    return [(of_one_rank,) for of_one_rank in numbers]


def _held(report):
    return [result["held"] for result in report.results]
