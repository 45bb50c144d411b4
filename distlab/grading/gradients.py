"""Checks for data parallel training that a learner wrote: gradients, buckets, hooks.

Each runs a few steps on real ranks, all with other samples, and compares with one
process that has the samples of all ranks. What is all-reduced, and when, is read from
the notes of `WatchedRing` in the trace.
"""

from dataclasses import dataclass

from distlab.grading.check import WorldCheck, story_of
from distlab.grading.gradient_hints import (
    CHANGED,
    NOTHING_SENT,
    UNASKED,
    hint_for_failed_training,
    hint_for_gradient,
    hint_for_misstep,
    hint_for_raised,
)
from distlab.grading.gradient_orders import (
    accumulating,
    around,
    calls_of,
    disagreement,
    first_misstep,
    in_words,
    wrong_calls,
)
from distlab.grading.layout import hint_for_layout, laid_out, layout_told
from distlab.grading.notes import buckets_of, steps_of
from distlab.grading.verdict import Verdict

__all__ = ["AccumulatedGradients", "AveragedGradients", "OverlappedGradients"]

_UNEVEN = [[4, 4, 1], [2], [], [3, 3]]


def training_probe(comm, function, kind, *more) -> dict:
    """Return what the rank saw; `kind` is one of `gradient_probes.PROBES`."""
    from distlab.grading.gradient_probes import PROBES  # only ranks may load torch

    return PROBES[kind](comm, function, *more)


@dataclass
class _TrainingCheck(WorldCheck):
    """A function or class under test, and the model to try it on.

    model: one of `distlab.grading.trained`.
    """

    model: str

    _probe = staticmethod(training_probe)

    @property
    def title(self):
        """Say what is tried."""
        return f"{super().title}, model {self.model!r}"

    @property
    def _counts(self):
        """For each step and rank how many samples are in each microbatch."""
        ranks = range(self.world_size)
        return [
            [[4, 2 + rank % 2] for rank in ranks],
            [_UNEVEN[rank % len(_UNEVEN)] for rank in ranks],
            [[5 - rank % 2] for rank in ranks],
        ]

    def _arguments(self):
        return self._kind, self.model, self._counts

    def _compare(self, report):
        return (
            self._badly_laid_out(report.results)
            or self._ready_made(report, "Gradients were exchanged", "all_reduce")
            or self._silent(report)
            or self._misstep(report.trace)
            or self._wrong_gradient(report)
            or self._too_much(report)
        )

    def _badly_laid_out(self, results):
        return None

    def _silent(self, report):
        """Return a verdict if nothing was all-reduced at all."""
        ranks = range(self.world_size)
        steps = [step for rank in ranks for step in steps_of(report.trace, rank)]
        if self.world_size == 1 or any(map(calls_of, steps)):
            return None
        return self._fail("all_reduce was never called.", NOTHING_SENT)

    def _misstep(self, trace, story=""):
        """Return a verdict for the first thing that a rank did wrong, or None."""
        if self.world_size == 1:  # which needs no message, and may send none
            return None
        buckets = buckets_of(trace)
        steps = [steps_of(trace, rank) for rank in range(self.world_size)]
        for number, counts in enumerate(self._counts):
            for rank, own in enumerate(steps):
                step = own[number] if number < len(own) else []
                found = self._looked_at(step, buckets, len(counts[rank]))
                if found:
                    told = f"Rank {rank}, training step {number + 1}: {found.told}"
                    order = f"Its order: {around(step, found.at)}"
                    lines = [*story.splitlines(), told, order]
                    return self._fail("\n".join(lines), hint_for_misstep(found.kind))
        return None

    def _looked_at(self, step, buckets, microbatches):
        return accumulating(step, microbatches) or wrong_calls(step, buckets)

    def _wrong_gradient(self, report):
        """Return a verdict for the first gradient that is not that of one process."""
        found = [(r["difference"], rank) for rank, r in enumerate(report.results)]
        found = [(d, rank) for d, rank in found if d]
        if not found:
            return None
        first, rank = min(found, key=lambda pair: (pair[0].step, pair[1]))
        same = (first.step, first.parameter)
        alike = [f"{r}" for d, r in found if (d.step, d.parameter) == same]
        buckets = enumerate(buckets_of(report.trace))
        place = next((k for k, names in buckets if first.parameter in names), "?")
        what = "" if first.likeness == "parameter" else "gradient of "
        seen = "none at all" if first.likeness == "none" else f"{first.found:.6g}"
        told = (
            f"Training step {first.step + 1}, {what}{first.parameter} "
            f"(bucket {place}), position {first.place}:\n"
            f"expected {first.expected:.6g}, found {seen} on rank {rank}.\n"
            f"It is wrong on rank{'s' * (len(alike) > 1)} {in_words(alike)} "
            f"of {self.world_size}."
        )
        steps = steps_of(report.trace, rank)
        started = any(seen.kind == "start" for step in steps for seen in step)
        return self._fail(told, hint_for_gradient(first.likeness, started=started))

    def _too_much(self, report):
        n = self.world_size
        sent = sum(map(report.trace.bytes_sent, range(n)))
        needed = 2 * (n - 1) * report.results[0]["bytes"] * len(self._counts)
        if sent == needed:
            return None
        return self._fail(
            f"The gradients are right, but all ranks together sent {sent:,} bytes, "
            f"where {needed:,} are enough.",
            UNASKED,
        )

    def _failed(self, failure) -> Verdict:
        story, raised = story_of(failure), hint_for_raised(failure)
        if raised:
            return self._fail(story, raised)
        misstep = self._misstep(failure.trace, story)
        if misstep:
            return misstep
        ranks = range(self.world_size)
        differ = disagreement([steps_of(failure.trace, rank) for rank in ranks])
        if not differ:
            return self._fail(story, hint_for_failed_training(failure))
        number, calls = differ
        lines = [story, f"Sent in training step {number + 1}, by bucket:"]
        for rank, own in enumerate(calls):
            lines.append(f"  rank {rank}: {', '.join(own) or 'nothing'}")
        return self._fail("\n".join(lines), hint_for_misstep("order"))


class AveragedGradients(_TrainingCheck):
    """Buckets are laid out by the rule, and gradients become means over the ranks.

    function: the pair (in_buckets, average_gradients).
    """

    _kind = "averaged"

    @property
    def _counts(self):
        return [[[4]] * self.world_size] * 2

    def _badly_laid_out(self, results):
        found = results[0]
        if found["changed"]:
            return self._fail("in_buckets changed the list that it was given.", CHANGED)
        if found["yours"] is None:
            return self._fail(
                f"in_buckets returned {found['shown']}",
                "Return a list of buckets, each a list of parameters.",
            )
        rows, limits = found["rows"], found["limits"]
        for limit, yours in zip(limits, found["yours"], strict=True):
            expected = laid_out(rows, *limit)
            if yours != expected:
                told = layout_told(rows, limit, yours)
                return self._fail("\n".join(told), hint_for_layout(rows, limit, yours))
        return None


class AccumulatedGradients(_TrainingCheck):
    """Several microbatches a step, ranks with more, fewer or no samples."""

    _kind = "accumulated"


class OverlappedGradients(_TrainingCheck):
    """The same from hooks: each bucket starts in backward, as soon as it is full."""

    _kind = "overlapped"

    def _looked_at(self, step, buckets, microbatches):
        return first_misstep(step, buckets, microbatches)
