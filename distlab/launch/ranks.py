"""A set of ranks and the kernel's loop around one call on them.

    start:  fork the ranks ─▶ each joins the process group ─▶ "ready"
    call:   send (fn, args) ─▶ loop: output, outcomes, deaths, waits ─▶ outcomes
    close:  tell them to leave the group ─▶ stop what is left

The loop runs in the thread that called, so output lands in the cell that caused it.
"""

import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from distlab.errors import CannotTravel
from distlab.faults import Slow
from distlab.launch.console import Console
from distlab.launch.travel import unpack
from distlab.launch.waits import stuck_ranks
from distlab.processes import (
    Ended,
    Frame,
    Interrupts,
    Lines,
    Processes,
    anonymous_file,
)
from distlab.recorder import IN, OUT, Blackboard

__all__ = ["Failure", "Outcome", "Ranks"]

PRELOAD = ("torch", "torch.distributed", "numpy", "cloudpickle", "distlab.launch.rank")
_TICK_S = 0.05
_GRACE_S = 0.25
_START_S = 60.0
_SLOW_PERIOD_S = 0.008
_SLOW_TICK_S = 0.001


@dataclass
class Outcome:
    """How one rank's call ended: "returned", "raised" or "died"."""

    rank: int
    how: str
    time: float
    value: object = None
    details: dict = field(default_factory=dict)


@dataclass(eq=False)
class Failure(Exception):
    """Why a call cannot finish; the story is written from it.

    kind: "raised", "died", "stuck", "disagreement", "destroyed" or "timeout".
    """

    kind: str
    first: Outcome | None = None
    stuck: dict = field(default_factory=dict)
    outcomes: dict = field(default_factory=dict)
    stacks: dict = field(default_factory=dict)
    timeout_s: float = 0.0


class Ranks:
    """`world_size` processes that share one process group.

    intact: whether the last call left the process group up and no message behind.
    `close` may be called at any time, twice too, and leaves nothing behind.
    """

    def __init__(self, world_size, backend, *, persistent, start_method):
        self.world_size = world_size
        self.backend = backend
        self.intact = True
        self._block = anonymous_file("distlab-notes")
        self.board = Blackboard(world_size, self._block)
        self._meeting = anonymous_file("distlab-meeting")
        self._folder = None
        self.processes = None
        try:
            self.processes = Processes(
                world_size,
                "distlab.launch.rank:main",
                preload=PRELOAD,
                shared=[self._block, self._meeting],
                start_method=start_method,
            )
            settings = json.dumps(self._settings(persistent)).encode()
            for rank in range(world_size):
                self.processes.send(rank, settings)
        except BaseException:
            self.close()
            raise

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

        Raises: Failure if one cannot; KeyboardInterrupt is left to `interrupts`.
        """
        console = Console(self.world_size, quiet=True)
        ready, deadline = set(), time.monotonic() + _START_S
        while len(ready) < self.world_size and not interrupts.pending:
            for what in self.processes.poll(_TICK_S):
                if isinstance(what, Frame):
                    ready.add(what.index)
                elif isinstance(what, Lines):
                    console.add(what.index, what.text)
                elif isinstance(what, Ended):
                    said = console.output()[what.index]
                    died = Outcome(
                        what.index, "died", 0, what.status, {"starting": said}
                    )
                    raise Failure("died", died)
            if time.monotonic() > deadline:
                raise Failure("timeout", timeout_s=_START_S)

    def call(
        self, task: bytes, *, console, timeout_s, faults, interrupts
    ) -> list[Outcome]:
        """Run one packed call on every rank; return the outcomes in rank order.

        Raises: Failure as soon as the call cannot finish any more.
        """
        call = _Call(self, console, faults)
        self.board.begin()
        for rank in range(self.world_size):
            self.processes.send(rank, b"C" + task)
        deadline = time.monotonic() + timeout_s
        while len(call.outcomes) < self.world_size and not interrupts.pending:
            call.go_on()
            if time.monotonic() > deadline and len(call.outcomes) < self.world_size:
                raise call.failure("timeout", timeout_s=timeout_s)
        self.board.drain()
        grouped = all(
            outcome.details.get("group") for outcome in call.outcomes.values()
        )
        self.intact = grouped and not self.loose_ends()
        return [call.outcomes[rank] for rank in sorted(call.outcomes)]

    def loose_ends(self) -> list[str]:
        """Return what is wrong with messages and collectives that were begun, in sentences."""
        everyone = range(self.world_size)
        ends = [
            f"Rank {a} began {sent} messages to rank {b}, which asked for {asked} so far."
            for a in everyone
            for b in everyone
            if (sent := self.board.posted(a, b, OUT))
            != (asked := self.board.posted(b, a, IN))
        ]
        if len({self.board.calls(rank) for rank in everyone}) > 1:
            ends.append("Some ranks began more collectives than others.")
        return ends

    def leave(self) -> None:
        """Have every rank leave the process group and end."""
        for rank in range(self.world_size):
            self.processes.send(rank, b"E")
        self.processes.wait_ended(5.0 if self.backend == "nccl" else 1.0)

    def close(self) -> None:
        """Kill what is left and give everything back."""
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


class _Call:
    """One call under way: what has come back, and whether it can still finish."""

    def __init__(self, ranks, console, faults):
        self.ranks = ranks
        self.console = console
        self.outcomes = {}
        self._slow = [
            fault for fault in faults if isinstance(fault, Slow) and fault.factor > 1
        ]
        self._stopped = set()
        self._suspects = None
        self._next_look = time.monotonic() + _TICK_S

    def go_on(self):
        """Wait a moment; take in what happened; raise Failure if it cannot go on."""
        self._take(self.ranks.processes.poll(self._pause()))
        failed = [o for o in self.outcomes.values() if o.how != "returned"]
        if failed:
            raise self._settled(failed)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _TICK_S
            self.ranks.board.drain()
            self._look_for_stuck()

    def _take(self, happened):
        for what in happened:
            if isinstance(what, Lines):
                self.console.add(what.index, what.text)
            elif isinstance(what, Frame):
                text = self.ranks.processes.flush(what.index)
                if text:
                    self.console.add(what.index, text)
                self.outcomes[what.index] = _read_outcome(what)
            elif isinstance(what, Ended) and what.index not in self.outcomes:
                self.outcomes[what.index] = Outcome(
                    what.index, "died", time.monotonic(), what.status
                )

    def _pause(self):
        """Return how long to wait; meanwhile stop and continue slow ranks in turn."""
        now = time.monotonic()
        if not self._slow:
            return max(0.0, self._next_look - now)
        phase = now % _SLOW_PERIOD_S / _SLOW_PERIOD_S
        for fault in self._slow:
            stop = phase * fault.factor >= 1 and fault.rank not in self.outcomes
            if stop != (fault.rank in self._stopped):
                (self._stopped.add if stop else self._stopped.discard)(fault.rank)
                number = signal.SIGSTOP if stop else signal.SIGCONT
                self.ranks.processes.signal(fault.rank, number)
        return _SLOW_TICK_S

    def _settled(self, failed):
        """Return the failure that came first; for a broken connection, wait for its cause."""
        deadline = time.monotonic() + _GRACE_S
        while self._only_echoes(failed) and time.monotonic() < deadline:
            self._take(self.ranks.processes.poll(deadline - time.monotonic()))
            failed = [o for o in self.outcomes.values() if o.how != "returned"]
        self._take(self.ranks.processes.poll(0))
        failed = [o for o in self.outcomes.values() if o.how != "returned"]
        causes = [o for o in failed if not o.details.get("communication")]
        return self._kind_of(min(causes or failed, key=lambda outcome: outcome.time))

    def _only_echoes(self, failed):
        return all(outcome.details.get("communication") for outcome in failed)

    def _kind_of(self, first):
        if first.details.get("disagreement"):
            return self.failure("disagreement", first)
        return self.failure(first.how, first)

    def _look_for_stuck(self):
        """Raise if the same ranks, in the same calls, were stuck at the last look too."""
        board = self.ranks.board
        stuck = stuck_ranks(board, set(self.outcomes))
        suspects = {rank: board.now(rank) for rank in stuck}
        if stuck and suspects == self._suspects:
            raise self.failure("stuck", stuck=stuck)
        self._suspects = suspects

    def failure(self, kind, first=None, **facts):
        """Return a Failure with all that its story needs, the ranks' stacks included."""
        for fault in self._slow:
            self.ranks.processes.signal(fault.rank, signal.SIGCONT)
        busy = set(range(self.ranks.world_size)) - set(self.outcomes)
        stacks = self.ranks.processes.stacks(busy)
        return Failure(
            kind, first, outcomes=dict(self.outcomes), stacks=stacks, **facts
        )


def _read_outcome(frame):
    end = frame.payload.index(b"\n")
    details = json.loads(frame.payload[:end])
    try:
        value = unpack(memoryview(frame.payload)[end + 1 :])
    except Exception as error:
        value = CannotTravel(
            f"what rank {frame.index} {details['outcome']} arrived, but could not be "
            f"rebuilt here: {type(error).__name__}: {error}"
        )
        details |= {"outcome": "raised", "type": "CannotTravel", "message": str(value)}
    when = details.get("time", time.monotonic())
    return Outcome(frame.index, details["outcome"], when, value, details)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
