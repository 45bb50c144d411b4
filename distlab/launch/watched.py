"""The diagnosis of a watched job, under way or dead, from the notes of its ranks.

folders of nodes ─▶ files of ranks ─▶ one copy of all regions ─▶ stuck? ended? ─▶ text
                               └──────── clocks of nodes, compared by collectives
"""

import json
import math
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

from distlab.calls.printed_output import Console
from distlab.diagnosis import Failure, RankOutcome, progress, tell
from distlab.errors import InvalidArgument
from distlab.launch.call import RunningCall
from distlab.launch.watched_rank import VERSION, clock_name
from distlab.processes import anonymous_file
from distlab.processes.child_processes import started_at
from distlab.processes.output import ask_for_stacks
from distlab.recorder import SharedTrace, region_of

__all__ = ["WatchedJob", "find_ranks"]

_OURS = str(Path(__file__).parents[1])  # frames of `-m distlab.watch`
_LOOK_S = 2.0  # between the looks at a job under way
_BEAT_S = 30.0  # without a sign from another node until a rank counts as lost
_HELD_S = 10.0  # a wait that is worth telling


@dataclass
class WatchedRank:
    """One rank's files. about: what it wrote of itself. place: their common stem."""

    about: dict
    place: Path

    @property
    def here(self) -> bool:
        """True if its process is one of this machine's."""
        return self.about["clock"] == clock_name()

    def alive(self) -> bool:
        """Return True if it has not ended, as far as can be seen from here."""
        if self.about["ended"]:
            return False
        if self.here:
            return started_at(self.about["process"]) == self.about["process_started"]
        beat = self.place.with_suffix(".json").stat().st_mtime
        return time.time() - beat < _BEAT_S


def find_ranks(folders: Sequence[Path]) -> list[WatchedRank]:
    """Return the ranks of the latest attempt of the latest job in some folders.

    Empty if these are no folders of a watched job.

    Raises: InvalidArgument for files of another version.
    """
    found = []
    for file in chain.from_iterable(f.rglob("rank-*.json") for f in folders):
        try:
            about = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        version = about.get("distlab_watch") if isinstance(about, dict) else None
        if version not in (None, VERSION):
            raise InvalidArgument(
                f"{file} was written by another version of distlab.watch: read it "
                "with the distlab that the job uses."
            )
        if version:
            found.append(WatchedRank(about, file.with_suffix("")))
    if not found:
        return []
    newest = max(found, key=lambda rank: rank.about["began"]).place.parent.parent
    latest = [r for r in found if r.place.parent.parent.name == newest.name]
    latest = [r for r in latest if r.place.parents[2].name == newest.parent.name]
    by_rank = {}
    for rank in sorted(latest, key=lambda rank: rank.about["began"]):
        by_rank[rank.about["rank"]] = rank
    return [by_rank[rank] for rank in sorted(by_rank)]


class WatchedJob:
    """What a watched job does, or did until its end.

    found: whether there is a fault to tell.
    """

    def __init__(self, ranks: Sequence[WatchedRank]):
        self.ranks = {each.about["rank"]: each for each in ranks}
        self.world_size = ranks[0].about["world_size"]
        layout = region_of(self.world_size)
        self._block, self._layout = anonymous_file("distlab-watched"), layout
        self.board = SharedTrace(self.world_size, self._block, layout)
        self._copy()
        self.clocks = _offsets(self.board, self.ranks)
        self.board.offsets_s = [self.clocks.get(r, (0, 0))[0] for r in self._everyone]
        self.board.clock_error_s = max((e for _, e in self.clocks.values()), default=0)

    @property
    def _everyone(self):
        return range(self.world_size)

    def _copy(self):
        """Copy the notes of all ranks, as they are now."""
        for rank, each in self.ranks.items():
            data = each.place.with_suffix(".notes").read_bytes()
            self.board.write([(self._layout.base(rank), data[: self._layout.stride])])

    def explain(self, *, stacks: bool = False) -> tuple[str, bool]:
        """Return the diagnosis, and whether there is a fault.

        stacks: show the whole stacks of the ranks that run on this machine.
        """
        processes = _WatchedProcesses(self.ranks)
        call = _WatchedCall(processes, self)
        failure = call.find()
        lines, found = self._diagnosis(failure, call)
        lines += self._notes()
        if stacks:
            lines += _stacks_of(failure or call.failure("held"))
        return "\n".join(lines), found

    def _diagnosis(self, failure, call):
        if failure is None:
            return [call.how_it_goes()], False
        if failure.kind == "held":
            gone = (
                "" if call.any_alive else "No process of this job is left. At its end:"
            )
            title, *lines = progress(failure, self.board, ())
            lost = tuple(
                f"    rank {r} " for r in self._everyone if r not in self.ranks
            )
            lines = [line for line in lines if not line.startswith(lost or ("-",))]
            return [gone or title, *lines], True
        output = [""] * self.world_size
        return [str(tell(failure, self.board, (), output, script=True))], True

    def _notes(self):
        """Return the gaps of this folder, in sentences."""
        notes = []
        if lost := [r for r in self._everyone if r not in self.ranks]:
            said = ", ".join(map(str, lost[:16]))
            notes.append(
                f"There are no notes of rank {said}: name the folders of all nodes, or "
                "it did not reach `import distlab.watch`."
            )
        away = sorted({r.about["node"] for r in self.ranks.values() if not r.here})
        if away and any(r.alive() for r in self.ranks.values()):
            notes.append(
                f"Stacks of ranks on {', '.join(away)} can be read there alone: "
                "distlab explain FOLDER --stacks."
            )
        if self.board.clock_error_s:
            error_ms = 1000 * self.board.clock_error_s
            notes.append(f"The nodes' clocks are compared to within {error_ms:.1f} ms.")
        return ["", *notes] if notes else []


class _WatchedProcesses:
    """The processes of a watched job, as far as this machine has them."""

    def __init__(self, ranks):
        self._ranks = ranks
        self.alive = {number for number, rank in ranks.items() if rank.alive()}

    def poll(self, timeout_s=0.0):
        time.sleep(max(0.0, min(timeout_s, 0.05)))
        return []

    def flush(self, index):
        return ""

    def stacks(self, indices, wait_s=0.2):
        here = {i: self._ranks[i] for i in indices if i in self._ranks}
        asked = {
            index: (rank.about["process"], rank.place.with_suffix(".stacks"))
            for index, rank in here.items()
            if rank.here and rank.alive()
        }
        return ask_for_stacks(asked, max(wait_s, 1.0))


class _WatchedCall(RunningCall):
    """The script of a watched job, which is never stopped from here."""

    def __init__(self, processes, job):
        console = Console(job.world_size, quiet=True)
        super().__init__(processes, job.board, console=console, faults=())
        self._job, self.any_alive = job, bool(processes.alive)
        for number, rank in job.ranks.items():
            outcome = _outcome(number, rank)
            # Of a job that was killed as a whole, the waits before that tell the cause.
            if outcome and (self.any_alive or outcome.how != "died"):
                self.outcomes[number] = outcome

    def find(self) -> Failure | None:
        """Return a Failure of the job, or of ranks that wait; None if all is well."""
        if failed := self._failed():
            return self._settled(failed)
        deadline = time.monotonic() + _LOOK_S
        while time.monotonic() < deadline:
            try:
                self._look_for_stuck()
            except Failure as failure:
                return failure
            time.sleep(_LOOK_S / 10)
            self._job._copy()
        held = any(self._waits_s(rank) > _HELD_S for rank in self._busy())
        gone = self._busy() and not self.any_alive
        return self.failure("held") if held or gone else None

    def how_it_goes(self) -> str:
        """Return a sentence on a job in which nothing is wrong."""
        busy = self._busy()
        if not busy:
            return f"All {len(self.outcomes)} ranks have ended without an exception."
        longest = max(map(self._waits_s, busy))
        return (
            f"No fault found: {self.how_far()}. No rank has waited longer than "
            f"{longest:.0f} s in one call."
        )

    def _busy(self):
        return [rank for rank in self._job.ranks if rank not in self.outcomes]

    def _waits_s(self, rank):
        now = self._board.now(rank)
        clock = time.monotonic() - self._board.offsets_s[rank]
        return clock - now.since if now.state == "blocked" else 0.0


def _outcome(number, rank):
    """Return the outcome of a rank, None if it has not ended."""
    ended = rank.about["ended"]
    if ended and ended["how"] == "raised":
        return RankOutcome(number, "raised", ended["time"], None, ended)
    if ended:
        return RankOutcome(number, "returned", ended["time"], None, {})
    if rank.alive():
        return None
    why = f"rank {number} is gone: it was killed, or left by os._exit"
    return RankOutcome(number, "died", math.inf, -signal.SIGKILL, {"why": why})


def _stacks_of(failure):
    lines = []
    for rank, stack in sorted(failure.stacks.items()):
        lines += ["", f"rank {rank}, innermost call last:"]
        own = [f for f in stack[::-1] if not f[0].startswith(("<frozen runpy", _OURS))]
        lines += [f'  File "{f}", line {n}, in {name}' for f, n, name in own]
    return lines


def _offsets(board, ranks):
    """Return rank -> (seconds to add to its clock, how wrong that may be).

    A collective that all ranks have left ended nowhere before it began everywhere: each
    bounds the offset of two clocks from both sides.
    """
    spans = defaultdict(dict)  # (group, number from the last) -> rank -> (start, end)
    for rank in ranks:
        counts = defaultdict(int)
        for event in reversed(board.trace().of(rank, "collective")):
            counts[event.group] += 1
            number = board.calls(rank, event.group) - counts[event.group]
            if event.end is not None:
                spans[event.group, number][rank] = event.start, event.end
    clocks = {rank: each.about["clock"] for rank, each in ranks.items()}
    first = min(clocks, default=0)
    offsets = {}
    for clock in set(clocks.values()) - {clocks[first]}:
        low, high = -math.inf, math.inf
        for span in spans.values():
            for a, b in combinations(span, 2):
                a, b = (b, a) if clocks[a] == clock else (a, b)
                if (clocks[a], clocks[b]) == (clocks[first], clock):
                    low = max(low, span[a][0] - span[b][1])
                    high = min(high, span[a][1] - span[b][0])
        known = math.isfinite(low) and math.isfinite(high)
        offset = ((low + high) / 2, abs(high - low) / 2) if known else (0.0, math.inf)
        offsets |= {rank: offset for rank in clocks if clocks[rank] == clock}
    return offsets
