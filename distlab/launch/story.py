"""Why a world failed, told once: who first, why, what the others did, who waited for whom."""

import linecache
import signal
import sys
from pathlib import Path

from distlab.errors import (
    CollectiveMismatch,
    Deadlock,
    RankDied,
    RankRaised,
    WorldTimeout,
)
from distlab.launch.waits import cycle_among, disagreement, waits_for
from distlab.recorder import DESTROYED

__all__ = ["tell"]

_PACKAGE = str(Path(__file__).resolve().parents[1])


def tell(failure, board, faults, output):
    """Return the exception that tells the story of a `Failure`.

    board: the ranks' notes at the moment of failure. faults: what was planned.
    """
    return _Story(failure, board, faults, output).error()


class _Story:
    """Gathers the facts, then writes them down."""

    def __init__(self, failure, board, faults, output):
        self.failure = failure
        self.board = board
        self.output = output
        self.faults = faults
        self.trace = board.trace()
        self.everyone = range(board.world_size)

    def error(self):
        """Return the exception of the kind that fits, with its story."""
        kind = self.failure.kind
        if kind in ("stuck", "disagreement"):
            return self._mismatch() or self._deadlock()
        if kind == "timeout":
            return self._timeout()
        crashed = (
            kind == "died" and self.failure.first.value < 0 and not self._planned()
        )
        if crashed and disagreement(self.board):  # gloo aborts on unequal sizes
            return self._mismatch()
        if kind == "raised" and self.failure.first.details.get("communication"):
            return self._left_the_group() or self._raised()
        return self._died() if kind == "died" else self._raised()

    # ---- the kinds -------------------------------------------------------------------

    def _raised(self):
        first = self.failure.first
        details = first.details
        said = (
            f"{details['type']}: {details['message']}"
            if details["message"]
            else details["type"]
        )
        lines = [f"rank {first.rank} raised {said}", ""]
        lines += _source_lines(details.get("frames", []))
        if details.get("because"):
            lines.append(f"    because of {details['because']}")
        if "default process group twice" in details["message"]:
            lines.append(
                "    Inside run the process group is up already; leave that call away."
            )
        return self._write(RankRaised, lines, first.rank, first.value)

    def _died(self):
        first = self.failure.first
        how = _how_it_died(first.value, self._planned())
        lines = [f"rank {first.rank} {how}", ""]
        own = [
            e for e in self.trace.events if e.rank == first.rank and e.kind != "fault"
        ]
        if own:
            last = own[-1]
            done = "in" if last.end is None else "after"
            peer = "" if last.peer is None else f" {_WAY[last.kind]} rank {last.peer}"
            lines.append(
                f"    It was {done} step {last.step}, {last.label or last.kind}{peer}."
            )
        elif not first.details:
            lines.append("    It had not finished any Comm call.")
        said = first.details.get("starting") or self._last_words(first.rank)
        lines += [f"    It said: {line}" for line in said.strip().splitlines()[-5:]]
        return self._write(RankDied, lines, first.rank, how)

    def _deadlock(self):
        stuck = self.failure.stuck
        cycle = cycle_among(stuck)
        if cycle:
            chain = " → ".join(f"rank {rank}" for rank in [*cycle, cycle[0]])
            cause = f"each waits for the next: {chain}"
            hint = self._cycle_hint(cycle)
        else:
            waiter = next(r for r, missing in stuck.items() if missing - stuck.keys())
            gone = min(stuck[waiter] - stuck.keys())
            now = self.board.now(waiter)
            cause = f"rank {waiter} waits in {_call(now)}, but rank {gone} has returned"
            hint = "Count the sends and receives between the two: they must be equal."
            cycle = ()
        rank = cycle[0] if cycle else gone
        error = self._write(Deadlock, [cause, "", f"    {hint}"], rank, cause)
        error.cycle = tuple(cycle)
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
        found = disagreement(self.board)
        if found:
            number, calls = found
            votes = list(calls.values())
            common = max(votes, key=votes.count)
            odd = [rank for rank, call in calls.items() if call != common]
            others = [rank for rank, call in calls.items() if call == common]
            cause = f"{_ranks(odd)} called {calls[odd[0]]}, {_ranks(others)} called {common}"
            lines = [f"ranks disagree about collective {number}: {cause}", ""]
            lines.append(
                "    Every rank must call the same collectives, in the same order,"
            )
            lines.append("    with the same shape and type.")
            return self._write(CollectiveMismatch, lines, odd[0], cause)
        waiting = {r: self.board.now(r).call for r in self.failure.stuck}
        number = max(waiting.values(), default=-1)
        if number < 0:
            return None
        inside = [r for r in self.everyone if self.board.calls(r) >= number]
        missing = [r for r in self.everyone if r not in inside]
        where = self.board.call(inside[0], number)
        doing = "; ".join(self._doing(rank) for rank in missing[:3])
        cause = f"{_ranks(missing)} never called {where}, which {_ranks(inside)} "
        cause += "waits in" if len(inside) == 1 else "wait in"
        lines = [cause, "", f"    It is collective {number} of this world. {doing}."]
        return self._write(CollectiveMismatch, lines, missing[0], cause)

    def _left_the_group(self):
        """Blame a rank that destroyed the process group which others still needed."""
        first = self.failure.first
        left = [
            r
            for r in self.everyone
            if self.board.flags(r) & DESTROYED and r != first.rank
        ]
        if not left:
            return None
        cause = RuntimeError(
            "destroy_process_group was called while other ranks communicated"
        )
        lines = [
            f"rank {left[0]} destroyed the process group while others still used it",
            "",
        ]
        lines.append(
            "    distlab makes the process group and ends it; leave that call away."
        )
        lines.append(
            f"    rank {first.rank} then failed: {first.details['message'][:200]}"
        )
        return self._write(RankRaised, lines, left[0], cause)

    def _timeout(self):
        busy = [r for r in self.everyone if r not in self.failure.outcomes]
        notes = {rank: self.board.now(rank) for rank in busy}
        at_work = [
            rank for rank in busy if not waits_for(self.board, rank, notes[rank])
        ]
        rank = at_work[0] if at_work else busy[0]
        within = f"{self.failure.timeout_s:g} s"
        starting = all(notes[r].state == "starting" for r in busy)
        cause = (
            f"{_ranks(busy)} did not "
            + ("start" if starting else "return")
            + f" within {within}"
        )
        lines = [cause, ""]
        lines.append(
            "    If the work needs longer, give it longer: run(..., timeout_s=600)."
        )
        return self._write(WorldTimeout, lines, rank, cause)

    # ---- its parts -------------------------------------------------------------------

    def _write(self, kind, lines, rank, cause):
        told = {rank} if kind in (RankRaised, RankDied) else set()
        others = [r for r in self.everyone if r not in told]
        while lines[-1] == "":
            lines.pop()
        if others and not (
            self.failure.first and self.failure.first.details.get("starting")
        ):
            lines += ["", "  Meanwhile:" if told else "  What each rank was doing:"]
            shown = others if len(others) <= 16 else others[:15]
            lines += [f"    {self._doing(r)}{self._where(r)}" for r in shown]
            if len(shown) < len(others):
                lines.append(f"    and {len(others) - len(shown)} more ranks")
            lines += ["", "  The trace up to here is in the exception's `trace`."]
        return kind(
            "\n".join(lines),
            rank=rank,
            cause=cause,
            trace=self.trace,
            output=self.output,
        )

    def _doing(self, rank):
        """Return in one phrase what `rank` was doing."""
        outcome = self.failure.outcomes.get(rank)
        if outcome is not None and outcome.how == "returned":
            left = self.board.flags(rank) & DESTROYED
            return f"rank {rank} had returned" + (
                ", its process group destroyed" if left else ""
            )
        if outcome is not None and outcome.details.get("disagreement"):
            return f"rank {rank} stopped at {self.board.call(rank, self.board.calls(rank))}"
        if outcome is not None and outcome.how == "raised":
            return f"rank {rank} raised {outcome.details['type']}, later"
        if outcome is not None:
            return f"rank {rank} {_how_it_died(outcome.value, None)}"
        return f"rank {rank} {self._waiting(rank)}"

    def _waiting(self, rank):
        now = self.board.now(rank)
        if now.state == "blocked":
            missing = sorted(waits_for(self.board, rank, now))
            if now.kind in _WAY:
                return f"waited in {_call(now)}" + (
                    "" if missing else ", which was in transfer"
                )
            call = self.board.call(rank, now.call) if now.call >= 0 else _call(now)
            return f"waited in {call}" + (f" for {_ranks(missing)}" if missing else "")
        if any(e.rank == rank and e.kind == "fault" for e in self.trace.events):
            return "hung, as planned"
        if _learners(self.failure.stacks.get(rank, [])):
            return "was running"
        return "was starting or ending its call"

    def _where(self, rank):
        frames = _learners(self.failure.stacks.get(rank, []))
        if not frames:
            return ""
        name, line, _ = frames[0]
        code = linecache.getline(name, line).strip()
        code = code if len(code) <= 60 else code[:59] + "…"
        return f", {_place(name, line)}" + (f": {code}" if code else "")

    def _planned(self):
        if self.failure.first is None:
            return None
        rank = self.failure.first.rank
        fired = any(e.rank == rank and e.kind == "fault" for e in self.trace.events)
        plans = [
            f for f in self.faults if f.rank == rank and type(f).__name__ == "Kill"
        ]
        return plans[0] if fired and plans else None

    def _last_words(self, rank):
        return (
            self.output[rank]
            if self.failure.first.value not in (0, -signal.SIGKILL)
            else ""
        )


_WAY = {"send": "to", "recv": "from"}


def _how_it_died(status, planned):
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
    why = {
        "SIGKILL": ", from outside or by the system when memory ran out",
        "SIGSEGV": ", a crash in compiled code",
        "SIGABRT": ", a crash in compiled code",
        "SIGTERM": ", from outside",
    }
    return f"was killed by {name}{why.get(name, '')}"


def _call(now):
    if now.kind == "sendrecv":
        return f"sendrecv to rank {now.send_to} and from rank {now.recv_from}"
    if now.kind in _WAY:
        peer = now.send_to if now.kind == "send" else now.recv_from
        return f"{now.kind} {_WAY[now.kind]} rank {peer}"
    return now.label or now.kind


def _ranks(ranks):
    ranks = list(ranks)
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _source_lines(frames):
    """Return the raising rank's own frames, outermost first, each with its line."""
    lines = []
    for name, line, function in _learners(frames)[-8:]:
        inside = "" if function == "<module>" else f", in {function}"
        lines.append(f"    {_place(name, line)}{inside}")
        code = linecache.getline(name, line).strip()
        lines += [f"        {code}"] if code else []
    return lines


def _learners(frames):
    """Return the frames of the learner's code, or all but the launcher's if there is none."""
    frames = [tuple(frame) for frame in frames]
    own = [frame for frame in frames if _is_learners(frame[0])]
    return own or [frame for frame in frames if "/collectives/" in frame[0]]


def _is_learners(name):
    installed = (
        name.startswith(("<frozen", "<string>", _PACKAGE)) or "/site-packages/" in name
    )
    return not installed and not name.startswith(
        (sys.prefix + "/lib/", sys.base_prefix + "/lib/")
    )


def _place(name, line):
    """Return where a line is, in the words of the notebook if it is in a cell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        cell = shell.compile.format_code_name(name)
        if cell:
            return f"{' '.join(cell)}, line {line}"
    return f"{Path(name).name}, line {line}"
