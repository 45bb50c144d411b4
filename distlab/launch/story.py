"""The diagnosis of a failed world: the first rank to fail, the cause, all others."""

import json
import os
import re
import signal
from collections.abc import Sequence

from distlab.calls.failure_location import source_lines
from distlab.errors import (
    CollectiveMismatch,
    Deadlock,
    RankDied,
    RankRaised,
    WorldFailed,
    WorldTimeout,
    interrupted,
)
from distlab.faults import Fault
from distlab.launch.call import Failure
from distlab.launch.scene import Scene, group_in_words, how_it_died, ranks_in_words
from distlab.launch.waits import cycle_among, disagreement, waits_for
from distlab.patience import limit_in_words, more_patience
from distlab.recorder import (
    DESTROYED,
    THREADED,
    SharedTrace,
    agreed,
    handled,
    shown,
    unequal_splits,
)
from distlab.trace import members_of

__all__ = ["progress", "tell"]

_SHOWN_RANKS = 16
_TIMED_OUT = re.compile(
    r"(?:failed to pass monitoredBarrier in|Timed out waiting|Timeout\(ms\)=) ?(\d+)"
)
_SEE_IT = "The trace up to here is in the exception's `trace`; show.player() plays it."
_KEEP_IT = "--page out.html and --trace out.json keep what led here."
_NONE_FREES = "No message is in flight that could free any of them."
_DETAIL = (
    "    TORCH_DISTRIBUTED_DEBUG=DETAIL is set, under which torch itself crashes in\n"
    "    DDP on gloo (2.13): unset it. distlab compares all collectives without it."
)
_ONE_GROUP_EACH = (
    "    Threads of one rank call collectives of the same group, in no fixed order:\n"
    "    give each thread a group of its own."
)
_SAME_ORDER = "Ranks in several groups must call their collectives in the same order."
# Advice on errors whose message has these words.
_FOR_CELLS = {
    "gone": ", which distlab does by itself",
    "default process group twice": (
        "Inside run the process group is up already; leave that call away."
    ),
}
_FOR_SCRIPTS = {
    "gone": " before",
    "default process group twice": (
        "This process has called init_process_group before. Call it once, or call "
        "destroy_process_group in between."
    ),
    "EOFError": "Only rank 0 has the standard input; the others find it empty.",
    "have NCCL built in": "This torch has no NCCL; init_process_group('gloo') works.",
    "no GPUs found": "There is no GPU here; without one, init_process_group('gloo').",
}


def tell(
    failure: Failure,
    board: SharedTrace,
    faults: Sequence[Fault],
    output: list[str],
    *,
    noted: bool = True,
    script: bool = False,
) -> WorldFailed | KeyboardInterrupt:
    """Return the exception with the diagnosis of a `Failure`.

    board: the ranks' notes at the time of the failure.
    faults: the planned faults.
    output: the printed text of each rank.
    noted: whether the ranks record their messages. If not, the diagnosis leaves out
    messages and the trace.
    script: whether the ranks run a script of their own, which made the process group.
    """
    return _Story(Scene(failure, board, faults, output), noted, script).error()


def progress(
    failure: Failure, board: SharedTrace, faults: Sequence[Fault]
) -> list[str]:
    """Return lines on the running ranks, some of which wait for others."""
    scene = Scene(failure, board, faults, [""] * board.world_size)
    others = (rank for rank in scene.everyone if rank not in failure.outcomes)
    return ["Some ranks wait for others:", *_doings(scene, list(others))]


def _doings(scene, ranks):
    shown = ranks if len(ranks) <= _SHOWN_RANKS else ranks[: _SHOWN_RANKS - 1]
    lines = [f"    {scene.doing(rank)}{scene.where(rank)}" for rank in shown]
    if len(shown) < len(ranks):
        lines.append(f"    and {len(ranks) - len(shown)} more ranks")
    return lines


class _Story:
    """The writer of a diagnosis, by kind of failure."""

    def __init__(self, scene, noted, script):
        self.scene = scene
        self.noted = noted
        self.advice = _FOR_SCRIPTS if script else _FOR_CELLS
        self.see_it = _KEEP_IT if script else _SEE_IT
        self.failure = scene.failure
        self.board = scene.board

    def error(self):
        """Return the exception of the matching class, with its diagnosis."""
        kind, first = self.failure.kind, self.failure.first
        if kind in ("stuck", "disagreement"):
            return self._mismatch() or self._deadlock()
        if kind == "timeout":
            how = "If the work needs longer, give it longer: run(..., timeout_s=600)"
            return self._timeout("timeout_s", how)
        if kind == "late start":
            return self._timeout("", more_patience())
        if kind == "interrupted":
            return self._interrupted()
        crashed = kind == "died" and first.value < 0 and not self.scene.planned()
        if crashed and disagreement(self.board):  # gloo aborts on unequal sizes
            return self._mismatch()
        return self._died() if kind == "died" else self._raised()

    def _raised(self):
        first = self.failure.first
        details = first.details
        message = details["message"]
        said = f"{details['type']}: {message}" if message else details["type"]
        if told := self._timed_out() or self._left_early():
            return told
        if "exit_status" in details:
            said = f"SystemExit, and so left with exit status {details['exit_status']}"
        lines = [f"rank {first.rank} raised {said}", ""]
        lines += source_lines(details.get("frames", []))
        if details.get("because"):
            lines.append(f"    because of {details['because']}")
        if self.board.flags(first.rank) & DESTROYED:
            gone = self.advice["gone"]
            lines.append(f"    It had destroyed the process group{gone}.")
        lines += [f"    {self.advice[known]}" for known in self.advice if known in said]
        return self._write(RankRaised, lines, first.rank, first.value)

    def _timed_out(self):
        """Return the error about the ranks that did not come in time, None if none.

        Each rank that waited raises, and blames another that waited.
        """
        ends = [self.failure.first, *self.failure.outcomes.values()]
        said = "\n".join(outcome.details.get("message", "") for outcome in ends)
        found = _TIMED_OUT.search(said)
        first = self.failure.first.rank
        for group in self.board.groups(first) if found else ():
            number, size = self.board.calls(first, group), self.board.world_size
            members = members_of(group, size)
            missing = [r for r in members if self.board.calls(r, group) < number]
            if not missing:
                continue
            words = shown(self.board.call(first, number, group))
            seconds = float(found[1]) / 1000
            waited = [r for r in members if r not in missing]
            cause = (
                f"{ranks_in_words(missing)} did not reach {words}, in which "
                f"{ranks_in_words(waited)} waited, within {seconds:g} s"
            )
            doing = "; ".join(
                self.scene.doing(r) + self.scene.where(r) for r in missing[:3]
            )
            lines = [cause, "", f"    {doing}."]
            lines.append("    If it needs that long, give the group a longer timeout=.")
            return self._write(WorldTimeout, lines, missing[0], cause)
        return None

    def _left_early(self):
        """Return the error about a rank whose exit broke the first one's connection."""
        first = self.failure.first
        left = [o for o in self.failure.outcomes.values() if "left" in o.details]
        if not (left and first.details.get("communication")):
            return None
        rank, how = left[0].rank, left[0].details["left"]
        cause = f"rank {rank} left by {how}, and the others lost their connection"
        return self._write(CollectiveMismatch, [cause], rank, cause)

    def _died(self):
        first = self.failure.first
        how = how_it_died(first.value, self.scene.planned())
        cause = first.details.get("why") or f"rank {first.rank} {how}"
        lines = [cause, ""]
        last = self.scene.last_event(first.rank)
        if last:
            lines.append(f"    {last}")
        elif self.noted and "starting" not in first.details:
            lines.append("    It had not finished any Comm call.")
        detail = os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL"
        lines += [_DETAIL] if detail and first.value == -signal.SIGSEGV else []
        said = filter(str.strip, self.scene.last_words().splitlines())
        said = [line for line in said if not line.startswith("frame #")]  # of C++
        lines += [f"    It said: {line}" for line in said[-6:]]
        return self._write(RankDied, lines, first.rank, first.details.get("why", how))

    def _deadlock(self):
        stuck = self.failure.stuck
        cycle = tuple(cycle_among(stuck))
        if cycle:
            rank = cycle[0]
            chain = " → ".join(f"rank {rank}" for rank in [*cycle, cycle[0]])
            cause = f"each waits for the next: {chain}"
            hint = self._cycle_hint(cycle)
            notes = [self.board.now(rank) for rank in cycle]
            crossed = len({now.group for now in notes}) > 1
            if crossed or any(now.call >= 0 for now in notes):
                cause, hint = self._crossed(cycle), _SAME_ORDER
        else:
            rank, cause, hint = self._without_end()
        error = self._write(Deadlock, [cause, "", f"    {hint}"], rank, cause)
        error.cycle = cycle
        return error

    def _without_end(self):
        """Return (rank, cause, hint) of ranks that wait, though not in a cycle."""
        stuck, ended = self.failure.stuck, self.failure.outcomes
        lost = [r for r, missing in stuck.items() if missing - stuck.keys()]
        if not lost:  # a simulated rank's collective can wait for itself
            left = [rank for rank in self.scene.everyone if rank not in ended]
            wait = "wait, and none" if len(left) > 1 else "waits, and never"
            return left[0], f"{ranks_in_words(left)} {wait} can continue", _NONE_FREES
        waiter = min(lost, key=lambda r: len(stuck[r]))
        returned = sorted(stuck[waiter] - stuck.keys())
        have = "has" if len(returned) == 1 else "have"
        call = self.scene.call(waiter, self.board.now(waiter))
        whose = ranks_in_words(returned)
        cause = f"rank {waiter} waits in {call}, but {whose} {have} returned"
        hint = "Count the sends and receives between the two: they must be equal."
        return returned[0], cause, hint

    def _crossed(self, cycle):
        """Return the cycle as text: each rank, its collective, its group, the next."""
        steps = []
        for rank, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            call = self.scene.call(rank, self.board.now(rank))
            steps.append(f"waits in {call} for rank {after}")
        return f"rank {cycle[0]} {', which '.join(steps)}"

    def _cycle_hint(self, cycle):
        kinds = {self.board.now(rank).kind for rank in cycle}
        if kinds == {"send"}:
            return (
                "All of them send, and a send ends only when the receiver asks for it. "
                "Let one rank receive first, or use sendrecv."
            )
        if kinds == {"recv"}:
            return (
                "Every rank receives, and none has sent. One of them must send first."
            )
        return _NONE_FREES

    def _mismatch(self):
        """Return the error about ranks that called another collective, or one less."""
        found = disagreement(self.board)
        return self._called_another(*found) if found else self._never_called()

    def _called_another(self, number, group, calls):
        """Return the error that names every side of a mismatch, the largest last."""
        among = group_in_words(group, self.board.world_size)
        pieces = unequal_splits(calls, members_of(group, self.board.world_size))
        if pieces and len(set(map(agreed, calls.values()))) == 1:
            return self._other_pieces(*pieces, f"{number}{among}", calls)
        sides = {}
        for rank, call in calls.items():
            sides.setdefault(agreed(call), []).append(rank)
        ordered = sorted(sides.values(), key=len)
        odd = ordered[0]
        cause = ", ".join(
            f"{ranks_in_words(ranks)} called {shown(calls[ranks[0]])}"
            f"{self._after(ranks, calls)}"
            for ranks in ordered
        )
        first = f"ranks disagree about collective {number}{among}: {cause}"
        lines = [
            first,
            f"    {self.scene.doing(odd[0])}{self.scene.where(odd[0])}",
            "",
            "    Every rank must call the same collectives, in the same order,",
            "    with the same shape and type.",
        ]
        if any(self.board.flags(rank) & THREADED for rank in calls):
            lines.append(_ONE_GROUP_EACH)
        if self.failure.first is None:
            lines.append("    The exception that this raises here was caught.")
        return self._write(
            CollectiveMismatch, self._handled(calls, lines), odd[0], cause
        )

    def _after(self, ranks, calls):
        """Return " after 5 backward passes" of ranks that differ in it from others."""
        passes = {self.board.passes(rank) for rank in calls}
        own = {self.scene.after_passes(rank) for rank in ranks}
        return min(own) if len(passes) > 1 and len(own) == 1 else ""

    def _other_pieces(self, sender, receiver, sent, expected, which, calls):
        """Return the error about an all-to-all in which two ranks mean other sizes."""
        cause = (
            f"rank {receiver} expects {expected} elements from rank {sender}, which "
            f"sends {sent}, in {shown(calls[sender])}"
        )
        lines = [
            cause,
            "",
            f"    It is collective {which}. What rank r sends to rank q",
        ]
        lines.append(
            "    must be as long as what q expects from r: exchange the sizes."
        )
        return self._write(CollectiveMismatch, lines, receiver, cause)

    def _handled(self, calls, lines):
        """Return the lines, with an exception first whose handler called a collective.

        calls: rank -> the words of a collective.
        """
        for rank, words in calls.items():
            facts = json.loads(handled(words) or "{}")
            if not facts or facts["type"] == "Disagreement":
                continue
            said = f"{facts['type']}: {facts['message']}".rstrip(": ")
            called = shown(words)
            first = f"rank {rank} was handling {said}, and called {called} meanwhile"
            return [
                first,
                *source_lines(facts["frames"])[-2:],
                "",
                f"    So {lines[0]}.",
            ]
        return lines

    def _never_called(self):
        notes = [self.board.now(rank) for rank in self.failure.stuck]
        notes = [now for now in notes if now.call >= 0]
        groups = {now.group for now in notes}
        if not notes or (len(groups) > 1 and cycle_among(self.failure.stuck)):
            return None
        group = max(groups)
        number = min(now.call for now in notes if now.group == group)
        members = members_of(group, self.board.world_size)
        inside = [r for r in members if self.board.calls(r, group) >= number]
        missing = [r for r in members if r not in inside]
        where = shown(self.board.call(inside[0], number, group))
        doing = "; ".join(self.scene.doing(rank) for rank in missing[:3])
        now = {rank: self.board.now(rank) for rank in inside}
        waiting = [r for r, n in now.items() if (n.call, n.group) == (number, group)]
        wait = "waits" if len(waiting) == 1 else "wait"
        afters = {self.scene.after_passes(r) for r in missing}
        returned = all(rank in self.failure.outcomes for rank in missing)
        known = returned and len(afters) == 1 and min(afters)
        after = f"returned{min(afters)} and " if known else ""
        left = self.failure.outcomes.get(missing[0])
        if left and "left" in left.details and len(missing) == 1:
            after = f"left by {left.details['left']}, and "
        during = self.scene.pass_of(inside[0], now[inside[0]])
        cause = (
            f"{ranks_in_words(missing)} {after}never called {where}, "
            f"which {ranks_in_words(waiting)} {wait} in{during}"
        )
        among = group_in_words(group, self.board.world_size) or " of this world"
        lines = [cause, "", f"    It is collective {number}{among}. {doing}."]
        inside = {rank: self.board.now(rank) for rank in missing}
        calls = {
            rank: self.board.call(rank, now.call, now.group)
            for rank, now in inside.items()
            if now.call >= 0
        }
        return self._write(
            CollectiveMismatch, self._handled(calls, lines), missing[0], cause
        )

    def _unfinished(self):
        """Return (running ranks, a verb, text about ranks that wait for them)."""
        busy = [r for r in self.scene.everyone if r not in self.failure.outcomes]
        notes = {rank: self.board.now(rank) for rank in busy}
        at_work = [r for r in busy if not waits_for(self.board, r, notes[r])] or busy
        waiting = [r for r in busy if r not in at_work]
        starting = busy and all(now.state == "starting" for now in notes.values())
        wait = "waits" if len(waiting) == 1 else "wait"
        them = "it" if len(at_work) == 1 else "them"
        also = f", and {ranks_in_words(waiting)} {wait} for {them}" if waiting else ""
        return at_work, "start" if starting else "return", also

    def _timeout(self, limit, longer):
        at_work, verb, also = self._unfinished()
        if not at_work:  # since then all have ended
            ends = self.failure.outcomes.values()
            at_work, also = [max(ends, key=lambda o: o.time).rank], ", but just after"
        within = limit_in_words(self.failure.timeout_s, limit)
        cause = f"{ranks_in_words(at_work)} did not {verb} within {within}{also}"
        lines = [cause, "", f"    {longer}."]
        return self._write(WorldTimeout, lines, at_work[0], cause)

    def _interrupted(self):
        at_work, verb, also = self._unfinished()
        if verb == "start":
            said = "before the ranks had begun"
        elif not at_work:
            said = "as the last rank ended"
        else:
            have = "has" if len(at_work) == 1 else "have"
            said = f"{ranks_in_words(at_work)} {have} not returned{also}"
        story = self._described([said], self.scene.everyone if verb == "return" else ())
        return interrupted(story, self.scene.trace)

    def _write(self, kind, lines, rank, cause):
        """Return the exception: these lines, then the activity of the other ranks."""
        described = {rank} if kind in (RankRaised, RankDied) else set()
        others = [r for r in self.scene.everyone if r not in described]
        scene = self.scene
        return kind(
            self._described(lines, others, "  Meanwhile:" if described else ""),
            rank=rank,
            cause=cause,
            trace=scene.trace,
            output=scene.output,
        )

    def _described(self, lines, others, title=""):
        """Return the text: these lines, then the activity of the other ranks."""
        while lines[-1] == "":
            lines.pop()
        first = self.failure.first
        starting = first is not None and first.details.get("starting")
        if others and not starting:
            lines += ["", title or "  What each rank was doing:"]
            lines += _doings(self.scene, others)
            lines += ["", f"  {self.see_it}"] if self.noted else []
        return "\n".join(lines)
