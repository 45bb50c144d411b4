"""`run_elastic`: a world that continues without a dead rank, and admits a new one.

    process 0  ── world 1 ──────┬─ world 2 ─────┬─ world 3 ──
    process 1  ── world 1 ──────┼─ world 2 ─────┼─ world 3 ──
    process 2  ── world 1 ── ✗  │    (starts) ──┴─ world 3 ──

The kernel determines the members of a world, as torchrun's agents and rendezvous do.
When a member dies, or a new process is ready, that world is over: the calls of all its
ranks raise, unfinished work is lost, and their function is called again in the next
world. Survivors stay the same processes and retain their dict `kept`. A rank that does
nothing while all others wait for it is suspected, and killed, so that it cannot return
to a world that continued without it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from distlab.calls.printed_output import Console
from distlab.calls.progress import Progress
from distlab.calls.serialize import check_function, pack_task
from distlab.diagnosis import Failure, RankOutcome, how_it_died, stuck_ranks, tell
from distlab.errors import InvalidArgument, WorldFailed
from distlab.faults import Fault, Kill, Slow, check_faults
from distlab.launch.call import TICK_S, read_outcome
from distlab.launch.machine import (
    FOR_TRAINING,
    PRELOAD,
    check_world_size,
    start_method,
    usable_cores,
)
from distlab.launch.report import Report
from distlab.launch.world import RankHosts, check_timeout, refuse_nested
from distlab.patience import patience
from distlab.processes import (
    FrameReceived,
    Interrupts,
    Lines,
    Processes,
    Slowdown,
    anonymous_file,
)
from distlab.recorder import SharedTrace
from distlab.trace import Event, Trace
from distlab.units import readable_seconds

__all__ = ["ElasticReport", "ElasticWorld", "run_elastic"]

_LEAVE_S = 2.0  # for a rank that waits in a call of a world that is over


@dataclass
class ElasticWorld:
    """One world of an elastic run, and the reason why the one before was over.

    began_s: seconds since the run began. processes: the process of each rank.
    """

    began_s: float
    processes: list[int]
    why: str


@dataclass(repr=False)
class ElasticReport(Report):
    """The report on an elastic run; its ranks are the processes, by first number.

    results: of each process whose function returned, else None.
    trace: the finished events of each world; a lane is a process and its replacements.
    worlds: all worlds, in order.
    """

    worlds: list[ElasticWorld] = field(default_factory=list)

    def _footnotes(self):
        changes = [
            f"{readable_seconds(world.began_s)}: {world.why}; a world of "
            f"{len(world.processes)} went on."
            for world in self.worlds[1:]
        ]
        return super()._footnotes() + changes


def run_elastic(
    fn: Callable,
    world_size: int = 4,
    *,
    args: Sequence = (),
    least: int = 1,
    restarts: int = 10,
    suspect_after_s: float = 5,
    faults: Fault | Sequence[Fault] | Callable[[int, int], Iterable[Fault]] = (),
    timeout_s: float = 60,
    quiet: bool = False,
    on: RankHosts | None = None,
) -> ElasticReport:
    """Call `fn(comm, kept, *args)` on ranks that may die and be replaced.

    `fn` is called again, in each surviving process, with the `comm` of each new world:
    its ranks are numbered from 0. `kept` is a dict that the process keeps meanwhile.
    least: the minimal number of ranks; with fewer the run fails.
    restarts: the number of processes that may be started in place of dead ones.
    suspect_after_s: how long a rank may do nothing while all others wait for it.
    faults: by process, with its steps through all worlds; or a function of (process,
        number of replacements) that returns its faults, such as `Storm`.
    on: as of `run`; a dead node's processes start again where there is room for them.

    Raises: WorldFailed if a rank raises, ranks deadlock, too few are left, or time runs
        out; InvalidArgument. No process is left behind.
    """
    refuse_nested("run_elastic")
    check_function(fn, (None, *args))
    world_size = check_world_size(world_size, simulated=on is not None)
    if not 1 <= least <= world_size:
        raise InvalidArgument(f"least={least}: between 1 rank and all {world_size}.")
    plan = faults if callable(faults) else _once(check_faults(faults, world_size))
    console = Console(world_size, quiet)
    deadline = time.monotonic() + patience(check_timeout(timeout_s))
    with Interrupts() as interrupts, Progress() as progress:
        run = _Elastic(world_size, console, plan, partial(pack_task, fn, args), on)
        run.least, run.restarts, run.suspect_after_s = least, restarts, suspect_after_s
        try:
            while not interrupts.pending and not run.go_on():
                progress.show(run.how_far)
                if time.monotonic() > deadline:
                    raise run.failed(Failure("timeout", timeout_s=timeout_s))
            if interrupts.pending:
                raise run.failed(Failure("interrupted"))
            report = run.report()
        finally:
            run.close()
            console.close()
    return report


def _once(faults):
    """Return the plan in which only the first process of each number has faults."""
    return lambda process, replaced: [
        fault for fault in faults if fault.rank == process and not replaced
    ]


class _Elastic:
    """The processes of an elastic run, and their present world.

    members: the process of each rank. inside: those of them that have not left yet.
    starting, ready: processes not in a world; ready ones can join the next.
    results: of the processes whose function has returned.
    """

    least, restarts, suspect_after_s = 1, 0, 5.0

    def __init__(self, world_size, console, plan, pack, on):
        self._console, self._plan, self._pack = console, plan, pack
        self.worlds, self.results, self.members = [], {}, []
        self.inside, self.ready, self.starting = set(), set(), set(range(world_size))
        self._fresh, self._replaced = set(self.starting), [0] * world_size
        self._over, self._whys, self._faults, self._events = True, [], [], []
        self._ended, self._first, self._suspected = {}, None, {}
        self._joining, self._over_at = set(), 0.0
        self._next_look, self._stuck, self._idle = 0.0, None, (None, 0.0)
        self._block, self._clock_error_s = anonymous_file("distlab-notes"), 0.0
        self.board = SharedTrace(world_size, self._block)
        self.processes = self._started(world_size, on)
        for process in range(world_size):
            self._instruct(process)
        slow = ((f.rank, f.factor) for f in self._faults if isinstance(f, Slow))
        self._slowdown = Slowdown(self.processes, slow)

    def _started(self, count, on):
        how = {
            "entry": "distlab.launch.elastic_rank:main",
            "also": FOR_TRAINING if "distlab.train" in sys.modules else (),
        }
        if on is not None:
            on.choose_backend("gloo", count)
            return on.start_processes(range(count), "gloo", self.board, **how)
        how |= {"preload": PRELOAD, "shared": [self._block], "private_folder": True}
        return Processes(count, start_method=start_method()[0], **how)

    def _instruct(self, process):
        """Send a new process its settings and its task."""
        count = len(self._replaced)
        settings = {"world_size": count, "threads": max(1, usable_cores() // count)}
        faults = list(self._plan(process, self._replaced[process]))
        self._faults += faults
        struck = tuple(f for f in faults if not isinstance(f, Slow))
        self.processes.send(process, json.dumps(settings).encode())
        self.processes.send(process, self._pack(struck))

    def go_on(self) -> bool:
        """Wait a moment, process frames, output and ends; return True if all is done.

        Raises: WorldFailed.
        """
        pause = max(0.0, self._next_look - time.monotonic())
        if self._slowdown:
            self._slowdown.beat(spared=self.results)
            pause = Slowdown.TICK_S
        for what in self.processes.poll(pause):
            if isinstance(what, Lines):
                self._console.add(what.index, what.text)
            elif isinstance(what, FrameReceived):
                self._hear(what)
            else:
                self._bury(*what)
        busy = self.results.keys().isdisjoint(self.members)
        if self.ready and busy and not self._over and not self._joining:
            new = ", ".join(map(str, sorted(self.ready)))
            self._change(f"process {new} was started again")
        if self._over and not self.inside:
            self._begin_next()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + TICK_S
            self.board.drain()
            self._look()
        return bool(self.results) and not (self.inside or self._over)

    def how_far(self) -> str:
        """Return the number of the world and of its running ranks, in words."""
        return f"world {len(self.worlds)}, {len(self.inside)} ranks at work"

    def _hear(self, frame):
        process = frame.index
        if frame.payload == b"ready":
            self.starting.discard(process)
            self.ready.add(process)
            return
        if frame.payload == b"joined":
            self._joining.discard(process)
            return
        outcome = read_outcome(frame)
        self._console.add(process, self.processes.flush(process))
        self.inside.discard(process)
        if outcome.how == "returned":
            self.results[process] = outcome.value
        elif outcome.details["left"]:
            self.ready.add(process)
        else:
            outcome.rank = self.members.index(process)
            raise self.failed(Failure("raised", outcome))

    def _bury(self, process, status, why):
        """Remove a process that has ended; start another if `restarts` allows it."""
        if process in self.results:
            return
        if process in self.inside:
            rank = self.members.index(process)
            self._first = RankOutcome(rank, "died", time.monotonic(), status)
            self._ended[rank] = self._first.time, "died"
            how = self._how_it_died(process, rank, status)
            self._change(why or f"process {process} {how}")
        for state in (self.inside, self.ready, self.starting):
            state.discard(process)
        if self.restarts > 0:
            self.restarts -= 1
            self._replaced[process] += 1
            self.processes.replace(process)
            self._slowdown.replaced(process)
            self.starting.add(process)
            self._fresh.add(process)
            self._instruct(process)

    def _how_it_died(self, process, rank, status):
        if process in self._suspected:
            return self._suspected.pop(process)
        fired = any(e.label == "kill" for e in self.board.trace().of(rank, "fault"))
        plans = [f for f in self._faults if f.rank == process and isinstance(f, Kill)]
        return how_it_died(status, plans[-1] if fired else None)

    def _change(self, why):
        """End the present world for all its members, if it is not over yet."""
        if why not in self._whys:  # a node says it for each of its processes
            self._whys.append(why)
        if not self._over:
            self._over, self._over_at = True, time.monotonic()
            request = json.dumps({"over": len(self.worlds)}).encode()
            for process in self.inside:
                self.processes.send(process, request)

    def _begin_next(self):
        """Form a world of all ready processes, once there are enough."""
        few = len(self.ready) < self.least
        if self.starting and (few or not self.worlds):
            return
        if not self.ready and self.results:
            self._over = False  # all that have ended had returned
            return
        if few:
            error = self.failed(Failure("died", self._first))
            error.add_note(f"{len(self.ready)} ranks are left, and least={self.least}.")
            raise error
        if not self.worlds:
            self.board.begin()
        self._gather_events()
        self.members, fresh = sorted(self.ready), self._fresh & self.ready
        self._fresh -= fresh
        self.board.regroup(self.members, fresh)
        self.processes.compare_clocks(self.members)
        self._clock_error_s = max(self._clock_error_s, self.board.clock_error_s)
        why, self._whys = "; ".join(self._whys), []
        began_s = time.monotonic() - self.board.began
        for process in fresh if self.worlds else ():
            self._note(process, "restart", began_s)
        self.worlds.append(ElasticWorld(began_s, self.members, why))
        self.inside, self.ready = set(self.members), set()
        self._joining = set(self.members)
        self._over, self._ended, self._stuck, self._idle = False, {}, None, (None, 0.0)
        number = len(self.worlds)
        meeting = str(Path(self.processes.folder or "") / f"world-{number}")
        world = {"number": number, "processes": self.members, "meeting": meeting}
        for rank, process in enumerate(self.members):
            self.processes.send(process, json.dumps(world | {"rank": rank}).encode())

    def _look(self):
        """Detect ranks in a deadlock, and suspect one that all others wait for."""
        if self._over:
            self._fence()
            return
        if not self.inside:
            return
        ranks = [r for r, process in enumerate(self.members) if process in self.inside]
        notes = {rank: self.board.now(rank) for rank in ranks}
        waits = stuck_ranks(self.board, set(range(len(self.members))) - set(ranks))
        stuck = {rank: notes[rank] for rank in waits}
        if stuck and stuck == self._stuck:
            raise self.failed(Failure("stuck", stuck=waits))
        self._stuck = stuck
        idle = {rank: now for rank, now in notes.items() if now.state != "blocked"}
        before, since = self._idle
        if idle != before or len(idle) == len(notes):
            self._idle = idle, time.monotonic()
        elif time.monotonic() - since > self.suspect_after_s:
            for rank in idle:
                late = f"{self.suspect_after_s:g} s"
                why = f"did nothing for {late} while all others waited"
                self._suspect(self.members[rank], why)

    def _fence(self):
        """Kill the processes that stay in a world that is over.

        A send that began just when its connection was cut can wait in gloo forever.
        """
        late = time.monotonic() - self._over_at
        for process in self.inside:
            blocked = self.board.now(self.members.index(process)).state == "blocked"
            limit_s = _LEAVE_S if blocked else self.suspect_after_s
            if late > limit_s:
                why = f"was still in the last world after {limit_s:g} s"
                self._suspect(process, why)

    def _suspect(self, process, why):
        if process in self._suspected:
            return
        self._suspected[process] = f"{why}, and was killed"
        self._note(process, "suspected", time.monotonic() - self.board.began)
        self.processes.signal(process, signal.SIGKILL)

    def _gather_events(self):
        """Collect the finished events of the present world; lanes are processes."""
        if not self.worlds:
            return
        trace = self.board.trace(ended=self._ended)
        whole = [m for m in trace.messages() if all(e and e.end is not None for e in m)]
        events = [e for e in trace.events if e.kind not in ("send", "recv")]
        for event in [*events, *(side for message in whole for side in message)]:
            if event.end is not None:
                peer = None if event.peer is None else self.members[event.peer]
                process = self.members[event.rank]
                self._events.append(event._replace(rank=process, peer=peer))

    def _note(self, process, fault, at_s):
        self._events.append(Event(process, at_s, at_s, "fault", None, 0, 0, fault))

    def failed(self, failure: Failure) -> WorldFailed:
        """Return the exception with the diagnosis of the present world's end."""
        ranks = self.members or range(len(self._replaced))
        output = self._console.output()
        inside = {p: rank for rank, p in enumerate(ranks) if p in self.inside}
        stacks = self.processes.stacks(inside)
        failure.stacks = {inside[p]: stack for p, stack in stacks.items()}
        for rank, process in enumerate(ranks):
            if process in self.results:
                value = self.results[process]
                failure.outcomes[rank] = RankOutcome(rank, "returned", 0.0, value)
        if failure.first:
            failure.outcomes[failure.first.rank] = failure.first
        faults = [
            replace(fault, rank=ranks.index(fault.rank))
            for fault in self._faults
            if fault.rank in ranks
        ]
        return tell(failure, self.board, faults, [output[p] for p in ranks])

    def report(self) -> ElasticReport:
        """Return the report, once all is done."""
        self._gather_events()
        count = len(self._replaced)
        return ElasticReport(
            results=[self.results.get(process) for process in range(count)],
            trace=Trace(count, self._events, clock_error_s=self._clock_error_s),
            output=self._console.output(),
            elapsed_s=time.monotonic() - self.board.began,
            backend="gloo",
            worlds=self.worlds,
        )

    def close(self) -> None:
        """End the processes, and free all resources."""
        for process in list(self.processes.alive):
            self.processes.send(process, b"E")
        self.processes.wait_ended(1.0 if self.results else 0.0)
        self.processes.stop()
        self.board.close()
        os.close(self._block)
