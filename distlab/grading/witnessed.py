"""`Witnessed`: a check that talks with its ranks while they run the learner's code.

    check ── a witness ◀── "I am at ..., and see ..." ── rank: the learner's code
                       ──▶ what it is to know next ────▶

Whatever a rank is not to know in advance stays with the witness, in the check.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from distlab.grading.check import WorldCheck

__all__ = ["Witnessed"]


@dataclass
class Witnessed(WorldCheck):
    """A check with a witness, whose `hear(rank, step, *said)` answers each rank.

    step: how many calls of its Comm the rank had made by then.
    """

    _needs: ClassVar[str] = ""  # the module of the probes

    def _run(self):
        with _one_thread():
            self._witness = self._new_witness()
            return super()._run()

    def _modules(self):
        return (*super()._modules(), self._needs)

    def _answer_at(self, rank, question, step):
        """Return the witness's answer.

        Raises: ValueError if what was said makes no sense: that is the rank's fault.
        """
        try:
            return self._witness.hear(rank, step, *question)
        except Exception as error:
            raise ValueError(f"the check was told nonsense: {error}") from None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread, so that small sums need not wait for processors."""
    import torch  # here, since a notebook may have no use for it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
