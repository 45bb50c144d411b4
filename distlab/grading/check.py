"""`WorldCheck`: run a learner's function on ranks, and compare what was seen.

    check ── probe, function, a rank's own inputs ──▶ ranks: processes
      ▲                                                 │ every message
      ├── results: plain data, of the expected shape ───┤
      └── trace: what left and arrived ─── relay ◀──────┘

What decides is what went through the relay, which runs here, and what the ranks end
with. No rank knows the inputs of another, or what is expected.
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from distlab.errors import WorldFailed, WorldTimeout
from distlab.grading.hints import hint_for_failure
from distlab.grading.pictures import MOST_MESSAGES, Played
from distlab.grading.probes import unreturned
from distlab.grading.shapes import is_like
from distlab.grading.verdict import Verdict
from distlab.launch import Relaying, follow, kept_ranks, run

__all__ = ["WorldCheck"]

_MOST_IN_REAL_TIME, _SOON_S = 8, 5
_ADVICE = "trace up to here", "give it longer"


@dataclass
class WorldCheck:
    """A function under test, and the number of ranks to try it on.

    A check names its `_probe`, which calls the function on a rank and returns what is
    there afterwards, of the shape `_returns`; it says in `_compare(report)` what is
    wrong with that, as a `Verdict`, or None. `_arguments()` are handed to the probe
    after the function, and then `_own_arguments()`, of which each rank gets its own.
    `_answer(rank, question)` answers the probe's `comm.ask`, and `_hint_for_failure`
    has a nudge for a run that failed. `_weighed(rank, bytes)`, if there is one, is told
    how much memory a rank holds; see `Relaying`. The checks of one cell that say
    `_keeps_ranks` run in the same processes, one after another: the inputs of one are
    no help with the next.

    Up to 8 ranks run in real time. More share the processors of this machine, so they
    have a network that is simulated: there `report.elapsed_s` is how many messages
    came one after another, each rank sending one at a time and receiving one at a time.
    """

    function: object
    world_size: int

    _words: ClassVar[dict[str, str]] = {}
    _returns: ClassVar[object] = None
    _weighed = None
    _keeps_ranks = False
    _made_from = "comm.send and comm.recv"
    _timeout_s = 15

    @property
    def title(self):
        """Say what is tried."""
        if self.simulated:
            return f"{self.world_size} simulated ranks"
        return "1 rank" if self.world_size == 1 else f"{self.world_size} ranks"

    @property
    def simulated(self) -> bool:
        """Whether the network of these ranks is simulated."""
        return self.world_size > _MOST_IN_REAL_TIME

    def judge(self) -> Verdict:
        """Run the function and compare; never raises for what the learner wrote."""
        self._judged = None
        try:
            report = self._run()
        except WorldFailed as failure:
            self._judged = failure
            if _at_the_edges(failure):  # the machine's fault, and no answer
                found = (
                    f"{story_of(failure)}\n"
                    "Your function had not begun, or was over: this says nothing "
                    "of it. The machine may be busy: run this cell again."
                )
                return Verdict("inconclusive", self.title, found)
            return self._failed(failure)
        wrong = self._misshapen(report) or self._compare(report)
        return wrong or Verdict("pass", self.title)

    def picture(self):
        """Return the run that was judged last, as something to play, or None."""
        seen = () if self._judged is None else self._judged.trace.messages()
        if not 0 < len(seen) <= MOST_MESSAGES:
            return None
        trace = self._followed() or self._judged.trace
        failed = isinstance(self._judged, WorldFailed)
        ideals = self._ideals() if failed or trace.shares else ()
        return Played(trace, self.title, ideals)

    def _followed(self):
        """Return the trace of a run of its own, to be looked at, or None."""
        return None

    def _ideals(self):
        """Return traces of what it could have been; no more than the lesson shows."""
        return ()

    def _follow(self, fn, numbers, holds=None):
        """Return the trace of `fn` on numbers that say whose they are, if soon done."""
        endless = isinstance(self._judged, WorldTimeout)
        if self.simulated or endless or not numbers or self._lasted_s > _SOON_S:
            return None
        modules = "distlab.grading.inside", "distlab.launch.follow"
        relaying = Relaying(modules=modules, kept=True)
        how = {"holds": holds, "timeout_s": 10, "quiet": True, "relayed": relaying}
        try:
            fn = partial(unreturned, fn)
            with kept_ranks():
                return follow(fn, self.world_size, numbers=numbers, **how).trace
        except WorldFailed as failure:
            return failure.trace if failure.trace.messages() else None

    @property
    def _lasted_s(self):
        events = self._judged.trace.events
        return max(e.end or e.start for e in events) - events[0].start

    def _run(self):
        return self._world(self._own_arguments())

    def _world(self, own_args):
        report = run(
            self._probe,
            self.world_size,
            args=(self.function, *self._arguments()),
            own_args=own_args,
            relayed=Relaying(
                self._answer_at,
                virtual=self.simulated,
                weighed=self._weighed,
                modules=("distlab.grading.inside", *self._modules()),
                kept=self._keeps_ranks,
            ),
            timeout_s=self._timeout_s,
            quiet=True,
        )
        if self._judged is None:
            self._judged = report
        return report

    def _arguments(self):
        return ()

    def _own_arguments(self):
        return ()

    def _modules(self):
        """Return what the ranks import before there is anything of a learner's."""
        return (self._probe.__module__,)

    def _answer_at(self, rank, question, step):
        """Return `_answer`; step: how many calls of its Comm the rank has made."""
        return self._answer(rank, question)

    def _answer(self, rank, question):
        raise ValueError("nobody answers that")

    def _misshapen(self, report):
        """Return a verdict if a rank ended with what the probe never returns."""
        if self._returns is None:
            return None
        for rank, result in enumerate(report.results):
            if not is_like(result, self._returns):
                return self._fail(
                    f"What rank {rank} ended with has another shape, or is of another "
                    "type, than what it was given to fill.",
                    "Write into what you are given, and leave its length as it is.",
                )
        return None

    def _failed(self, failure):
        story, called = story_of(failure), failure.trace.collectives()
        if called:
            return self._fail(story, self._hint_for_ready_made())
        if self.simulated and isinstance(failure, WorldTimeout):
            where = story.partition(" was running, ")[2].partition("\n")[0]
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

    def _ready_made(self, report, said, needed=""):
        """Return a verdict if collectives were called, in distlab or in torch.

        said: what is right all the same. needed: what it should be written from.
        """
        called = report.trace.collectives()
        if not called:
            return None
        found = f"{said}, and there was a call of {' and '.join(called)}."
        return self._fail(found, self._hint_for_ready_made(needed))

    def _hint_for_ready_made(self, needed=""):
        made_from = needed or self._made_from
        return f"Write it from {made_from}: the algorithm itself is the exercise."


def story_of(failure) -> str:
    """Return the story without its advice to whoever called `run`, here the check."""
    lines = str(failure).splitlines()
    kept = [line for line in lines if not any(words in line for words in _ADVICE)]
    told = "\n".join(kept).rstrip()
    return re.sub(r"\n{3,}", "\n\n", told)


def _at_the_edges(failure):
    """Return whether time ran out with all ranks at work outside of their function."""
    if not isinstance(failure, WorldTimeout):
        return False
    said = str(failure)
    between = "did not start" in said or "was starting or ending its call" in said
    return between and " was running" not in said
