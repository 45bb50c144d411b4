"""Checks for data parallel training that a learner wrote: gradients, buckets, hooks.

Each runs a few steps on real ranks, all with other samples, and compares with one
process that has the samples of all ranks. What is all-reduced, and when, is what the
`Witness` has heard, which the ranks ask for every gradient and every sum.
"""

from dataclasses import dataclass
from itertools import chain

from distlab.grading.check import story_of
from distlab.grading.gradients.hints import (
    CHANGED,
    NOTHING_SENT,
    UNASKED,
    UNENDED,
    hint_for_failed_training,
    hint_for_gradient,
    hint_for_misstep,
    hint_for_raised,
)
from distlab.grading.gradients.layout import hint_for_layout, laid_out, layout_told
from distlab.grading.gradients.notes import steps_of
from distlab.grading.gradients.orders import (
    accumulating,
    around,
    calls_of,
    disagreement,
    first_misstep,
    in_words,
    wrong_calls,
)
from distlab.grading.verdict import Verdict
from distlab.grading.witnessed import Witnessed

__all__ = ["AccumulatedGradients", "AveragedGradients", "OverlappedGradients"]

_UNEVEN = [[4, 4, 1], [2], [], [3, 3]]


def training_probe(comm, function, kind, steps) -> None:
    """Train; `kind` is one of `gradients.probes.PROBES`."""
    from distlab.grading.gradients.probes import PROBES  # only ranks may load torch

    PROBES[kind](comm, function, steps)


@dataclass
class _TrainingCheck(Witnessed):
    """A function or class under test, and the model to try it on.

    model: one of `distlab.grading.gradients.trained`.
    """

    model: str

    _probe = staticmethod(training_probe)
    _needs = "distlab.grading.gradients.probes"
    _made_from = "all_reduce"

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
        return self._kind, len(self._counts)

    def _new_witness(self):
        from distlab.grading.gradients.witness import Witness  # which needs torch

        return Witness(self.model, self._counts, **self._looks)

    def _steps(self):
        """Return for each rank what it did in each step."""
        return [steps_of(notes) for notes in self._witness.notes]

    def _compare(self, report):
        return (
            self._badly_laid_out()
            or self._ready_made(report, "Gradients were exchanged")
            or self._silent(report)
            or self._misstep()
            or self._wrong_gradient()
            or self._unended()
            or self._too_much(report)
        )

    def _badly_laid_out(self):
        return None

    def _silent(self, report):
        """Return a verdict if nothing was all-reduced at all."""
        steps = chain(*self._steps())
        if self.world_size == 1 or any(map(calls_of, steps)):
            return None
        return self._fail("all_reduce was never called.", NOTHING_SENT)

    def _unended(self):
        """Return a verdict if a rank has left without all of its steps."""
        for rank, ended in enumerate(self._witness.ended):
            if ended < len(self._counts):
                found = f"Rank {rank} returned after {ended} of its training steps."
                return self._fail(found, UNENDED)
        return None

    def _misstep(self, story=""):
        """Return a verdict for the first thing that a rank did wrong, or None."""
        if self.world_size == 1:  # which needs no message, and may send none
            return None
        buckets, steps = self._witness.buckets, self._steps()
        for number, counts in enumerate(self._counts):
            for rank, own in enumerate(steps):
                step = own[number] if number < len(own) else []
                found = self._looked_at(step, buckets, len(counts[rank]))
                if found:
                    told = f"Rank {rank}, training step {number + 1}: {found.told}"
                    order = f"Its order: {around(step, found.at)}"
                    lines = [told, order, *story.splitlines()]
                    return self._fail("\n".join(lines), hint_for_misstep(found.kind))
        return None

    def _looked_at(self, step, buckets, microbatches):
        return accumulating(step, microbatches) or wrong_calls(step, buckets)

    def _wrong_gradient(self):
        """Return a verdict for the first gradient that is not that of one process."""
        found = [(d, rank) for rank, d in enumerate(self._witness.differences) if d]
        if not found:
            return None
        first, rank = min(found, key=lambda pair: (pair[0].step, pair[1]))
        same = (first.step, first.parameter)
        alike = [f"{r}" for d, r in found if (d.step, d.parameter) == same]
        buckets = enumerate(self._witness.buckets)
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
        started = any(seen.kind == "start" for seen in self._witness.notes[rank])
        return self._fail(told, hint_for_gradient(first.likeness, started=started))

    def _too_much(self, report):
        n = self.world_size
        sent = sum(map(report.trace.bytes_sent, range(n)))
        needed = 2 * (n - 1) * self._witness.bytes * len(self._counts)
        if sent == needed:
            return None
        return self._fail(
            f"The gradients are right, but all ranks together sent {sent:,} bytes, "
            f"where {needed:,} are enough.",
            UNASKED,
        )

    def _failed(self, failure) -> Verdict:
        if failure.trace.collectives():
            return super()._failed(failure)
        story, raised = story_of(failure), hint_for_raised(failure)
        if raised:
            return self._fail(story, raised)
        misstep = self._misstep(story)
        if misstep:
            return misstep
        differ = disagreement(self._steps())
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

    _kind, _looks = "averaged", {"lays_out": True}

    @property
    def _counts(self):
        return [[[4]] * self.world_size] * 2

    def _badly_laid_out(self):
        found = self._witness.layout
        if found is None:
            return self._unended()
        if found["changed"]:
            return self._fail("in_buckets changed the list that it was given.", CHANGED)
        if found["yours"] is None:
            return self._fail(
                f"in_buckets returned {found['shown']}",
                "Return a list of buckets, each a list of parameters.",
            )
        rows, limits = self._witness.rows, self._witness.limits
        for limit, yours in zip(limits, found["yours"], strict=True):
            expected = laid_out(rows, *limit)
            if yours != expected:
                told = layout_told(rows, limit, yours)
                return self._fail("\n".join(told), hint_for_layout(rows, limit, yours))
        return None


class AccumulatedGradients(_TrainingCheck):
    """Several microbatches a step, ranks with more, fewer or no samples."""

    _kind, _looks = "accumulated", {}


class OverlappedGradients(_TrainingCheck):
    """The same from hooks: each bucket starts in backward, as soon as it is full."""

    _kind, _looks = "overlapped", {"looks_inside": True}

    def _looked_at(self, step, buckets, microbatches):
        return first_misstep(step, buckets, microbatches)
