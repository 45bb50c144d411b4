"""`launch_script`: an unchanged torch.distributed script on monitored ranks.

torchrun                       distlab launch
each worker imports torch      one process imports torch, and ranks are its forks
output of workers side by side each line with its rank
a hang ends in a time-out      a deadlock is reported as soon as all ranks wait
"""

import math
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from distlab.calls.printed_output import Console
from distlab.errors import InvalidArgument, WorldFailed
from distlab.faults import Fault, Hang, Kill, Slow, check_faults
from distlab.launch.call import Failure, RankOutcome, RunningCall
from distlab.launch.machine import PRELOAD, check_world_size, start_method, usable_cores
from distlab.launch.ranks import Ranks
from distlab.launch.story import progress
from distlab.trace import Trace

__all__ = ["Script", "ScriptRun", "launch_script"]

_GRACE_S = 30.0  # torchrun's limit for workers to end after a signal
_PRELOAD = (*PRELOAD, "distlab.launch.script_rank")
_TICK_S = 0.1
_SAY_S = 10.0  # until the ranks that all others wait for are printed
_TAIL = 20  # lines that are kept of each rank, for the diagnosis


@dataclass
class Script:
    """A script as on Python's command line: a file, or a module, and its arguments."""

    target: str
    args: Sequence[str] = ()
    module: bool = False


@dataclass
class ScriptRun:
    """The result of a script.

    trace: the events of its ranks; only the latest ones, unless all were requested.
    failure: why it could not finish, or None.
    signal: the number of the signal that ended it, or 0.
    unmet: the planned faults that did not happen, in sentences.
    """

    trace: Trace
    failure: WorldFailed | None
    signal: int
    unmet: list[str]


def launch_script(
    script: Script,
    world_size: int,
    *,
    faults: Sequence[Fault] = (),
    whole_trace: bool = False,
) -> ScriptRun:
    """Run a script on ranks of its own, until all have ended or one cannot continue.

    faults: of `Kill` and `Hang` the step counts the rank's collectives and messages.

    Raises: InvalidArgument before anything has started. No process is left behind.
    """
    if not script.module and not Path(script.target).is_file():
        raise InvalidArgument(f"there is no script {script.target!r} here.")
    world_size = check_world_size(world_size)
    faults = check_faults(faults, world_size)
    console = _Console(world_size)
    with _Signals() as signals:
        ranks = _ScriptRanks(script, world_size, faults)
        ranks.board.recent_only = not whole_trace
        failure = None
        try:
            ranks.wait_ready(signals)
            if not signals.pending:
                how = {"console": console, "faults": faults, "interrupts": signals}
                ranks.call([b""], timeout_s=math.inf, **how)
        except Failure as failed:
            failure = ranks.story(failed, faults, console.output())
        if signals.pending:
            ranks.end_by(signals.pending, console)
        trace = failure.trace if failure else ranks.board.trace()
        unmet = _unmet(faults, trace, ranks.board)
        if not (failure or signals.pending):
            ranks.leave()
        ranks.close()
    return ScriptRun(trace, failure, signals.pending, unmet)


def _unmet(faults, trace, board):
    """Return a sentence for each fault whose rank ended before it."""
    struck = {event.rank for event in trace.events if event.kind == "fault"}
    return [
        f"The {type(fault).__name__.lower()} of rank {fault.rank} at call {fault.step} "
        "did not happen: "
        f"it made {board.now(fault.rank).step} calls of torch.distributed."
        for fault in faults
        if isinstance(fault, Kill | Hang) and fault.rank not in struck
    ]


class _Signals:
    """Signals that end a script, deferred while it runs; `pending` is the last one."""

    def __init__(self):
        self.pending, self._before = 0, {}

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._before[number] = signal.signal(number, self._catch)
        return self

    def _catch(self, number, frame):
        self.pending = number

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Console(Console):
    """A console that shows every line, and keeps the last ones."""

    def __init__(self, world_size):
        super().__init__(world_size, quiet=False)

    def add(self, rank: int, text: str) -> None:
        """Show whole lines that `rank` printed."""
        self._kept[rank] = [*self._kept[rank], *text.splitlines(True)][-_TAIL:]
        lines = "".join(f"[rank {rank}] {line}\n" for line in text.splitlines())
        with suppress(BrokenPipeError):  # as with `| head`
            sys.stdout.write(lines)
            sys.stdout.flush()


class _ScriptRanks(Ranks):
    """Ranks that run a script, which makes the process group by itself."""

    script = True

    def __init__(self, script, world_size, faults):
        self._script, self._faults = script, faults
        self._stdin = _stdin()
        super().__init__(
            world_size, "gloo", persistent=False, start_method=start_method()[0]
        )

    def _start(self, **how):
        how["shared"] = [*how["shared"], self._stdin]
        how["preload"] = _PRELOAD
        return super()._start(entry="distlab.launch.script_rank:main", **how)

    def _settings(self, persistent):
        struck = (f for f in self._faults if not isinstance(f, Slow))
        threads = max(1, usable_cores() // self.world_size)
        names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        names["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(threads))
        return super()._settings(persistent) | {
            "target": self._script.target,
            "args": list(self._script.args),
            "module": self._script.module,
            "names": names,
            "faults": [(type(f).__name__, f.rank, f.step) for f in struck],
        }

    def _begin(self, console, faults):
        self.board.begin()
        return _ScriptCall(self.processes, self.board, console=console, faults=faults)

    def end_by(self, number, console):
        """Send all ranks a signal, and show their output until they have ended."""
        for rank in list(self.processes.alive):
            self.processes.signal(rank, number)
        call = _ScriptCall(self.processes, self.board, console=console, faults=())
        call.watch_end(_GRACE_S)

    def close(self):
        """Kill the remaining processes and free all resources."""
        super().close()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None


class _ScriptCall(RunningCall):
    """The script under way. A rank with exit status 0 counts as returned.

    If some ranks wait long for others, which may compute or hang, that is printed.
    """

    def __init__(self, *where, **how):
        super().__init__(*where, **how)
        self._faults, self._held, self._say_at = how["faults"], None, 0.0

    def _look_for_stuck(self):
        super()._look_for_stuck()
        busy = [r for r in range(self._board.world_size) if r not in self.outcomes]
        notes = {rank: self._board.now(rank) for rank in busy}
        held = {rank: now for rank, now in notes.items() if now.state == "blocked"}
        if held != self._held or len(held) == len(busy):
            self._held, self._say_at = held, time.monotonic() + _SAY_S
        elif held and time.monotonic() > self._say_at:
            self._say_at = math.inf
            still = self.failure("held")
            for line in progress(still, self._board, self._faults):
                print(line, file=sys.stderr, flush=True)

    def _ended(self, rank, status):
        how = "died" if status else "returned"
        return RankOutcome(rank, how, self._time(rank), status)

    def watch_end(self, patience_s):
        """Process output and ends until all have ended, or for `patience_s`."""
        deadline = time.monotonic() + patience_s
        while self._processes.alive - set(self.outcomes):
            if time.monotonic() > deadline:
                return
            self._take(self._processes.poll(_TICK_S))


def _stdin():
    """Return a descriptor of the standard input, or of /dev/null if it is closed."""
    try:
        return os.dup(0)
    except OSError:
        return os.open(os.devnull, os.O_RDONLY)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
