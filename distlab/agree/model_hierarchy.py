"""Consistency models from strong to weak, and the first that no history violates."""

from distlab.agree.checkers.causal import check_causal
from distlab.agree.checkers.converged import check_converged
from distlab.agree.checkers.linearizable import check_linearizable
from distlab.agree.checkers.sequential import check_sequential
from distlab.agree.checkers.sessions import (
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_writes_follow_reads,
)
from distlab.agree.sequential_specifications import KeyValue
from distlab.agree.staleness import siblings
from distlab.history import History

__all__ = ["ModelHierarchy"]

_WITHIN_S = 0.5  # is plenty if the checker decides at all
_LINEARIZABLE_S = 10  # takes longer, and all that is weaker follows
_MODELS = {
    "linearizable": lambda h: check_linearizable(
        h, KeyValue(), within_s=_LINEARIZABLE_S
    ),
    "sequential": lambda h: check_sequential(h, KeyValue(), within_s=_WITHIN_S),
    "causal": lambda h: check_causal(h, within_s=_WITHIN_S),
}
_SESSIONS = {
    "read your writes": check_read_your_writes,
    "monotonic reads": check_monotonic_reads,
    "monotonic writes": check_monotonic_writes,
    "writes follow reads": check_writes_follow_reads,
}


class ModelHierarchy:
    """The models that a store's histories, judged one after another, have violated.

    violated: model -> the first verdict that it is violated. A model that is not in it
    has been violated by none of the `judged` histories, which proves nothing.
    undecided: model -> the number of histories that were inconclusive.
    """

    def __init__(self):
        self.judged = 0
        self.violated, self.undecided = {}, {}

    def judge(self, history: History) -> None:
        """Check a history against the models, from the strongest down.

        A model that holds implies the weaker ones. One violated earlier stays so.
        """
        self.judged += 1
        self._check("converged", check_converged, history)
        if any(self._check(name, check, history) for name, check in _MODELS.items()):
            return
        # No session guarantee covers siblings: reads that found some are left out.
        plain = History(each for each in history if not siblings(each.result))
        for name, check in _SESSIONS.items():
            self._check(name, check, plain)

    def _check(self, name, check, history):
        """Return True if the model holds."""
        if name in self.violated:
            return False
        verdict = check(history)
        if verdict.violated:
            self.violated[name] = verdict
        elif verdict.inconclusive:
            self.undecided[name] = self.undecided.get(name, 0) + 1
        return verdict.ok

    @property
    def strongest(self) -> str:
        """The strongest model that no history violated; "none" or "inconclusive"."""
        for name in _MODELS:
            if self.holds(name):
                return name
        broken = " or ".join(name for name in _SESSIONS if name in self.violated)
        if any(self.holds(name) for name in _SESSIONS):
            return "session guarantees" + (f", but not {broken}" if broken else "")
        if self.holds("converged"):
            return "converged"
        return "none" if self.violated else "inconclusive"

    def holds(self, model: str) -> bool:
        """Return True if it was decided for some history, and violated by none."""
        decided = self.judged - self.undecided.get(model, 0)
        return model not in self.violated and decided > 0
