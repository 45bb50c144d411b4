"""`WorldCheck`: run a learner's function on real ranks, and compare what was seen."""

from dataclasses import dataclass

from distlab.errors import WorldFailed
from distlab.grading.hints import hint_for_failure
from distlab.grading.verdict import Verdict
from distlab.launch import run

__all__ = ["WorldCheck"]


@dataclass
class WorldCheck:
    """A function under test, and the number of ranks to try it on.

    A check names its `_probe`, which calls the function on a rank and returns what is
    there afterwards, and says in `_compare(report)` what is wrong with that, as a
    `Verdict`, or None. `_arguments()` are handed to the probe after the function, and
    `_hint_for_failure` has a nudge for a run that failed.
    """

    function: object
    world_size: int

    _timeout_s = 15
    _hint_for_failure = staticmethod(hint_for_failure)

    @property
    def title(self):
        """Say what is tried."""
        return "1 rank" if self.world_size == 1 else f"{self.world_size} ranks"

    def judge(self) -> Verdict:
        """Run the function and compare; never raises for what the learner wrote."""
        try:
            report = run(
                self._probe,
                self.world_size,
                args=(self.function, *self._arguments()),
                backend="gloo",
                timeout_s=self._timeout_s,
                quiet=True,
            )
        except WorldFailed as failure:
            if "did not start" in str(failure.cause):  # the machine's fault, no answer
                return Verdict("inconclusive", self.title, story_of(failure))
            return self._failed(failure)
        return self._compare(report) or Verdict("pass", self.title)

    def _arguments(self):
        return ()

    def _failed(self, failure):
        return self._fail(story_of(failure), self._hint_for_failure(failure))

    def _fail(self, found, hint):
        return Verdict("fail", self.title, found, hint)

    def _ready_made(self, report, said, needed):
        """Return a verdict if collectives were called, in distlab or in torch.

        said: what is right all the same. needed: what it should be written from.
        """
        called = report.trace.collectives()
        if not called:
            return None
        return self._fail(
            f"{said}, made by a call of {' and '.join(called)}.",
            f"Write it from {needed}: the algorithm itself is the exercise.",
        )


def story_of(failure) -> str:
    """Return the story without its last line, on the trace that a check keeps."""
    lines = str(failure).splitlines()
    return "\n".join(line for line in lines if "trace up to here" not in line).rstrip()
