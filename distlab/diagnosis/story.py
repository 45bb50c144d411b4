"""The diagnosis of a failed world: the first rank to fail, the cause, all others."""

import json
import os
import re
import signal
from collections.abc import Sequence

from distlab.calls.failure_location import source_lines
from distlab.diagnosis.failure import Failure
from distlab.diagnosis.notes import waits_for
from distlab.diagnosis.scene import Scene, how_it_died
from distlab.diagnosis.verdict import verdict
from distlab.diagnosis.words import agreeing, ranks_in_words
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
from distlab.patience import limit_in_words, more_patience
from distlab.recorder import (
    DESTROYED,
    THREADED,
    SharedTrace,
    handled,
    shown,
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
_COUNT = "Count the sends and receives between the two: they must be equal."
_DETAIL = (
    "    TORCH_DISTRIBUTED_DEBUG=DETAIL is set, under which torch itself crashes in\n"
    "    DDP on gloo (2.13): unset it. distlab compares all collectives without it."
)
_ONE_GROUP_EACH = (
    "    Threads of one rank call collectives of the same group, in no fixed order:\n"
    "    give each thread a group of its own."
)
_ALL_MAKE_IT = "All ranks must call new_group in the same order, members or not."
_SAME_ORDER = "Ranks in several groups must call their collectives in the same order."
_IN_CELLS = {
    "gone": ", which distlab does by itself",
    "both": "sendrecv",
    "call": "Comm call",
}
_IN_SCRIPTS = {"gone": " before", "both": "batch_isend_irecv", "call": "call"}
# Advice on errors whose message has these words.
_FOR_CELLS = {
    "default process group twice": (
        "Inside run the process group is up already; leave that call away."
    ),
}
_FOR_SCRIPTS = {
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
    """Return lines on ranks under way: who waits for whom, and each one's activity."""
    scene = Scene(failure, board, faults, [""] * board.world_size)
    others = (rank for rank in scene.everyone if rank not in failure.outcomes)
    found = scene.graph.faults()
    said = verdict(scene.graph, found[0]) if found else "some ranks wait for others"
    return [f"{said[0].upper()}{said[1:]}:", *_doings(scene, list(others))]


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
        self.script = script
        self.words = _IN_SCRIPTS if script else _IN_CELLS
        self.see_it = _KEEP_IT if script else _SEE_IT
        self.failure = scene.failure
        self.board = scene.board

    def error(self):
        """Return the exception of the matching class, with its diagnosis."""
        kind, first = self.failure.kind, self.failure.first
        if kind in ("stuck", "disagreement"):
            return self._without_end()
        if kind == "timeout":
            how = "If the work needs longer, give it longer: run(..., timeout_s=600)"
            return self._timeout("timeout_s", how)
        if kind == "late start":
            return self._timeout("", more_patience())
        if kind == "interrupted":
            return self._interrupted()
        crashed = kind == "died" and first.value < 0 and not self.scene.planned()
        if crashed and self.scene.graph.faults():  # gloo aborts on unequal sizes
            return self._without_end()
        return self._died() if kind == "died" else self._raised()

    def _raised(self):
        first = self.failure.first
        details = first.details
        whole = f"{details['type']}: {details['message']}"
        message, *rest = details["message"].split("\n")
        said = f"{details['type']}: {message}" if message else details["type"]
        if told := self._timed_out() or self._left_early():
            return told
        if "exit_status" in details:
            said = f"SystemExit, and so left with exit status {details['exit_status']}"
        lines = [f"rank {first.rank} raised {said}", ""]
        lines += source_lines(details.get("frames", []))
        lines += [f"    {line}" for line in rest if line.strip()]
        if details.get("because"):
            lines.append(f"    because of {details['because']}")
        if self.board.flags(first.rank) & DESTROYED:
            gone = self.words["gone"]
            lines.append(f"    It had destroyed the process group{gone}.")
        lines += [
            f"    {self.advice[known]}" for known in self.advice if known in whole
        ]
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
        last = self.scene.last_event(first.rank, self.words["call"])
        if last:
            lines.append(f"    {last}")
        elif self.noted and "starting" not in first.details:
            lines.append(f"    It had not finished any {self.words['call']}.")
        detail = os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL"
        lines += [_DETAIL] if detail and first.value == -signal.SIGSEGV else []
        said = filter(str.strip, self.scene.last_words().splitlines())
        said = [line for line in said if not line.startswith("frame #")]  # of C++
        lines += [f"    It said: {line}" for line in said[-6:]]
        return self._write(RankDied, lines, first.rank, first.details.get("why", how))

    def _without_end(self):
        """Return the error of ranks that disagree, or wait for what never comes."""
        graph, faults = self.scene.graph, self.scene.graph.faults()
        if not faults:  # a simulated rank's collective can wait for itself
            ended = self.failure.outcomes
            left = [rank for rank in self.scene.everyone if rank not in ended]
            wait = "wait, and none" if len(left) > 1 else "waits, and never"
            cause = f"{ranks_in_words(left)} {wait} can continue"
            lines = [cause, "", f"    {_NONE_FREES}"]
            return self._write(Deadlock, lines, left[0], cause)
        fault, cause = faults[0], verdict(graph, faults[0])
        rank = fault.ranks[0]
        first = fault.inside[0] if fault.inside else rank
        message = fault.inside and graph.waiting[first].peers
        if fault.kind == "deadlock" or (fault.kind == "missing" and message):
            hint = self._cycle_hint(fault) if fault.kind == "deadlock" else _COUNT
            where = f"    {self.scene.doing(first)}{self.scene.where(first)}"
            lines = [cause, *[where] * self.script, "", f"    {hint}"]
            error = self._write(Deadlock, lines, rank, cause)
            error.cycle = fault.ranks if fault.kind == "deadlock" else ()
            return error
        tell = {"disagree": self._called_another, "pieces": self._other_pieces}
        lines = tell.get(fault.kind, self._never_called)(fault, cause)
        return self._write(CollectiveMismatch, lines, rank, cause)

    def _called_another(self, fault, cause):
        """Return the lines on a collective that ranks called differently."""
        graph, rank = self.scene.graph, fault.ranks[0]
        calls = graph.words(fault.group, fault.number)
        threaded = any(self.board.flags(rank) & THREADED for rank in calls)
        place = f"    {self.scene.doing(rank)}{self.scene.where(rank)}"
        lines = [
            cause,
            _ONE_GROUP_EACH if threaded else place,
            "",
            "    Every rank must call the same collectives, in the same order,",
            "    with the same shape and type.",
        ]
        if self.failure.first is None:
            lines.append("    The exception that this raises here was caught.")
        return self._handled(calls, lines)

    def _other_pieces(self, fault, cause):
        """Return the lines on an all-to-all in which two ranks mean other sizes."""
        return [
            cause,
            "",
            f"    It is collective {self._numbered(fault)}.",
            "    What rank r sends to rank q must be as long as what q expects from r:",
            "    exchange the sizes.",
        ]

    def _numbered(self, fault):
        among = self.scene.graph.among(fault.group)
        return f"{fault.number}{among or ' of this world'}"

    def _never_called(self, fault, cause):
        """Return the lines on a collective that some ranks never called."""
        scene, ended = self.scene, self.failure.outcomes
        where = scene.where(fault.inside[0])
        left = [rank for rank in fault.ranks if rank not in ended][:3]
        doing = "; ".join(scene.doing(rank) + scene.where(rank) for rank in left)
        lines = [cause, "", f"    It is collective {self._numbered(fault)}{where}"]
        lines += [f"    {doing}"] if doing else []
        notes = {rank: self.board.now(rank) for rank in fault.ranks}
        calls = {
            rank: self.board.call(rank, now.call, now.group)
            for rank, now in notes.items()
            if now.call >= 0
        }
        return self._handled(calls, lines)

    def _cycle_hint(self, fault):
        waits = [self.scene.graph.waiting[rank] for rank in fault.ranks]
        if any(at.call.startswith("new_group") for at in waits):
            return _ALL_MAKE_IT
        if len({at.group for at in waits}) > 1:
            return _SAME_ORDER
        if not all(at.peers for at in waits):
            return _COUNT if len(waits) == 2 else _NONE_FREES
        kinds = {self.board.now(rank).kind for rank in fault.ranks}
        if kinds == {"send"}:
            return (
                "All of them send, and a send ends only when the receiver asks for it. "
                f"Let one rank receive first, or use {self.words['both']}."
            )
        if kinds == {"recv"}:
            return (
                "Every rank receives, and none has sent. One of them must send first."
            )
        return _NONE_FREES

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

    def _unfinished(self):
        """Return (running ranks, a verb, text about ranks that wait for them)."""
        busy = [r for r in self.scene.everyone if r not in self.failure.outcomes]
        notes = {rank: self.board.now(rank) for rank in busy}
        at_work = [r for r in busy if not waits_for(self.board, r, notes[r])] or busy
        waiting = [r for r in busy if r not in at_work]
        starting = busy and all(now.state == "starting" for now in notes.values())
        them = "it" if len(at_work) == 1 else "them"
        also = f", and {ranks_in_words(waiting)} {{wait}} for {them}" if waiting else ""
        also = agreeing(also, waiting)
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
            said = f"{ranks_in_words(at_work)} {{have}} not returned{also}"
            said = agreeing(said, at_work)
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
