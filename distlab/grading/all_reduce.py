"""Checks for a reduce-scatter and an all-reduce that a learner wrote.

Each check runs the learner's function twice on real ranks. In the first run every
number of rank r is 8**r, so that a result, read in base 8, tells how often each rank's
share is in it. In the second the numbers are random, so that a chunk at the wrong place
shows.
"""

import random
from dataclasses import dataclass

from distlab.collectives.chunks import chunk_lengths
from distlab.grading.check import WorldCheck
from distlab.grading.hints import hint_for_counts, hint_for_traffic
from distlab.grading.probes import all_reduce_probe, reduce_scatter_probe
from distlab.grading.shares import in_words, what_is_wrong
from distlab.grading.tables import side_by_side
from distlab.trace import BASE, counts_in

__all__ = ["AllReduceSums", "AllReduceTraffic", "ReduceScatterSums"]

_RUNS = 2


@dataclass
class _RingCheck(WorldCheck):
    """A function under test, and the size of the world and tensor to try it on."""

    numbers: int

    @property
    def title(self):
        """Say what is tried."""
        plural = "s" * (self.numbers != 1)
        return f"{super().title}, {self.numbers} number{plural}"

    def _arguments(self):
        return (self._inputs(),)

    def _inputs(self):
        """Return, for each run and rank, the numbers of that rank."""
        draw = random.Random(f"{self.world_size} {self.numbers}")
        ranks = range(self.world_size)
        shares = [[BASE**rank] * self.numbers for rank in ranks]
        randoms = [
            [draw.randrange(-1000, 1000) for _ in range(self.numbers)] for _ in ranks
        ]
        return [shares, randoms]

    def _sums(self):
        """Return, for each run, the sum of all ranks' numbers."""
        return [
            [sum(column) for column in zip(*inputs, strict=True)]
            for inputs in self._inputs()
        ]

    @property
    def _tensor_bytes(self):
        """The bytes of one call's tensor: float32 up to eight ranks, else float64."""
        return self.numbers * (4 if self.world_size <= 8 else 8)

    def _shortcut(self, report):
        """Return a verdict if the sums did not come through the learner's messages."""
        ready_made = self._ready_made(report, "The sums are right", "comm.sendrecv")
        if ready_made:
            return ready_made
        return self._silent(report)

    def _sent(self, report):
        """Return the bytes that each rank sent per call."""
        ranks = range(self.world_size)
        return [report.trace.bytes_sent(rank) // _RUNS for rank in ranks]

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
        return f"{value:g}" if turn else in_words(value, self.world_size)

    def _told(self, turn, results, rank, place, table, at):
        if turn:
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

    _laps = 2
    _probe = staticmethod(all_reduce_probe)

    def _compare(self, report):
        expected = [[total] * self.world_size for total in self._sums()]
        got = [[r["runs"][turn] for r in report.results] for turn in range(_RUNS)]
        if self.world_size > 1 and got == self._inputs() and self.numbers:
            returned = report.results[0]["returned"]
            returns = f", and the function returned {returned}" * (returned != "None")
            return self._fail(
                f"The tensor is unchanged on every rank{returns}.",
                "Change the tensor itself: chunk += arrived writes in place, and "
                "chunk = chunk + arrived makes a new one.",
            )
        difference = self._first_difference(expected, got, "rank {}".format)
        return difference or self._shortcut(report)


class AllReduceTraffic(AllReduceSums):
    """The sums are right, and no rank sends more than it must, nor waits in turn."""

    def _compare(self, report):
        wrong = super()._compare(report)
        if wrong:
            return wrong
        n, size, sent = self.world_size, self._tensor_bytes, self._sent(report)
        longest = max(chunk_lengths(self.numbers, n)) * (size // self.numbers)
        if sum(sent) != 2 * (n - 1) * size or max(sent) > 2 * (n - 1) * longest:
            lines = [f"rank {rank}: sent {sent[rank]} bytes" for rank in range(n)]
            lines.append(f"A ring sends {2 * (n - 1) * size // n} bytes per rank.")
            return self._fail("\n".join(lines), hint_for_traffic(sent, size))
        rounds, ideal = report.trace.rounds() // _RUNS, 2 * (n - 1)
        if rounds > ideal:
            return self._fail(
                f"It took {rounds} rounds, where {ideal} are enough.",
                "Some ranks stand idle while others send. In a ring all send at once.",
            )
        return None


class ReduceScatterSums(_RingCheck):
    """Each rank ends with one complete chunk, a different one each, and says which."""

    _laps = 1
    _probe = staticmethod(reduce_scatter_probe)

    def _compare(self, report):
        n = self.world_size
        owners = [result["owner"] for result in report.results]
        if sorted(owners, key=str) != sorted(range(n), key=str):
            returned = ", ".join(result["returned"] for result in report.results)
            return self._fail(
                f"The function returned, rank by rank: {returned}",
                "Return the index of the chunk that is complete on this rank; each "
                "rank completes another one.",
            )
        lengths = chunk_lengths(self.numbers, n)
        spans = [slice(sum(lengths[:i]), sum(lengths[: i + 1])) for i in range(n)]
        expected = [[total[spans[o]] for o in owners] for total in self._sums()]
        runs = [[r["runs"][turn] for r in report.results] for turn in range(_RUNS)]
        got = [
            [run[spans[o]] for run, o in zip(ranks, owners, strict=True)]
            for ranks in runs
        ]
        return (
            self._other_chunk(owners, expected, got, runs[0], spans)
            or self._first_difference(
                expected, got, lambda rank: f"chunk {owners[rank]} on rank {rank}"
            )
            or self._shortcut(report)
            or self._too_much(report)
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
