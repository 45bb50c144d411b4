"""Why a world failed, told once: who first, why, and what the others did meanwhile."""

from collections.abc import Sequence

from distlab.calls.places import source_lines
from distlab.errors import (
    CollectiveMismatch,
    Deadlock,
    RankDied,
    RankRaised,
    WorldFailed,
    WorldTimeout,
)
from distlab.faults import Fault
from distlab.launch.call import Failure
from distlab.launch.scene import Scene, call_in_words, how_it_died, ranks_in_words
from distlab.launch.waits import cycle_among, disagreement, waits_for
from distlab.recorder import DESTROYED, Blackboard

__all__ = ["tell"]

_SHOWN_RANKS = 16
_SEE_IT = "The trace up to here is in the exception's `trace`; show.player() plays it."


def tell(
    failure: Failure,
    board: Blackboard,
    faults: Sequence[Fault],
    output: list[str],
    *,
    noted: bool = True,
) -> WorldFailed:
    """Return the exception that tells the story of a `Failure`.

    board: the ranks' notes at the moment of failure.
    faults: what was planned.
    output: what each rank printed.
    noted: whether the ranks note what they send and receive. Where they do not, the
    story doesn't speak of it.
    """
    return _Story(Scene(failure, board, faults, output), noted).error()


class _Story:
    """Chooses the kind of failure, and writes the story down."""

    def __init__(self, scene, noted):
        self.scene = scene
        self.noted = noted
        self.failure = scene.failure
        self.board = scene.board

    def error(self):
        """Return the exception of the kind that fits, with its story."""
        kind, first = self.failure.kind, self.failure.first
        if kind in ("stuck", "disagreement"):
            return self._mismatch() or self._deadlock()
        if kind == "timeout":
            return self._timeout()
        crashed = kind == "died" and first.value < 0 and not self.scene.planned()
        if crashed and disagreement(self.board):  # gloo aborts on unequal sizes
            return self._mismatch()
        return self._died() if kind == "died" else self._raised()

    def _raised(self):
        first = self.failure.first
        details = first.details
        message = details["message"]
        said = f"{details['type']}: {message}" if message else details["type"]
        lines = [f"rank {first.rank} raised {said}", ""]
        lines += source_lines(details.get("frames", []))
        if details.get("because"):
            lines.append(f"    because of {details['because']}")
        if self.board.flags(first.rank) & DESTROYED:
            lines.append(
                "    It had destroyed the process group, which distlab does by itself."
            )
        if "default process group twice" in message:
            lines.append(
                "    Inside run the process group is up already; leave that call away."
            )
        return self._write(RankRaised, lines, first.rank, first.value)

    def _died(self):
        first = self.failure.first
        how = how_it_died(first.value, self.scene.planned())
        lines = [f"rank {first.rank} {how}", ""]
        last = self.scene.last_event(first.rank)
        if last:
            lines.append(f"    {last}")
        elif self.noted and not first.details:
            lines.append("    It had not finished any Comm call.")
        said = self.scene.last_words().strip().splitlines()[-5:]
        lines += [f"    It said: {line}" for line in said]
        return self._write(RankDied, lines, first.rank, how)

    def _deadlock(self):
        stuck = self.failure.stuck
        cycle = tuple(cycle_among(stuck))
        if cycle:
            rank = cycle[0]
            chain = " → ".join(f"rank {rank}" for rank in [*cycle, cycle[0]])
            cause = f"each waits for the next: {chain}"
            hint = self._cycle_hint(cycle)
        else:
            lost = [r for r, missing in stuck.items() if missing - stuck.keys()]
            waiter = min(lost, key=lambda r: len(stuck[r]))
            returned = sorted(stuck[waiter] - stuck.keys())
            rank, have = returned[0], "has" if len(returned) == 1 else "have"
            call, whose = (
                call_in_words(self.board.now(waiter)),
                ranks_in_words(returned),
            )
            cause = f"rank {waiter} waits in {call}, but {whose} {have} returned"
            hint = "Count the sends and receives between the two: they must be equal."
        error = self._write(Deadlock, [cause, "", f"    {hint}"], rank, cause)
        error.cycle = cycle
        return error

    def _cycle_hint(self, cycle):
        kinds = {self.board.now(rank).kind for rank in cycle}
        if kinds == {"send"}:
            return (
                "All of them send, and a send ends only when the receiver asks for it. "
                "Let one rank receive first, or use sendrecv."
            )
        if kinds == {"recv"}:
            return (
                "All of them receive, and nobody has sent. Somebody has to send first."
            )
        return "No message is in flight that could free any of them."

    def _mismatch(self):
        """Blame the ranks that called another collective, or one too few."""
        found = disagreement(self.board)
        return self._called_another(*found) if found else self._never_called()

    def _called_another(self, number, calls):
        votes = list(calls.values())
        common = max(votes, key=votes.count)
        odd = [rank for rank, call in calls.items() if call != common]
        others = [rank for rank, call in calls.items() if call == common]
        cause = (
            f"{ranks_in_words(odd)} called {calls[odd[0]]}, "
            f"{ranks_in_words(others)} called {common}"
        )
        lines = [
            f"ranks disagree about collective {number}: {cause}",
            "",
            "    Every rank must call the same collectives, in the same order,",
            "    with the same shape and type.",
        ]
        return self._write(CollectiveMismatch, lines, odd[0], cause)

    def _never_called(self):
        waiting = {r: self.board.now(r).call for r in self.failure.stuck}
        number = max(waiting.values(), default=-1)
        if number < 0:
            return None
        everyone = self.scene.everyone
        inside = [r for r in everyone if self.board.calls(r) >= number]
        missing = [r for r in everyone if r not in inside]
        where = self.board.call(inside[0], number)
        doing = "; ".join(self.scene.doing(rank) for rank in missing[:3])
        wait = "waits" if len(inside) == 1 else "wait"
        cause = (
            f"{ranks_in_words(missing)} never called {where}, "
            f"which {ranks_in_words(inside)} {wait} in"
        )
        lines = [cause, "", f"    It is collective {number} of this world. {doing}."]
        return self._write(CollectiveMismatch, lines, missing[0], cause)

    def _timeout(self):
        busy = [r for r in self.scene.everyone if r not in self.failure.outcomes]
        notes = {rank: self.board.now(rank) for rank in busy}
        at_work = [r for r in busy if not waits_for(self.board, r, notes[r])] or busy
        waiting = [r for r in busy if r not in at_work]
        starting = all(now.state == "starting" for now in notes.values())
        cause = (
            f"{ranks_in_words(at_work)} did not {'start' if starting else 'return'} "
            f"within {self.failure.timeout_s:g} s"
        )
        if waiting:
            wait = "waits" if len(waiting) == 1 else "wait"
            them = "it" if len(at_work) == 1 else "them"
            cause += f", and {ranks_in_words(waiting)} {wait} for {them}"
        lines = [
            cause,
            "",
            "    If the work needs longer, give it longer: run(..., timeout_s=600).",
        ]
        return self._write(WorldTimeout, lines, at_work[0], cause)

    def _write(self, kind, lines, rank, cause):
        """Return the exception: these lines, then what the other ranks were doing."""
        told = {rank} if kind in (RankRaised, RankDied) else set()
        others = [r for r in self.scene.everyone if r not in told]
        while lines[-1] == "":
            lines.pop()
        first = self.failure.first
        starting = first is not None and first.details.get("starting")
        if others and not starting:
            lines += ["", "  Meanwhile:" if told else "  What each rank was doing:"]
            lines += self._doings(others)
            lines += ["", f"  {_SEE_IT}"] if self.noted else []
        scene = self.scene
        return kind(
            "\n".join(lines),
            rank=rank,
            cause=cause,
            trace=scene.trace,
            output=scene.output,
        )

    def _doings(self, ranks):
        shown = ranks if len(ranks) <= _SHOWN_RANKS else ranks[: _SHOWN_RANKS - 1]
        lines = [f"    {self.scene.doing(r)}{self.scene.where(r)}" for r in shown]
        if len(shown) < len(ranks):
            lines.append(f"    and {len(ranks) - len(shown)} more ranks")
        return lines
