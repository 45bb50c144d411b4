"""`Witness`: hears what each rank does in training, and answers; it is in the check.

    rank                                  witness
    "microbatch 0"               ──▶      its samples
    "gate 9", the slope there    ──▶      its factors, if that is the slope
    "start", what is in a buffer ──▶      which bucket that is, and what is missing
    "sum"                        ──▶      the buffers of all ranks, added up
    "end", gradients, parameters ──▶      the first that is wrong

A rank cannot know a gradient before it has passed all gates from the loss to it, nor a
sum before it waits for it. So the order in which it asks is the order in which it does
things.
"""

from typing import ClassVar

import torch

from distlab.grading.gradients.layout import Row, just_reached, laid_out
from distlab.grading.gradients.likeness import first_difference, first_moved
from distlab.grading.gradients.notes import Difference, Seen
from distlab.grading.gradients.reduces import Buffer, described, total_of
from distlab.grading.gradients.trained import LIMITS
from distlab.grading.gradients.truth import Truth

__all__ = ["NO_SLOPE", "Witness"]

NO_SLOPE = "this is not the slope of the loss there"
_REDUCES = ("call", "start", "side")
_MOST_NOTES = 10_000
_MOST_SHOWN = 200
_MOST_NUMBERS, _MOST_BUFFERS = 10_000, 2_000


class _OfRank:
    """One rank: what it did, and what it is doing."""

    def __init__(self):
        self.notes: list[Seen] = []
        self.difference: Difference | None = None
        self.ended, self.under_way = 0, False
        self.sent: set[int] = set()
        self.opened: dict[int, set[int]] = {}
        self.buffers: list[Buffer] = []
        self.begun: list[int] = []

    def note(self, kind, *what):
        _demand(len(self.notes) < _MOST_NOTES, "too much was said")
        self.notes.append(Seen(kind, list(what)))

    def wait(self, buffer):
        if not buffer.waited:
            buffer.waited = True
            self.note("wait", buffer.called)


class Witness:
    """What is known of a training on some ranks.

    counts: for each step, rank and microbatch how many samples. lays_out: whether the
    buckets are the learner's. looks_inside: whether it matters what is in a buffer when
    it is sent.

    rows: what the rule of buckets looks at. buckets: the names in each, as they should
    be. layout: what rank 0's in_buckets made of each of `limits`, if it was asked.
    """

    def __init__(
        self,
        model: str,
        counts: list[list[list[int]]],
        *,
        lays_out: bool = False,
        looks_inside: bool = False,
    ):
        self._model, self._truth = model, Truth(model, counts)
        self._lays_out, self._looks_inside = lays_out, looks_inside
        self.rows: list[Row] = self._truth.rows
        self._row_of = {row.name: row for row in self.rows}
        self.limits = [LIMITS[model], (1, 1), (10**6, 10**6)]
        self.limits.append(just_reached(self.rows, *LIMITS[model]))
        self.buckets = laid_out(self.rows, *LIMITS[model])
        self.layout: dict | None = None
        self._ranks = [_OfRank() for _ in counts[0]]

    @property
    def notes(self) -> list[list[Seen]]:
        """For each rank what it did."""
        return [own.notes for own in self._ranks]

    @property
    def differences(self) -> list[Difference | None]:
        """For each rank what was first wrong there."""
        return [own.difference for own in self._ranks]

    @property
    def ended(self) -> list[int]:
        """For each rank how many steps it has ended."""
        return [own.ended for own in self._ranks]

    @property
    def bytes(self) -> int:
        """How many bytes all gradients of one rank have."""
        return sum(row.bytes for row in self.rows if not row.frozen)

    def hear(self, rank: int, step: int, kind: str, *more: object) -> object:
        """Take in what a rank says, and return what it is to know then."""
        return self._KINDS[kind](self, self._ranks[rank], rank, *more)

    def _begin(self, own, rank):
        """Return the model's name, and the limits or the buckets."""
        return self._model, self.limits if self._lays_out else self.buckets

    def _laid_out(self, own, rank, yours, changed, shown):
        """Return whether the layout is right, so that training may begin."""
        _demand(isinstance(shown, str), "it shows no text")
        if yours is not None:
            yours = [
                [[self._row_of[name].name for name in bucket] for bucket in each]
                for each in yours
            ]
            _demand(len(yours) == len(self.limits), "a layout for each limit")
        if rank == 0:
            shown = shown[:_MOST_SHOWN]
            self.layout = {"yours": yours, "changed": changed, "shown": shown}
        return yours == [laid_out(self.rows, *limits) for limits in self.limits]

    def _step(self, own, rank):
        """Return how many samples this rank's microbatches have, all ranks' number, and
        the parameters, which are right also after a step that was not.
        """
        _demand(not own.under_way, "a step has not ended")
        step, truth = self._truth.steps[own.ended], self._truth
        before = truth.steps[own.ended - 1].parameters if own.ended else truth.start
        own.under_way, own.sent, own.opened = True, set(), {}
        own.note("step")
        counts = [batch.count for batch in step.batches[rank]]
        return counts, step.total, {n: p.flatten().tolist() for n, p in before.items()}

    def _now(self, own):
        _demand(own.under_way, "no step is under way")
        return self._truth.steps[own.ended]

    def _batch(self, own, rank, number):
        batches = self._now(own).batches[rank]
        _demand(number in range(len(batches)), "there is no such microbatch")
        return batches[number]

    def _microbatch(self, own, rank, number):
        """Return its samples."""
        batch = self._batch(own, rank, number)
        if not self._lays_out:
            own.note("microbatch", f"{number}")
        return batch.samples.tolist()

    def _gate(self, own, rank, number, place, slope):
        """Return the factors of a gate for the slope that has to arrive there.

        A gradient has arrived when all of its gates were opened. For a slope of zeros
        there are factors of zero, which tell nothing and are as good.
        """
        batch = self._batch(own, rank, number)
        gate, slope = batch.gates[place], torch.tensor(slope, dtype=torch.double)
        if not slope.any():
            return slope.tolist()
        _demand(gate.fits(slope, exact=self._truth.exact), NO_SLOPE)
        opened = own.opened.setdefault(number, set())
        gates = batch.gates_of(gate.name)
        arrives = place not in opened and gates <= opened | {place}
        opened.add(place)
        if arrives and self._looks_inside and gate.name in batch.arrivals:
            own.note("gradient", gate.name)
        return gate.factors.flatten().tolist()

    # ---- all-reduces ----------------------------------------------------------------

    def _reduce(self, own, rank, kind, dtype, numbers):
        """Note an all-reduce; return its number on this rank."""
        _demand(kind in _REDUCES and isinstance(dtype, str), "no all-reduce")
        if numbers is not None:
            _demand(len(numbers) < _MOST_NUMBERS, "too large a buffer")
            numbers = torch.tensor(numbers, dtype=torch.double).flatten()
        _demand(len(own.buffers) < _MOST_BUFFERS, "too many all-reduces")
        look = self._looks_inside and own.under_way
        batches = self._now(own).batches[rank] if look else None
        buckets = [[self._row_of[name] for name in names] for names in self.buckets]
        number, *more = described(dtype, numbers, buckets, own.sent, batches)
        if number != "?":
            own.sent.add(int(number))
        own.note(kind, number, *more)
        own.buffers.append(Buffer(dtype, numbers, number))
        return len(own.buffers) - 1

    def _enters(self, own, rank, number):
        """A rank enters what it has started; on all ranks these go in one order."""
        _demand(number not in own.begun, "it was begun before")
        _demand(own.buffers[number].numbers is not None, "this is no tensor")
        own.begun.append(number)

    def _waits(self, own, rank, number):
        own.wait(own.buffers[number])

    def _sum(self, own, rank, number):
        """Return what the buffers of all ranks add up to, which were begun together."""
        own.wait(own.buffers[number])
        place = own.begun.index(number)
        return total_of([r.buffers[r.begun[place]] for r in self._ranks])

    # ---- the end of a step ----------------------------------------------------------

    def _end(self, own, rank, gradients, parameters, left):
        """Compare what there is after a step; left: names that still have hooks."""
        step, exact = self._now(own), self._truth.exact
        for name in left:
            own.note("left", self._row_of[name].name)
        own.note("end")
        found = {n: self._tensor(n, gradients[n]) for n in step.gradients}
        moved = {n: self._tensor(n, parameters[n]) for n in step.parameters}
        own.difference = (
            own.difference
            or first_difference(found, step, own.ended, rank, exact=exact)
            or first_moved(moved, step, own.ended, exact=exact)
        )
        own.under_way = False
        own.ended += 1

    def _tensor(self, name, numbers):
        if numbers is None:
            return None
        like = self._truth.start[name]
        return torch.tensor(numbers, dtype=torch.double).to(like.dtype).view_as(like)

    _KINDS: ClassVar[dict] = {
        "begin": _begin,
        "layout": _laid_out,
        "step": _step,
        "microbatch": _microbatch,
        "gate": _gate,
        "reduce": _reduce,
        "enters": _enters,
        "waits": _waits,
        "sum": _sum,
        "end": _end,
    }


def _demand(right, why):
    if not right:
        raise ValueError(why)
