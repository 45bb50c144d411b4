"""Checks for ranks that speak in turn: judged by messages, and never by the clock.

A rank may speak once a chain of messages has told it that the rank before it has
spoken. An order that only the clock shows is luck: a slower rank, and it is another.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from distlab.grading.check import WorldCheck
from distlab.grading.probes import MARKS, turns_probe
from distlab.grading.turns.causality import known_when, links
from distlab.grading.turns.hints import (
    MESSAGES_ONLY,
    NEVER_WAITED,
    hint_for_break,
    hint_for_calls,
    hint_for_failed_turns,
    hint_for_messages,
)
from distlab.grading.verdict import Verdict

__all__ = ["PreparesAndSpeaks", "SpeaksInOrder", "SpeaksInRounds"]

_ROWS_BEFORE, _ROWS_AFTER = 5, 3
_TIMES = {0: "never", 1: "once", 2: "twice"}


class Turn(NamedTuple):
    """One time that one rank spoke or prepared, by its own clock."""

    round: int
    rank: int
    begin_s: float
    end_s: float


class SpeaksInOrder(WorldCheck):
    """Each rank speaks once, when messages have told it that the one before has."""

    rounds = 1
    _acts = ("speak",)
    _probe = staticmethod(turns_probe)
    _hint_for_failure = staticmethod(hint_for_failed_turns)

    @property
    def _returns(self):
        return dict.fromkeys(self._acts, int)

    def _hint_for_ready_made(self, needed=""):
        return MESSAGES_ONLY

    def _followed(self):
        """Return the run as a learner knows it, without the check's own barrier."""
        trace = self._judged.trace
        known = [
            event._replace(label=event.label.removeprefix("(check) "))
            for event in trace.events
            if (event.kind, event.step) != ("barrier", 1)
        ]
        return replace(trace, events=known)

    def _compare(self, report):
        return (
            self._torn(report.trace)
            or self._unseen(report)
            or self._wrong_number(report)
            or self._shortcut(report.trace)
            or self._unfinished(report.trace)
            or self._out_of_order(report.trace)
        )

    def _torn(self, trace):
        """Return a verdict if something else than `speak` wrote a mark of its."""
        for rank in range(self.world_size):
            for act in self._acts:
                pair = [mark.format(act) for mark in MARKS]
                seen = [e.label for e in trace.of(rank, "mark") if e.label in pair]
                if seen != pair * (len(seen) // 2):
                    return self._fail(
                        f"Rank {rank} marked the beginning and the end of {act}() "
                        "itself, or began it again before it had ended.",
                        f"A turn is one call of {act}(): what marks it is in there.",
                    )
        return None

    def _unseen(self, report):
        """Return a verdict if the trace does not show all that the ranks did."""
        for rank, calls in enumerate(report.results):
            for act in self._acts:
                shown = len(_turns_of(report.trace, rank, act))
                if shown != calls[act]:
                    found = f"rank {rank} called {act}() {_times(calls[act])}, and"
                    found += f" its trace shows {shown} of these calls"
                    return Verdict("inconclusive", self.title, found)
        return None

    def _wrong_number(self, report):
        for act in self._acts:
            wanted = self.rounds if act == "speak" else 1
            calls = [result[act] for result in report.results]
            if any(count != wanted for count in calls):
                asked = f"  ← asked for: {_times(wanted)}"
                lines = [f"rank  called {act}()"]
                for rank, count in enumerate(calls):
                    mark = asked if count != wanted else ""
                    lines.append(f"{rank:>4}  {_times(count):<9}{mark}".rstrip())
                hint = hint_for_calls(act, calls, wanted)
                return self._fail("\n".join(lines), hint)
        return None

    def _shortcut(self, trace):
        called = trace.collectives()
        barriers = [event for event in trace.events if event.kind == "barrier"]
        if len(barriers) > self.world_size:  # the first of each rank is the probe's
            called.append("comm.barrier")
        if not called:
            return None
        return self._fail(f"{' and '.join(called)} was called.", MESSAGES_ONLY)

    def _unfinished(self, trace):
        """Return a verdict if only one side of a message is in the trace."""
        for send, recv in trace.messages():
            if send and recv:
                continue
            src, dst = (recv.peer, recv.rank) if recv else (send.rank, send.peer)
            side = "send" if recv else "receive"
            return self._fail(
                f"Rank {src if recv else dst} began to {side} a message from rank "
                f"{src} to rank {dst}, and never waited for its end.",
                NEVER_WAITED,
            )
        return None

    def _turns(self, trace):
        """Return all turns in the order that is asked for."""
        turns = [t for r in range(self.world_size) for t in _turns_of(trace, r)]
        return sorted(turns, key=lambda turn: (turn.round, turn.rank))

    def _out_of_order(self, trace):
        turns, known_by = self._turns(trace), links(trace)
        for place, (last, turn) in enumerate(pairwise(turns), 1):
            known = known_when(known_by, self.world_size, last.rank, last.end_s)
            if turn.begin_s >= known[turn.rank]:
                continue
            mark = f"← not told of rank {last.rank}"
            lines = _table(turns, place, "speaks", mark)
            lines.append(
                f"No message, and no chain of messages, told rank {turn.rank} that "
                f"rank {last.rank} had spoken{self._in_round(last)}."
            )
            return self._fail("\n".join(lines), hint_for_break(trace, turns, place))
        return None

    def _in_round(self, turn):
        return f" in round {turn.round + 1}" * (self.rounds > 1)

    def _too_many(self, trace, most):
        sent = [trace.messages_sent(rank) for rank in range(self.world_size)]
        if sum(sent) <= most:
            return None
        lines = [f"The order is right. All ranks together sent {sum(sent)} messages,"]
        lines[0] += f" where {most} are enough."
        lines += [f"rank {rank}: sent {count}" for rank, count in enumerate(sent)]
        return self._fail("\n".join(lines), hint_for_messages(trace))


@dataclass
class SpeaksInRounds(SpeaksInOrder):
    """The same for several rounds, with one message per turn at the most."""

    rounds: int

    @property
    def title(self):
        """Say what is tried."""
        return f"{super().title}, {self.rounds} round{'s' * (self.rounds != 1)}"

    def _arguments(self):
        return (False, self.rounds)

    def _compare(self, report):
        most = self.world_size * self.rounds
        return super()._compare(report) or self._too_many(report.trace, most)


class PreparesAndSpeaks(SpeaksInOrder):
    """All prepare at the same time, then speak in order, with n - 1 messages."""

    _acts = ("prepare", "speak")

    def _arguments(self):
        return (True,)

    def _compare(self, report):
        return (
            super()._compare(report)
            or self._unprepared(report.trace)
            or self._one_by_one(report.trace)
            or self._too_many(report.trace, self.world_size - 1)
        )

    def _unprepared(self, trace):
        for turn in self._turns(trace):
            (prepared,) = _turns_of(trace, turn.rank, "prepare")
            if prepared.end_s > turn.begin_s:
                return self._fail(
                    f"Rank {turn.rank} spoke before it had prepared.",
                    "Each rank has to call prepare() before speak().",
                )
        return None

    def _one_by_one(self, trace):
        """Return a verdict if a rank knew of another's preparation before its own."""
        ranks, known_by = range(self.world_size), links(trace)
        turns = [turn for r in ranks for turn in _turns_of(trace, r, "prepare")]
        for place, turn in enumerate(turns):
            for other in turns[:place] + turns[place + 1 :]:
                known = known_when(known_by, len(ranks), other.rank, other.end_s)
                if turn.begin_s < known[turn.rank]:
                    continue
                mark = f"← told of rank {other.rank}"
                lines = _table(turns, place, "prepares", mark)
                lines.append(
                    f"Rank {turn.rank} began to prepare when messages had told it that "
                    f"rank {other.rank} was prepared."
                )
                return self._fail(
                    "\n".join(lines),
                    f"Rank {turn.rank} waits before it prepares, so that one prepares "
                    "after another. Which of its two tasks needs to wait?",
                )
        return None


def _turns_of(trace, rank, act="speak"):
    """Return the rank's turns, read from the marks that the probe wrote."""
    begun, ended = (
        [e.start for e in trace.of(rank, "mark") if e.label == mark.format(act)]
        for mark in MARKS
    )
    moments = zip(begun, ended, strict=False)
    return [Turn(number, rank, *pair) for number, pair in enumerate(moments)]


def _table(turns, place, verb, mark):
    """Return who did it when, by the clock, around the place that is wrong."""
    zero, rounds = min(turn.begin_s for turn in turns), max(t.round for t in turns)
    lines = [f"{'round  ' * bool(rounds)}rank  {verb} from   until"]
    first, end = max(0, place - _ROWS_BEFORE), place + _ROWS_AFTER
    for number, turn in enumerate(turns[first:end], first):
        row = f"{turn.round + 1:>5}  " * bool(rounds)
        row += f"{turn.rank:>4}  {_ms(turn.begin_s - zero):>{len(verb) + 5}}"
        row += f"  {_ms(turn.end_s - zero):>6}"
        lines.append(row + f"  {mark}" * (number == place))
    return lines


def _ms(seconds):
    return f"{1000 * seconds:.0f} ms"


def _times(count):
    return _TIMES.get(count, f"{count} times")
