"""The checks of a learner's check: is a history of one register linearizable?

The function answers thousands of histories in a Python of its own, which is not told
what is right. Of those that it gets wrong the smallest is shown, and what its mistakes
have in common chooses the hint.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from distlab.calls.places import source_lines
from distlab.calls.travel import pack_functions
from distlab.errors import CannotTravel
from distlab.grading.agreement.borrowed import borrows
from distlab.grading.agreement.histories import long, nasty, short
from distlab.grading.agreement.lanes import lanes, letters
from distlab.grading.agreement.orders import brute_order, searched
from distlab.grading.agreement.register_hints import (
    HINTS,
    kind_of_raised,
    likeness,
)
from distlab.grading.agreement.thrashing import thrashing
from distlab.grading.salt import salted
from distlab.grading.verdict import Verdict
from distlab.processes.answers import Answers, Raised, answers_of
from distlab.processes.apart import TrialTimeout

__all__ = ["Linearizable", "LinearizableWithUnknown"]

_TIMES, _LEAST_S, _SHOWN, _ROUNDS = 30, 4, 7, 12


@dataclass
class Linearizable:
    """All operations answered; told from what is not, on short histories and longer.

    case: "short", or "longer", where nobody can try all orders.
    seed: of the histories; None for some that nobody has seen yet.
    """

    function: Callable
    case: str
    seed: object = 1
    _packed: bytes = field(init=False, repr=False)

    _unknown: ClassVar[float] = 0.0
    _cases: ClassVar[dict[str, str]] = {
        "short": "2000 histories of up to 6 operations",
        "longer": "100 histories of 14 operations",
    }

    @property
    def title(self):
        """Say what is tried."""
        return self._cases[self.case]

    def judge(self) -> Verdict:
        """Ask the function and compare; never raises for what the learner wrote."""
        seed = os.urandom(8).hex() if self.seed is None else self.seed
        histories = self._histories(seed)
        try:
            self._packed = pack_functions((self.function,), "another Python")
        except CannotTravel as error:
            return self._fail(str(error), HINTS["travel"])
        if borrows(self._packed):
            found = "Your function brings the code of the library's checkers with it."
            return self._fail(found, HINTS["locked"])
        began = time.thread_time()
        truths = list(map(_truth, histories))
        took_s = time.thread_time() - began
        self._cpu_s = max(_LEAST_S, math.ceil(_TIMES * took_s))
        try:
            said = self._asked(histories)
        except TrialTimeout:
            said = Answers([], "waits", 0.0)
        return self._judged(histories, truths, said) or Verdict("pass", self.title)

    def _histories(self, seed):
        if self.case == "short":
            return short(seed, 2000, self._unknown)
        return long(seed, 100, 14, 4, self._unknown)

    def _asked(self, histories):
        wall_s = 8 * self._cpu_s + 4  # others may be at work on the machine
        return answers_of(self._packed, histories, cpu_s=self._cpu_s, wall_s=wall_s)

    def _judged(self, histories, truths, said):
        """Return what is wrong, or None."""
        self._kept = said.kept
        pairs = list(zip(histories, truths, said.calls, strict=False))
        for history, _, call in pairs:
            if isinstance(call, Raised):
                return self._raised(history, call)
            if call.changed:
                found = ["It changed the list with this history:", _shown(history)]
                return self._fail(found, HINTS["changed"])
            if call.value is None:
                found = f"It returned {call.shown} (a {call.kind})."
                kind = "none" if call.kind == "NoneType" else "no bool"
                return self._fail(found, HINTS[kind])
        wrong = [
            number
            for number, (_, truth, call) in enumerate(pairs)
            if call.value != truth
        ]
        if wrong:
            return self._wrong(pairs, wrong)
        if said.end != "done":
            return self._unfinished(histories[len(pairs)], said)
        return None

    def _raised(self, history, call):
        if call.kind == "NotCallable":
            return self._fail(call.said, HINTS["unfit"])
        lines = [
            f"It raised {call.kind} for this history:",
            _shown(history),
            f"{call.kind}: {call.said}",
            *source_lines(call.frames),
        ]
        return self._fail(lines, HINTS[kind_of_raised(call, history)])

    def _unfinished(self, history, said):
        if said.end == "died":
            return self._fail("The function ended its own process.", HINTS["died"])
        found = ["There was no answer for this history:", _shown(history)]
        used = f"in {said.cpu_s:.0f} s of processor time."
        if said.end == "waits":
            found.append(f"It did something else than to search, {used}")
            return Verdict("inconclusive", self.title, "\n".join(found))
        found += [
            f"{len(said.calls)} were answered, {used}",
            f"The limit for all is {self._cpu_s} s: {_TIMES} times what the check's "
            f"own search takes here, and {_LEAST_S} s at least.",
        ]
        return self._fail(found, HINTS[self._slow(history)])

    def _slow(self, history):
        return "all orders" if len(history) > 6 else "endless"

    def _wrong(self, pairs, wrong):
        """Return a verdict for wrong answers: the smallest one, and what they share."""
        number = min(wrong, key=lambda number: len(pairs[number][0]))
        history = pairs[number][0]
        history, said = self._smaller(history, pairs[number][2].value)
        if said is None:
            first = f"After {number} others it returned {pairs[number][2].value} for"
            found = [f"{first} this history, and alone not:", _shown(history)]
            found.append(_order_told(history))
            return self._fail(found, HINTS["remembers"])
        found = [f"It returned {said} for this history:", _shown(history)]
        found.append(_order_told(history))
        return self._fail(found, HINTS[self._kind(pairs, wrong, history)])

    def _kind(self, pairs, wrong, smallest):
        kind = likeness(pairs, wrong, smallest)
        # what it remembers came with it, if it has been called in the notebook
        return "remembers" if kind == "same" and self._kept else kind

    def _smaller(self, history, said):
        """Return the history without what can be left out, and the wrong answer.

        The answer is None if, asked about this history alone, the function is right.
        """
        size = max(1, len(history) // 4)
        for number in range(_ROUNDS):
            cuts = range(0, len(history), size)
            smaller = [history[:cut] + history[cut + size :] for cut in cuts]
            calls = self._asked([history, *smaller]).calls
            values = [getattr(call, "value", None) for call in calls]
            if number == 0 and values[:1] == [_truth(history)]:
                return history, None
            still = [
                (one, value)
                for one, value in zip(smaller, values[1:], strict=False)
                if value not in (None, _truth(one))
            ]
            if still:
                history, said = still[0]
            elif size == 1:
                break
            else:
                size //= 2
        return history, said

    def _fail(self, found, hint):
        found = found if isinstance(found, str) else "\n".join(found)
        return Verdict("fail", self.title, found, hint)


def _truth(history):
    """Whether a history is linearizable."""
    if len(history) < _SHOWN:
        return brute_order(history) is not None
    return searched(history)


def _shown(history):
    """Return a history as lanes, if it is short enough to be read."""
    if len(history) > _SHOWN:
        clients = len({one.client for one in history})
        return f"({len(history)} operations by {clients} clients)"
    return lanes(history)


def _order_told(history):
    """Return an order that explains a history, by letters, or that there is none."""
    if len(history) > _SHOWN:
        return ("No", "Some")[_truth(history)] + " order explains it."
    order = brute_order(history)
    if order is None:
        return "No order explains it: it is not linearizable."
    name_of = {id(one): letter for letter, one in letters(history).items()}
    names = " ".join(name_of[id(one)] for one in order) or "(nothing took effect)"
    return f"This order explains it: {names}, so it is linearizable."


@dataclass
class LinearizableWithUnknown(Linearizable):
    """Some operations never answered, or failed; and long histories, in good time.

    case: "short", or "sixty", with eight in which the way to an answer is long: of
    these four are linearizable, so that who gives up can say neither yes nor no.
    """

    _unknown: ClassVar[float] = 0.2
    _cases: ClassVar[dict[str, str]] = {
        "short": "2000 histories of up to 6 operations, some without an answer",
        "sixty": "48 histories of 57 to 100 operations",
    }

    def _histories(self, seed):
        if self.case == "short":
            return short(seed, 2000, self._unknown)
        many = long(seed, 40, 60, 5, 0.06)
        draw = salted("thrashing", seed)
        hard = [thrashing(draw, right) for right in 3 * [True] + 2 * [False]]
        hard += [nasty(10, 5), nasty(9, 5, lost=2), nasty(9, 5, right=True)]
        draw.shuffle(hard)
        return [*many, *hard]

    def _kind(self, pairs, wrong, smallest):
        if self.case == "sixty":
            return "long only"
        kind = super()._kind(pairs, wrong, smallest)
        return "strict" if kind == "greedy" else kind

    def _slow(self, history):
        return "memory" if len(history) > 6 else "endless"
