"""`WorldCheck`: run a learner's function on ranks, and compare what was seen.

up to 8 ranks    ─▶ processes, which end when their time is over
more than that   ─▶ simulated ranks, all in one process of their own, for the same
                    reason; on their clock every message takes one second
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from distlab.errors import WorldFailed, WorldTimeout
from distlab.grading.hints import hint_for_failure
from distlab.grading.probes import simulation
from distlab.grading.verdict import Verdict
from distlab.launch import run
from distlab.links import Link
from distlab.simulated import Uniform

__all__ = ["WorldCheck"]

_MOST_PROCESSES = 8
_ONE_SECOND_EACH = Uniform(Link(latency_s=1.0, bytes_per_s=math.inf))


@dataclass
class WorldCheck:
    """A function under test, and the number of ranks to try it on.

    A check names its `_probe`, which calls the function on a rank and returns what is
    there afterwards, and says in `_compare(report)` what is wrong with that, as a
    `Verdict`, or None. `_arguments()` are handed to the probe after the function, and
    `_hint_for_failure` has a nudge for a run that failed.

    Up to 8 ranks are processes. More are simulated, without contention for the
    machine: there `report.elapsed_s` is how many messages came one after another, each
    rank sending one at a time and receiving one at a time.
    """

    function: object
    world_size: int

    _words: ClassVar[dict[str, str]] = {}
    _timeout_s = 15

    @property
    def title(self):
        """Say what is tried."""
        if self.simulated:
            return f"{self.world_size} simulated ranks"
        return "1 rank" if self.world_size == 1 else f"{self.world_size} ranks"

    @property
    def simulated(self) -> bool:
        """Whether these ranks are simulated."""
        return self.world_size > _MOST_PROCESSES

    def judge(self) -> Verdict:
        """Run the function and compare; never raises for what the learner wrote."""
        try:
            report = self._run()
        except WorldFailed as failure:
            if "did not start" in str(failure.cause):  # the machine's fault, no answer
                return Verdict("inconclusive", self.title, story_of(failure))
            return self._failed(failure)
        return self._compare(report) or Verdict("pass", self.title)

    def _run(self):
        args = (self.function, *self._arguments())
        options = {"backend": "gloo", "timeout_s": self._timeout_s, "quiet": True}
        if not self.simulated:
            return run(self._probe, self.world_size, args=args, **options)
        args = (self._probe, self.world_size, args, _ONE_SECOND_EACH)
        return run(simulation, 1, args=args, **options).results[0].report()

    def _arguments(self):
        return ()

    def _failed(self, failure):
        story = story_of(failure)
        if self.simulated and isinstance(failure, WorldTimeout):
            where = story.rpartition("rank 0 was running, ")[2]
            story = (
                f"The simulated ranks still ran after {self._timeout_s} s, in {where}"
            )
        return self._fail(story, self._hint_for_failure(failure))

    def _hint_for_failure(self, failure):
        return hint_for_failure(failure, self._words)

    def _fail(self, found, hint):
        return Verdict("fail", self.title, found, hint)

    def _silent(self, report):
        """Return a verdict if no message was sent."""
        ranks = range(self.world_size)
        if self.world_size == 1 or any(map(report.trace.messages_sent, ranks)):
            return None
        return self._fail(
            "No message was sent through comm.",
            "Whatever a rank learns has to arrive through comm.",
        )

    def _one_at_a_time(self, report, ideal):
        """Return a verdict if messages waited for each other at a simulated rank.

        ideal: how many messages, one after another, are enough.
        """
        if not self.simulated or report.elapsed_s <= ideal:
            return None
        n = self.world_size
        busiest = max(range(n), key=report.trace.messages_sent)
        return self._fail(
            f"It took as long as {report.elapsed_s:g} messages one after another, "
            f"where {ideal} are enough.\nRank {busiest} alone sent "
            f"{report.trace.messages_sent(busiest)}.",
            "Messages that a rank begins together leave one after another all the "
            "same, in an order that is not yours: it has one connection. In a round it "
            "sends one message and receives one; wait for that before the next.",
        )

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
