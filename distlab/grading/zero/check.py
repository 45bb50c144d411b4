"""What the checks of ZeRO 1 and of ZeRO 3 have in common.

The learner's class trains on real ranks, in float64, with other data on each rank. One
process trains the same, which is the check's; values must be equal to rounding. Then
bytes are looked at: those held, which are measured, and those sent, which are counted.
"""

from distlab.grading.witnessed import Witnessed
from distlab.grading.zero.hints import UNENDED, hint_for_failed_training
from distlab.grading.zero.memory_hints import hint_for_state

__all__ = ["NEEDED", "NUMBER", "ZeroCheck"]

NUMBER = 8  # bytes of a float64
NEEDED = "ring_reduce_scatter and ring_all_gather"
_STATE = {"momentum": 1, "Adam": 2}


class ZeroCheck(Witnessed):
    """A training by the learner's class; `_lengths` are those of the flat tensors."""

    _hint_for_failure = staticmethod(hint_for_failed_training)
    _needs = "distlab.grading.zero.probes"
    _made_from = NEEDED
    _timeout_s = 30

    @property
    def _parts(self):
        """How many numbers a rank owns at the most."""
        return sum(-(-length // self.world_size) for length in self._lengths)

    def _results(self):
        """Return for each rank what the witness knows of it."""
        return self._witness.results()

    def _unended(self):
        """Return a verdict if a rank has left before the end of its training."""
        for rank, result in enumerate(self._results()):
            if not result["ended"]:
                return self._fail(f"Rank {rank} left before its last step.", UNENDED)
        return None

    def _not_handed(self):
        """Return a verdict if no optimizer was made."""
        if all(result["handed"] for result in self._results()):
            return None
        return self._fail(
            "make_optimizer was not called, or got no tensors.",
            "The optimizer is made by make_optimizer(list of tensors), once, of what "
            "this rank is to step.",
        )

    def _too_much_state(self):
        """Return a verdict if a rank holds more optimizer state than its part's."""
        each = _STATE[self.optimizer] * NUMBER
        allowed = each * self._parts
        for rank, result in enumerate(self._results()):
            if result["state"] > allowed:
                whole = each * sum(self._lengths)
                found = (
                    f"The parameters are right. Rank {rank} holds {result['state']:,} "
                    f"bytes of optimizer state, where {allowed:,} are enough; all "
                    f"parameters together have {whole:,}.\nmake_optimizer got "
                    f"{sum(result['handed']):,} numbers, where this rank's part has "
                    f"{self._parts:,}."
                )
                return self._fail(found, hint_for_state(result, self._parts, whole))
        return None

    def _sent(self, report, rank, first, last=None):
        """Return the bytes that a rank sent in its Comm calls after `first`."""
        return sum(
            event.bytes
            for event in report.trace.of(rank, "send")
            if event.step > first and (last is None or event.step <= last)
        )
