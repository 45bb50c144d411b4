"""A set of ranks and the kernel's loop around one call on them.

    start:  fork the ranks ─▶ each joins the process group ─▶ "ready"
    call:   send (fn, args) ─▶ loop: output, outcomes, deaths, waits ─▶ outcomes
    close:  request them to leave the group ─▶ stop the remaining processes

The loop runs in the thread that called, so output lands in the cell that caused it.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

from distlab.calls.printed_output import Console
from distlab.calls.progress import Progress
from distlab.diagnosis import Failure, RankOutcome, group_in_words, tell
from distlab.errors import WorldFailed
from distlab.faults import Fault
from distlab.launch.call import TICK_S, RunningCall
from distlab.launch.machine import FOR_TRAINING, PRELOAD, usable_cores
from distlab.patience import patience
from distlab.processes import (
    Ended,
    FrameReceived,
    Interrupts,
    Lines,
    Processes,
    anonymous_file,
)
from distlab.processes.time_limit import TimeLimit
from distlab.recorder import IN, OUT, SharedTrace
from distlab.trace import members_of

__all__ = ["Ranks"]

_START_S = 60.0


class Ranks:
    """`world_size` processes that share one process group.

    intact: whether the last call left the process group up and no unmatched message.
    noted: whether the ranks record their messages.
    script: whether they run a script of their own.
    most_s: seconds that a call may take on a busy machine, if more than its limit.
    where: the name of each rank's node, if they run on several.
    `close` may be called at any time, repeatedly, and frees all resources.
    """

    noted, script, most_s = True, False, 0.0
    where: Sequence[str] = ()

    def __init__(
        self, world_size: int, backend: str, *, persistent: bool, start_method: str
    ):
        self.world_size = world_size
        self.backend = backend
        self.intact = True
        self._block = anonymous_file("distlab-notes")
        self.board = SharedTrace(world_size, self._block)
        self._meeting = anonymous_file("distlab-meeting")
        self._folder = None
        self.processes = None
        how = {"shared": [self._block, self._meeting], "preload": PRELOAD}
        how |= {"also": self._also(), "start_method": start_method}
        try:
            self.processes = self._start(**how)
            settings = json.dumps(self._settings(persistent)).encode()
            for rank in range(world_size):
                self.processes.send(rank, settings)
        except BaseException:
            self.close()
            raise

    def _also(self):
        """Return the modules to import once, for all ranks."""
        return FOR_TRAINING if "distlab.train" in sys.modules else ()

    def _start(self, **how):
        how = {"entry": "distlab.launch.rank:main"} | how
        return Processes(self.world_size, **how)

    def _settings(self, persistent):
        place = None
        if not os.path.exists("/proc/self/fd"):  # no way to open a file without a name
            self._folder = tempfile.TemporaryDirectory(prefix="distlab-")
            place = str(Path(self._folder.name) / "meeting")
        return {
            "world_size": self.world_size,
            "backend": self.backend,
            "persistent": persistent,
            "meeting_place": place,
            "threads": max(1, usable_cores() // self.world_size),
        }

    def wait_ready(self, interrupts: Interrupts) -> None:
        """Wait until every rank has joined the process group.

        Raises: Failure if one cannot, or if there is an interrupt.
        """
        console = Console(self.world_size, quiet=True)
        ready, deadline = set(), time.monotonic() + patience(_START_S)
        with Progress() as progress:
            while len(ready) < self.world_size and not interrupts.pending:
                progress.show(lambda: f"starting {self.world_size} ranks")
                for what in self.processes.poll(TICK_S):
                    if isinstance(what, FrameReceived):
                        ready.add(what.index)
                    elif isinstance(what, Lines):
                        console.add(what.index, what.text)
                    elif isinstance(what, Ended):
                        facts = {"starting": console.output()[what.index]}
                        facts |= {"why": what.why} if what.why else {}
                        died = RankOutcome(what.index, "died", 0, what.status, facts)
                        raise Failure("died", died)
                if time.monotonic() > deadline:
                    raise Failure("late start", timeout_s=_START_S)
        if interrupts.pending:
            raise Failure("interrupted")

    def call(
        self,
        tasks: Sequence[bytes],
        *,
        console: Console,
        timeout_s: float,
        faults: Sequence[Fault],
        interrupts: Interrupts,
    ) -> list[RankOutcome]:
        """Run a packed call on every rank; return the outcomes in rank order.

        tasks: one for all ranks, or one for each.

        Raises: Failure as soon as the call cannot finish any more, or is interrupted.
        """
        call = self._begin(console, faults)
        for rank in range(self.world_size):
            self.processes.send(rank, b"C" + tasks[rank % len(tasks)])
        limit = TimeLimit(self.processes, patience(timeout_s), self.most_s)
        with Progress() as progress:
            while len(call.outcomes) < self.world_size and not interrupts.pending:
                call.go_on()
                progress.show(call.how_far)
                if limit.left_s() < 0 and len(call.outcomes) < self.world_size:
                    raise call.failure("timeout", timeout_s=timeout_s)
        self.board.drain()
        if len(call.outcomes) < self.world_size:
            raise call.failure("interrupted")
        grouped = all(o.details.get("group") for o in call.outcomes.values())
        alive = len(self.processes.alive) == self.world_size
        self.intact = alive and grouped and not self.loose_ends()
        return [call.outcomes[rank] for rank in sorted(call.outcomes)]

    def _begin(self, console, faults):
        """Return a new call, not yet sent to the ranks."""
        self.board.begin()
        return RunningCall(self.processes, self.board, console=console, faults=faults)

    def story(
        self, failure: Failure, faults: Sequence[Fault], output: list[str]
    ) -> WorldFailed | KeyboardInterrupt:
        """Return the exception with the diagnosis of a `Failure` of these ranks."""
        how = {"noted": self.noted, "script": self.script}
        return tell(failure, self.board, faults, output, **how)

    def notes(self) -> list[str]:
        """Return sentences for the report on where these ranks run."""
        return []

    def loose_ends(self) -> list[str]:
        """Return sentences about messages and collectives begun but not matched."""
        everyone, board = range(self.world_size), self.board
        ends = []
        groups = {group for rank in everyone for group in board.groups(rank)}
        uneven = False
        for group in sorted(groups):
            members = members_of(group, self.world_size)
            uneven |= len({board.calls(rank, group) for rank in members}) > 1
            among = group_in_words(group, self.world_size)
            for a, b in permutations(members, 2):
                sent = board.posted(a, b, OUT, group)
                asked = board.posted(b, a, IN, group)
                if sent != asked:
                    ends.append(
                        f"Rank {a} began {sent} messages to rank {b}{among}, "
                        f"which asked for {asked} so far."
                    )
        if uneven:
            ends.append("Some ranks began more collectives than others.")
        return ends

    def leave(self) -> None:
        """Make every rank leave the process group and end."""
        for rank in range(self.world_size):
            self.processes.send(rank, b"E")
        self.processes.wait_ended(5.0 if self.backend == "nccl" else 1.0)

    def close(self) -> None:
        """Kill the remaining processes and free all resources."""
        if self._block is None:
            return
        if self.processes is not None:
            self.processes.stop()
        self.board.close()
        os.close(self._block)
        os.close(self._meeting)
        self._block = None
        if self._folder is not None:
            self._folder.cleanup()
