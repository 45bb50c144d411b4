"""Checks for a reduce-scatter and an all-reduce that a learner wrote.

Each check runs the learner's function twice on real ranks. In the first run every
number of rank r is 16**r, so that a result, read in base 16, tells how often each
rank's share is in it. In the second the numbers are random, so that a chunk at the
wrong place shows.
"""

import random
from dataclasses import dataclass

from distlab.collectives.chunks import chunk_lengths
from distlab.errors import WorldFailed
from distlab.grading.hints import (
    hint_for_counts,
    hint_for_failure,
    hint_for_traffic,
)
from distlab.grading.shares import BASE, cut, digits, in_words, what_is_wrong
from distlab.grading.verdict import Verdict
from distlab.launch import run

__all__ = ["AllReduceSums", "AllReduceTraffic", "ReduceScatterSums"]

_TIMEOUT_S = 15


@dataclass
class _RingCheck:
    """A function under test, and the size of the world and tensor to try it on."""

    function: object
    world_size: int
    numbers: int

    @property
    def title(self):
        ranks = "1 rank" if self.world_size == 1 else f"{self.world_size} ranks"
        return f"{ranks}, {self.numbers} numbers"

    def judge(self) -> Verdict:
        """Run the function and compare; never raises for what the learner wrote."""
        try:
            report = run(
                self._probe(),
                self.world_size,
                args=(self.function, self._inputs()),
                backend="gloo",
                timeout_s=_TIMEOUT_S,
                quiet=True,
            )
        except WorldFailed as failure:
            return Verdict(
                "fail", self.title, _summary(failure), hint_for_failure(failure)
            )
        return self._compare(report)

    def _inputs(self):
        """Return, for each run and rank, the numbers of that rank."""
        draw = random.Random(f"{self.world_size} {self.numbers}")
        shares = [[BASE**rank] * self.numbers for rank in range(self.world_size)]
        randoms = [
            [draw.randrange(-1000, 1000) for _ in range(self.numbers)]
            for _ in range(self.world_size)
        ]
        return [shares, randoms]

    def _fail(self, found, hint):
        return Verdict("fail", self.title, found, hint)

    def _first_difference(self, expected, got):
        """Return a verdict for the first rank and place that differ, or None."""
        for turn, (wanted, results) in enumerate(zip(expected, got, strict=True)):
            for rank, (right, yours) in enumerate(zip(wanted, results, strict=True)):
                for place, (number, your_number) in enumerate(
                    zip(right, yours, strict=True)
                ):
                    if number != your_number:
                        return self._describe(turn, rank, place, wanted, results)
        return None

    def _describe(self, turn, rank, place, wanted, results):
        lines = [f"{'rank':>6}  {'expected':28}  {'yours':28}"]
        for number, (right, yours) in enumerate(zip(wanted, results, strict=True)):
            if turn == 0:
                right, yours = (
                    [in_words(x) for x in right],
                    [in_words(x) for x in yours],
                )
            mark = "  ← first difference" if number == rank else ""
            start = max(0, place - 1)
            lines.append(
                f"{number:>6}  {cut(right, start):28}  {cut(yours, start):28}{mark}"
            )
        if turn == 0:
            counts = digits(results[rank][place], self.world_size)
            lines.append(f"Position {place} of rank {rank}: {what_is_wrong(counts)}.")
            lines.append("(a+b means: the shares of ranks a and b are in this number)")
            return self._fail(
                "\n".join(lines), hint_for_counts(counts, self.numbers, self.world_size)
            )
        lines.append(f"Position {place} of rank {rank} holds another position's sum.")
        return self._fail(
            "\n".join(lines),
            "The right sums arrive at the wrong place: "
            "which chunk does a rank receive in step 0, and in step 1?",
        )


class AllReduceSums(_RingCheck):
    """Every rank ends with the sum of all ranks' numbers, in place."""

    def _probe(self):
        return _all_reduce_probe

    def _compare(self, report):
        expected = [
            [[sum(column) for column in zip(*inputs, strict=True)]] * self.world_size
            for inputs in self._inputs()
        ]
        got = [[result[turn] for result in report.results] for turn in (0, 1)]
        found = self._first_difference(expected, got)
        return found or self._no_shortcut(report) or Verdict("pass", self.title)

    def _no_shortcut(self, report):
        ready_made = report.trace.collectives()
        sent = sum(report.trace.bytes_sent(rank) for rank in range(self.world_size))
        if ready_made:
            return self._fail(
                f"The sums are right, made by a call of {' and '.join(ready_made)}.",
                "Write it from comm.sendrecv: the ring itself is the exercise.",
            )
        if self.world_size > 1 and not sent:
            return self._fail(
                "The sums are right, but no message was sent through comm.",
                "Whatever a rank learns has to arrive through comm.",
            )
        return None


class AllReduceTraffic(AllReduceSums):
    """The sums are right, and no rank sends more than it must, nor waits in turn."""

    def _compare(self, report):
        verdict = super()._compare(report)
        if verdict.outcome != "pass":
            return verdict
        n, trace = self.world_size, report.trace
        tensor_bytes = 2 * 8 * self.numbers  # two runs, eight bytes a number
        sent = [trace.bytes_sent(rank) for rank in range(n)]
        longest = 2 * 8 * max(chunk_lengths(self.numbers, n))
        table = "\n".join(
            f"rank {rank}: sent {sent[rank] // 2} bytes per call" for rank in range(n)
        )
        bound = f"A ring sends 2(n-1)/n S per rank; S is {tensor_bytes // 2} bytes."
        if sum(sent) != 2 * (n - 1) * tensor_bytes or max(sent) > 2 * (n - 1) * longest:
            return self._fail(f"{table}\n{bound}", hint_for_traffic(sent, tensor_bytes))
        rounds, ideal = trace.rounds(), 2 * 2 * (n - 1)
        if rounds > ideal:
            return self._fail(
                f"{rounds // 2} rounds per call, where {ideal // 2} are enough.",
                "Some ranks stand idle while others send. In a ring all send at once.",
            )
        return verdict


class ReduceScatterSums(_RingCheck):
    """Each rank ends with one complete chunk, a different one each, and says which."""

    def _probe(self):
        return _reduce_scatter_probe

    def _compare(self, report):
        owners = [result[0][0] for result in report.results]
        if sorted(owners, key=str) != sorted(range(self.world_size), key=str):
            return self._fail(
                f"The function returned {owners}, one value per rank.",
                "Return the index of the chunk that is complete on this rank; "
                "each rank completes another one.",
            )
        lengths = chunk_lengths(self.numbers, self.world_size)
        starts = [sum(lengths[:index]) for index in range(self.world_size)]
        expected = []
        for inputs in self._inputs():
            total = [sum(column) for column in zip(*inputs, strict=True)]
            chunks = [total[s : s + k] for s, k in zip(starts, lengths, strict=True)]
            expected.append([chunks[owner] for owner in owners])
        got = [[result[turn][1] for result in report.results] for turn in (0, 1)]
        found = self._first_difference(expected, got)
        return (
            found
            or AllReduceSums._no_shortcut(self, report)
            or Verdict("pass", self.title)
        )


def _all_reduce_probe(comm, function, inputs):
    import torch

    _lock_the_library()
    results = []
    for numbers in inputs:
        tensor = torch.tensor(numbers[comm.rank], dtype=torch.int64)
        function(comm, tensor)
        results.append(tensor.tolist())
    return results


def _reduce_scatter_probe(comm, function, inputs):
    import torch

    from distlab.collectives.chunks import split

    _lock_the_library()
    results = []
    for numbers in inputs:
        chunks = split(
            torch.tensor(numbers[comm.rank], dtype=torch.int64), comm.world_size
        )
        owner = function(comm, chunks)
        whole = isinstance(owner, int) and 0 <= owner < comm.world_size
        results.append(
            (owner if whole else None, chunks[owner].tolist() if whole else [])
        )
    return results


def _lock_the_library():
    """Make distlab's own collectives unusable in this rank, also under another name."""
    from distlab import collectives

    for name in collectives.__all__:
        getattr(collectives, name).__code__ = _library_call.__code__


def _library_call(comm, tensor):
    raise NotImplementedError(
        "this exercise asks for your own; distlab's is locked here"
    )


def _summary(failure):
    """Return the story without its last line, on the trace that a check keeps."""
    lines = str(failure).splitlines()
    return "\n".join(line for line in lines if "trace up to here" not in line).rstrip()
