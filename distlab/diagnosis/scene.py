"""The failure state: the activity of every rank at a failure, each in one phrase."""

import signal
from collections.abc import Sequence

from distlab.calls.failure_location import learners_frames, whereabouts
from distlab.diagnosis.failure import Failure
from distlab.diagnosis.notes import (
    NotesGraph,
    call_in_words,
    passes_in_words,
    waits_for,
)
from distlab.diagnosis.words import ranks_in_words
from distlab.faults import Fault, Kill
from distlab.recorder import DESTROYED, ENDING, SharedTrace, shown

__all__ = ["Scene", "how_it_died"]


class Scene:
    """The failure state that a diagnosis is made from, at the time of detection.

    everyone: all ranks. trace: their events up to here. graph: who waits for whom.
    """

    def __init__(
        self,
        failure: Failure,
        board: SharedTrace,
        faults: Sequence[Fault],
        output: list[str],
    ):
        self.failure = failure
        self.board = board
        self.output = output
        self.faults = faults
        self.trace = board.trace(cut=True, ended=_ends(failure))
        self.everyone = range(board.world_size)
        self.graph = NotesGraph(board, self._lacking(), failure.outcomes)
        self.graph.over = failure.kind != "held"

    def _lacking(self):
        """Return rank -> the ranks it waits for: those stuck, or all that wait."""
        if self.failure.kind != "held":
            return self.failure.stuck
        board, ended = self.board, self.failure.outcomes
        left = (rank for rank in self.everyone if rank not in ended)
        waits = {rank: waits_for(board, rank, board.now(rank)) for rank in left}
        return {rank: missing for rank, missing in waits.items() if missing}

    def doing(self, rank: int) -> str:
        """Return the activity of `rank` in one phrase."""
        outcome = self.failure.outcomes.get(rank)
        if outcome is None:
            return f"rank {rank} {self._waiting(rank)}"
        if outcome.how == "returned":
            if "left" in outcome.details:
                return f"rank {rank} had left by {outcome.details['left']}"
            left = self.board.flags(rank) & DESTROYED
            destroyed = ", its process group destroyed" if left else ""
            after = passes_in_words(self.board.passes(rank))
            return f"rank {rank} had returned{after}{destroyed}"
        if outcome.details.get("disagreement"):
            return f"rank {rank} stopped at {shown(outcome.details['message'])}"
        if outcome.details.get("communication"):
            return f"rank {rank} lost its connection"
        if outcome.how == "raised":
            return f"rank {rank} raised {outcome.details['type']}, later"
        if (why := outcome.details.get("why")) is not None:
            own = why.startswith(f"rank {rank} ")
            return why if own else f"rank {rank} was lost with its node"
        return f"rank {rank} {how_it_died(outcome.value)}"

    def where(self, rank: int) -> str:
        """Return the place of `rank` in the learner's code, in half a sentence.

        The stack of a rank that has ended is from before its end, so it is left out.
        """
        outcome = self.failure.outcomes.get(rank)
        if outcome and outcome.details.get("disagreement"):
            return whereabouts([tuple(f) for f in outcome.details["frames"][::-1]])
        return "" if outcome else whereabouts(self._stack(rank))

    def _stack(self, rank):
        return self.failure.stacks.get(rank, [])

    def _waiting(self, rank):
        now = self.board.now(rank)
        if now.state == "blocked":
            missing = waits_for(self.board, rank, now)
            call = call_in_words(self.board, rank)
            call += self.graph.among(now.group)
            if now.kind in ("send", "recv"):
                moving = "" if missing else ", which was in transfer"
                return f"waited in {call}{moving}"
            any_of = "any of " * (now.kind == "any")
            whom = f" for {any_of}{ranks_in_words(missing)}" if missing else ""
            return f"waited in {call}{whom}{self.graph.during(rank)}"
        if now.state == "several":
            return "waited in calls that it had started on several Comms"
        if self._fault_fired(rank, "hang"):
            return "hung, as planned"
        if self._fault_fired(rank, "kill"):
            return "was being killed, as planned"
        if self.board.flags(rank) & ENDING:
            threads = self.trace.of(rank, "mark")[-1].label
            return f"had reached its end, and waited for {threads}"
        if learners_frames(self._stack(rank)):
            return "was running"
        if self._stack(rank):
            return "was starting or ending its call"
        return "was running, and did not answer when its stack was asked for"

    def _fault_fired(self, rank, label):
        faults = self.trace.of(rank, "fault")
        return any(event.label == label for event in faults)

    def planned(self) -> Kill | None:
        """Return the plan that killed the first rank to fail, if one did."""
        if self.failure.first is None:
            return None
        rank = self.failure.first.rank
        plans = [f for f in self.faults if f.rank == rank and isinstance(f, Kill)]
        return plans[0] if plans and self._fault_fired(rank, "kill") else None

    def last_event(self, rank: int, noun: str) -> str:
        """Return the last event of `rank` in a sentence; "" if there is none.

        noun: what its calls are, such as "Comm call".
        """
        marks = self.trace.of(rank, "mark")
        title = f'"{marks[-1].label}"' if marks else ""
        calls = self.trace.of(rank, "send", "recv", "barrier", "collective")
        if not calls:
            return f"It was at the beginning of {title}." if marks else ""
        last = calls[-1]
        when = "was in" if last.end is None else "had finished"
        way = "to" if last.kind == "send" else "from"
        peer = "" if last.peer is None else f" {way} rank {last.peer}"
        call = f"{noun} {last.step}, {last.label or last.kind}{peer}"
        return f"It {when} {call}" + (f"; it was at {title}." if marks else ".")

    def last_words(self) -> str:
        """Return the output of the first rank to fail, if it may explain its end."""
        first = self.failure.first
        if "starting" in first.details:
            return first.details["starting"]
        if first.value in (0, -signal.SIGKILL):
            return ""
        return self.output[first.rank]


def _ends(failure):
    """Return rank -> (time, how) for ranks that died or raised an own exception."""
    ends = {}
    for rank, outcome in failure.outcomes.items():
        details = outcome.details
        echo = details.get("communication") or details.get("disagreement")
        if outcome.how == "died":
            ends[rank] = outcome.time, "died"
        elif outcome.how == "raised" and not echo:
            ends[rank] = outcome.time, f"raised {details['type']}"
    return ends


def how_it_died(status: int, planned: Kill | None = None) -> str:
    """Return the end of a process in words, from its exit status and planned fault."""
    if planned is not None:
        return f"was killed, as planned by {planned}"
    if status >= 0:
        return (
            f"left with exit status {status} before its function returned; "
            "os._exit or a crash of the interpreter does that"
        )
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if name == "SIGSYS":  # see `forbid`
        return "killed itself; os.kill and os.abort do that"
    why = {
        "SIGKILL": ", by itself, from outside, or by the system when memory ran out",
        "SIGSEGV": ", a crash in compiled code",
        "SIGABRT": ", a crash in compiled code",
        "SIGTERM": ", by itself or from outside",
    }
    return f"was killed by {name}{why.get(name, '')}"
