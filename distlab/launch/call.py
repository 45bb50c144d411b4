"""One call on a set of ranks: its outcomes so far, and detection of failures.

    poll ─▶ lines ──▶ console
         ─▶ frames ─▶ outcomes ─┐
         ─▶ ends ───▶ outcomes ─┴▶ one that failed? which came first? ─▶ Failure
         ─▶ each 0.05 s: read the notes; the same ranks stuck twice? ─▶ Failure

A failure that may only be a consequence of another one waits a moment for its cause.
"""

import json
import time
from collections.abc import Sequence

from distlab.calls.printed_output import Console
from distlab.calls.serialize import unpack
from distlab.diagnosis import (
    Failure,
    NotesGraph,
    RankOutcome,
    begun_in_vain,
    stuck_ranks,
)
from distlab.errors import NotSerializable
from distlab.faults import Fault, Slow
from distlab.processes import Ended, FrameReceived, Lines, Processes, Slowdown
from distlab.recorder import DISAGREED, SharedTrace

__all__ = ["TICK_S", "RunningCall", "read_outcome"]

TICK_S = 0.05
_GRACE_S = 1.0
_BLAMED_S = 2.0  # for the stack of a rank that the others may wait for
_SILENT_S = 1.5
_SIDES_S = 0.5  # wait for other ranks after a mismatched collective
_LOOKS, _STILL_S = 5, 0.005  # retries if ranks move while their stacks are read


class RunningCall:
    """One call under way.

    outcomes: rank -> its outcome, for all that have ended.
    """

    def __init__(
        self,
        processes: Processes,
        board: SharedTrace,
        *,
        console: Console,
        faults: Sequence[Fault],
    ):
        self.outcomes: dict[int, RankOutcome] = {}
        self._processes = processes
        self._board = board
        self._console = console
        slow = ((f.rank, f.factor) for f in faults if isinstance(f, Slow))
        self._slowdown = Slowdown(processes, slow)
        self._suspects, self._last, self._caught_at = None, {}, 0.0
        self._next_look = time.monotonic() + TICK_S

    def go_on(self) -> None:
        """Wait a moment and process the ranks' frames, output and ends.

        Raises: Failure if the call cannot finish.
        """
        self._take(self._processes.poll(self._pause()))
        failed = self._failed()
        if failed:
            raise self._settled(failed)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + TICK_S
            self._board.drain()
            self._look_for_stuck()

    def how_far(self) -> str:
        """Return the number of running ranks and their Comm calls, in words."""
        size = self._board.world_size
        steps = [self._board.now(rank).step for rank in range(size)]
        least, most = min(steps), max(steps)
        made = f"{least}" if least == most else f"{least} to {most}"
        ranks = f"{size - len(self.outcomes)} of {size} ranks at work"
        return f"{ranks}, Comm calls: {made}" if most else ranks

    def _take(self, happened):
        for what in happened:
            if isinstance(what, Lines):
                self._console.add(what.index, what.text)
            elif isinstance(what, FrameReceived):
                self._hear(what)
            elif isinstance(what, Ended) and what.index not in self.outcomes:
                outcome = self._ended(what.index, what.status)
                outcome.details |= {"why": what.why} if what.why else {}
                self.outcomes[what.index] = outcome

    def _ended(self, rank, status):
        """Return the outcome of a rank that ended without sending one."""
        return RankOutcome(rank, "died", self._time(rank), status)

    def _time(self, rank):
        """Return the present time of a rank, for its trace."""
        return time.monotonic()

    def _hear(self, frame):
        """Record the outcome in a rank's frame."""
        self._flush(frame.index)
        self.outcomes[frame.index] = read_outcome(frame)

    def _flush(self, index):
        text = self._processes.flush(index)
        if text:
            self._console.add(index, text)

    def _failed(self):
        return [o for o in self.outcomes.values() if o.how != "returned"]

    def _pause(self):
        """Stop or continue slow ranks; return the seconds until the next turn."""
        if not self._slowdown:
            return max(0.0, self._next_look - time.monotonic())
        self._slowdown.beat(spared=self.outcomes)
        return Slowdown.TICK_S

    def _settled(self, failed):
        """Return the first failure, or the cause of a broken connection."""
        deadline = time.monotonic() + _GRACE_S
        while all(map(_is_echo, failed)) and time.monotonic() < deadline:
            self._take(self._processes.poll(deadline - time.monotonic()))
            failed = self._failed()
        self._take(self._processes.poll(0))
        failed = self._failed()
        if failed[0].details.get("disagreement"):
            self._hear_all_sides()
        causes = [outcome for outcome in failed if not _is_echo(outcome)]
        first = min(causes or failed, key=lambda outcome: outcome.time)
        disagreed = first.details.get("disagreement")
        return self.failure("disagreement" if disagreed else first.how, first)

    def _hear_all_sides(self):
        """Wait a moment for late ranks to enter the mismatched collective."""
        graph = NotesGraph(self._board, {}, {})
        faults, deadline = graph.faults(), time.monotonic() + _SIDES_S
        while faults and time.monotonic() < deadline:
            late = graph.missing(faults[0].group, faults[0].number)
            if not late - self.outcomes.keys():
                return
            self._take(self._processes.poll(0.01))

    def _look_for_stuck(self):
        """Raise if the same ranks were stuck, in the same calls, at the last look.

        A mismatch that the code has caught, and goes on after, ends the call, too.
        """
        busy = set(range(self._board.world_size)) - set(self.outcomes)
        disagreed = any(self._board.flags(rank) & DISAGREED for rank in busy)
        self._caught_at = (self._caught_at or time.monotonic()) if disagreed else 0.0
        if disagreed and time.monotonic() - self._caught_at > _GRACE_S:
            raise self.failure("disagreement")
        self._board.presumed = self._waiting_in_silence()
        stuck = stuck_ranks(self._board, set(self.outcomes))
        suspects = {rank: self._board.now(rank) for rank in stuck}
        if stuck and suspects == self._suspects:
            raise self.failure("stuck", stuck=stuck)
        self._suspects = suspects

    def _waiting_in_silence(self):
        """Return rank -> presumed note of silent ranks in a hopeless collective."""
        board, gone, now = self._board, set(self.outcomes), time.monotonic()
        board.presumed = {}
        for rank in set(range(board.world_size)) - gone:
            counts = [board.calls(rank, group) for group in board.groups(rank)]
            last = board.now(rank), counts
            if self._last.get(rank, (None, 0.0))[0] != last:
                self._last[rank] = last, now
        silent = {rank for rank, (_, at) in self._last.items() if now - at > _SILENT_S}
        found = {rank: begun_in_vain(board, rank, gone) for rank in silent - gone}
        return {rank: note for rank, note in found.items() if note}

    def failure(self, kind: str, first: RankOutcome | None = None, **facts) -> Failure:
        """Return a Failure with the facts of its diagnosis, also the ranks' stacks."""
        self._slowdown.release()
        busy = set(range(self._board.world_size)) - set(self.outcomes)
        stacks = self._stacks(busy, 1.0 if kind == "interrupted" else 0.2)
        if blamed := {r for r in busy if not stacks.get(r) and self._blamed(r)}:
            stacks |= self._processes.stacks(blamed, _BLAMED_S)
        self._take(self._processes.poll(0))
        return Failure(
            kind, first, outcomes=dict(self.outcomes), stacks=stacks, **facts
        )

    def _blamed(self, rank):
        """Return True if the others may wait for what this rank computes."""
        return self._board.now(rank).state == "running"

    def _stacks(self, busy, wait_s):
        """Return the stacks of these ranks, read again if one of them has moved."""
        for _ in range(_LOOKS):
            before = [self._board.now(rank) for rank in busy]
            stacks = self._processes.stacks(busy, wait_s)
            time.sleep(_STILL_S)
            if before == [self._board.now(rank) for rank in busy]:
                break
        return stacks


def _is_echo(outcome):
    return outcome.details.get("communication")


def read_outcome(frame: FrameReceived) -> RankOutcome:
    """Return the outcome in a rank's frame."""
    end = frame.payload.index(b"\n")
    details = json.loads(frame.payload[:end])
    try:
        value = unpack(memoryview(frame.payload)[end + 1 :])
    except Exception as error:
        value = NotSerializable(
            f"what rank {frame.index} {details['outcome']} arrived, but could not be "
            f"rebuilt here: {type(error).__name__}: {error}"
        )
        details |= {"outcome": "raised", "type": "NotSerializable"}
        details["message"] = str(value)
    when = details.get("time", time.monotonic())
    return RankOutcome(frame.index, details["outcome"], when, value, details)
