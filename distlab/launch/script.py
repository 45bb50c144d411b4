"""`launch_script`: an unchanged torch.distributed script on monitored ranks.

torchrun                       distlab launch
each worker imports torch      one process imports torch, and ranks are its forks
output of workers side by side each line with its rank
a hang ends in a time-out      a deadlock is reported as soon as all ranks wait
"""

import math
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from distlab.calls.printed_output import Console
from distlab.calls.progress import Progress
from distlab.diagnosis import (
    Failure,
    RankOutcome,
    Scene,
    progress,
    ranks_in_words,
    tell,
)
from distlab.errors import InvalidArgument, WorldFailed
from distlab.faults import Fault, Hang, Kill, Slow, check_faults
from distlab.launch.call import RunningCall
from distlab.launch.machine import (
    FOR_TRAINING,
    check_world_size,
    start_method,
    usable_cores,
)
from distlab.launch.ranks import Ranks
from distlab.launch.self_started import new_worlds
from distlab.processes.child import INTERRUPT_SIGNAL
from distlab.trace import Trace, group_name

__all__ = ["Script", "ScriptRun", "launch_script"]

_GRACE_S = 4.0  # for ranks to end after a signal; a second one kills them
_TICK_S = 0.1
_SAY_S = 10.0  # until a rank that waits, or a job that does nothing, is reported
_IDLE = 0.02  # of one processor
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
    unmet: the planned faults that did not happen, and warnings, in sentences.
    ranks: of a failure, what each rank was doing, and its frames: innermost first.
    """

    trace: Trace | None = None
    failure: WorldFailed | KeyboardInterrupt | None = None
    signal: int = 0
    unmet: list[str] = field(default_factory=list)
    ranks: list[dict] = field(default_factory=list)


def launch_script(
    script: Script,
    world_size: int,
    *,
    faults: Sequence[Fault] = (),
    whole_trace: bool = False,
    cpu: bool = False,
    log_dir: Path | None = None,
    report: Callable[["ScriptRun"], None] = lambda run: None,
) -> ScriptRun:
    """Run a script on ranks of its own, until all have ended or one cannot continue.

    faults: of `Kill` and `Hang` the step counts the rank's collectives and messages.
    cpu: let a CPU stand in for GPUs, and gloo for NCCL.
    log_dir: a folder for the output of each rank, as files.
    report: called once it has failed, or a signal has come, before its ranks end.

    Raises: InvalidArgument before anything has started. No process is left behind.
    """
    if not script.module and not Path(script.target).is_file():
        raise InvalidArgument(f"there is no script {script.target!r} here.")
    world_size = check_world_size(world_size)
    faults = check_faults(faults, world_size)
    console = _Console(world_size, log_dir)
    with console, _Signals() as signals:
        ranks = _ScriptRanks(script, world_size, faults, cpu)
        ranks.board.recent_only = not whole_trace
        run = ScriptRun()
        try:
            ranks.wait_ready(signals)
            if not signals.pending:
                how = {"console": console, "faults": faults, "interrupts": signals}
                ranks.call([b""], timeout_s=math.inf, **how)
        except Failure as failed:
            run.signal = signals.pending
            failed = _before_signal(failed, signals.pending)
            run.failure = ranks.story(failed, faults, console.output())
            run.ranks = ranks.doings(failed, faults)
            report(run)
        run.signal = signals.pending
        if signals.pending:
            ranks.end_by(signals, console)
        run.trace = run.failure.trace if run.failure else ranks.trace()
        run.unmet = _unmet(faults, run.trace, ranks.board)
        if not (run.failure or signals.pending):
            run.unmet += _groups_of_some(ranks.board)
            ranks.leave()
        ranks.close()
    return run


def _before_signal(failed, number):
    """Return a failure without the deaths by a signal, which may be sent to all."""
    outcomes = failed.outcomes
    killed = {r for r, o in outcomes.items() if number and o.value == -number}
    left = {r: o for r, o in outcomes.items() if r not in killed}
    if not killed or (failed.first and failed.first.rank not in killed):
        return failed
    return Failure("interrupted", outcomes=left, stacks=failed.stacks)


def _groups_of_some(board):
    """Return a sentence for each call of new_group that some ranks did not make."""
    everyone = range(board.world_size)
    key = group_name(everyone, "new")
    made = {rank: board.calls(rank, key) for rank in everyone}
    most = max(made, key=made.get)
    sentences = []
    for number in range(min(made.values()) + 1, made[most] + 1):
        words, *_, where = board.call(most, number, key).split("\n")
        others = ranks_in_words(rank for rank in everyone if made[rank] < number)
        sentences.append(
            f"Warning: {others} never called {words}{where}. Every rank must call "
            "new_group, members or not; gloo went on, other backends may hang."
        )
    return sentences


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
    """Signals that end a script, deferred while it runs.

    pending: the last one. count: how many there were.
    """

    def __init__(self):
        self.pending, self.count, self._before = 0, 0, {}

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._before[number] = signal.signal(number, self._catch)
        return self

    def _catch(self, number, frame):
        self.pending, self.count = number, self.count + 1

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Console(Console):
    """A console that shows every line, keeps the last ones, and writes files of all."""

    def __init__(self, world_size, folder):
        super().__init__(world_size, quiet=False)
        self._files = []
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            names = (folder / f"rank_{rank}.log" for rank in range(world_size))
            self._files = [name.open("w", encoding="utf-8") for name in names]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for file in self._files:
            file.close()

    def add(self, rank: int, text: str) -> None:
        """Show whole lines that `rank` printed."""
        self._kept[rank] = [*self._kept[rank], *text.splitlines(True)][-_TAIL:]
        if self._files:
            self._files[rank].write(text)
            self._files[rank].flush()
        lines = "".join(f"[rank {rank}] {line}\n" for line in text.splitlines())
        Progress.make_room()
        with suppress(BrokenPipeError):  # as with `| head`
            sys.stdout.write(lines)
            sys.stdout.flush()


class _ScriptRanks(Ranks):
    """Ranks that run a script, which makes the process group by itself."""

    script = True

    def __init__(self, script, world_size, faults, cpu):
        self._script, self._faults, self._cpu = script, faults, cpu
        self._call = None
        self._stdin = _stdin()
        super().__init__(
            world_size, "gloo", persistent=False, start_method=start_method()[0]
        )

    def _start(self, **how):
        how["shared"] = [*how["shared"], self._stdin]
        how |= {"private_folder": True, "entry": "distlab.launch.script_rank:main"}
        return super()._start(**how)

    def _also(self):
        """Return the modules that a training imports, if the script trains."""
        script = Path(self._script.target)
        text = "" if self._script.module else script.read_text(errors="replace")
        trains = self._script.module or re.search(
            r"optim|Parallel|shard|import DDP", text
        )
        return FOR_TRAINING if trains else ()

    def _settings(self, persistent):
        struck = (f for f in self._faults if not isinstance(f, Slow))
        threads = max(1, usable_cores() // self.world_size)
        names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        names["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(threads))
        return super()._settings(persistent) | {
            "target": self._script.target,
            "args": list(self._script.args),
            "module": self._script.module,
            "cpu": self._cpu,
            "own": {
                "folder": self.processes.folder,
                "world_size": self.world_size,
                "cpu": self._cpu,
            },
            "names": names,
            "faults": [(type(f).__name__, f.rank, f.step) for f in struck],
        }

    def _begin(self, console, faults):
        self.board.begin()
        how = {"console": console, "faults": faults}
        self._call = _ScriptCall(self.processes, self.board, **how)
        return self._call

    def story(self, failure, faults, output):
        """Return the exception with the diagnosis, of the world that has failed."""
        board = self._failed_board()
        output = output if board is self.board else [""] * board.world_size
        return tell(failure, board, faults, output, script=True)

    def doings(self, failure, faults):
        """Return rank, what it was doing, and its frames, of each rank, as dicts."""
        board = self._failed_board()
        scene = Scene(failure, board, faults, [""] * board.world_size)
        return [
            {
                "rank": rank,
                "doing": scene.doing(rank) + scene.where(rank),
                "frames": failure.stacks.get(rank, []),
            }
            for rank in scene.everyone
        ]

    def _failed_board(self):
        failed = self._call and self._call.failed_inside
        return failed.board if failed else self.board

    def trace(self):
        """Return the trace: of the last world that the script has started, if any."""
        inside = self._call.inside.values() if self._call else ()
        boards = [self.board, *(call.board for call in inside)]
        return boards[-1].trace()

    def end_by(self, signals, console):
        """Send all ranks the signal, and show their output until they have ended."""
        number, count = signals.pending, signals.count
        number = INTERRUPT_SIGNAL if number == signal.SIGINT else number
        for rank in list(self.processes.alive):
            self.processes.signal(rank, number)
        call = _ScriptCall(self.processes, self.board, console=console, faults=())
        call.watch_end(_GRACE_S, lambda: signals.count > count)

    def close(self):
        """Kill the remaining processes and free all resources."""
        super().close()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None


class _ScriptCall(RunningCall):
    """The script under way. A rank with exit status 0 counts as returned.

    If some ranks wait long, or none does anything, that is printed.

    inside: the calls of worlds that the script has started itself, by name.
    failed_inside: the one of these that cannot finish.
    """

    def __init__(self, processes, board, *, console, faults):
        super().__init__(processes, board, console=console, faults=faults)
        self._faults, self.board = faults, board
        self._since, self._told = {}, set()
        self._used, self._ask_at = (0.0, time.monotonic()), 0.0
        self.inside, self.failed_inside = {}, None

    def go_on(self):
        """Go on with this world and those inside; of two failures, the inner one."""
        try:
            super().go_on()
        except Failure:
            self._go_on_inside()
            raise
        self._go_on_inside()

    def _go_on_inside(self):
        folder = getattr(self._processes, "folder", None)
        for world in new_worlds(folder, self.inside) if folder else ():
            world.board.begin()
            how = {"console": self._console, "faults": ()}
            self.inside[world.name] = _ScriptCall(world, world.board, **how)
        for call in self.inside.values():
            try:
                if len(call.outcomes) < call.board.world_size:
                    call.go_on()
            except Failure:
                self.failed_inside = call
                raise

    def _active(self):
        """Return the call of the world inside that is under way, or None."""
        left = (c for c in self.inside.values() if len(c.outcomes) < c.board.world_size)
        return next(left, None)

    def failure(self, kind, first=None, **facts):
        """Return a Failure; of an interrupt, that of the world inside, if there is."""
        if kind == "interrupted" and self._active():
            self.failed_inside = self._active()
            return self.failed_inside.failure(kind)
        return super().failure(kind, first, **facts)

    def _look_for_stuck(self):
        super()._look_for_stuck()
        now = time.monotonic()
        for rank in set(range(self.board.world_size)) - set(self.outcomes):
            note = self.board.now(rank)
            if self._since.get(rank, (None,))[0] != note:
                self._since[rank] = note, now
        long = {
            (r, n) for r, n in self._waits().items() if now - self._since[r][1] > _SAY_S
        }
        idle, inside = self._is_idle(now), self._active()
        told = "idle" in self._told or long or (inside and inside._told)
        if long - self._told or (idle and not told):
            (inside or self)._tell()
            self._told |= {"idle"}
        elif not idle:
            self._told.discard("idle")

    def _waits(self):
        """Return rank -> its note, of the ranks that wait."""
        found = {r: n for r, (n, _) in self._since.items() if r not in self.outcomes}
        return {r: n for r, n in found.items() if n.state in ("blocked", "several")}

    def _tell(self):
        """Print what each rank does, as some have waited long, or none computes."""
        waits = self._waits()
        self._told = {*waits.items(), "idle"}
        title, *lines = progress(self.failure("held"), self.board, self._faults)
        title = title if waits else "No rank has computed for 10 s:"
        Progress.make_room()
        print("\n".join([title, *lines]), file=sys.stderr, flush=True)

    def _is_idle(self, now):
        """Return True if the processes have not used a processor for ten seconds."""
        if not hasattr(self._processes, "request_usage"):
            return False
        usage, (before, at) = self._processes.usage, self._used
        used = sum(ran for ran, _ in usage.values()) if usage else now
        if used - before > _IDLE * (now - at) or used < before:
            self._used = used, now
        if now > self._ask_at:
            self._ask_at = now + 1
            self._processes.request_usage()
        return now - at > _SAY_S

    def _ended(self, rank, status):
        how = "died" if status else "returned"
        details = {} if status else {"left": "os._exit(0), before its script's end"}
        return RankOutcome(rank, how, self._time(rank), status, details)

    def watch_end(self, patience_s, is_over):
        """Process output and ends until all have ended, or for `patience_s`."""
        deadline, dismissed = time.monotonic() + patience_s, set()
        while self._processes.alive - dismissed:
            if time.monotonic() > deadline or is_over():
                return
            self._take(self._processes.poll(_TICK_S))
            for rank in self.outcomes.keys() - dismissed:
                self._processes.send(rank, b"E")  # whose peers then see the end, too
                dismissed.add(rank)


def _stdin():
    """Return a descriptor of the standard input, or of /dev/null if it is closed."""
    try:
        return os.dup(0)
    except OSError:
        return os.open(os.devnull, os.O_RDONLY)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
