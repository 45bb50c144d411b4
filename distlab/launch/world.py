"""`run` and `World`: a world of ranks from a cell."""

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from distlab.calls.printed_output import Console
from distlab.calls.serialize import check_function, pack_task
from distlab.diagnosis import Failure
from distlab.errors import InvalidArgument, NestedWorld, WorldClosed
from distlab.faults import Fault, check_faults
from distlab.launch.machine import (
    check_world_size,
    choose_backend,
    start_method,
    start_notes,
)
from distlab.launch.ranks import Ranks
from distlab.launch.report import Report
from distlab.patience import patience
from distlab.processes import Interrupts, Processes, inside
from distlab.recorder import SharedTrace

if TYPE_CHECKING:  # a small install lacks what they need
    from distlab.launch.relayed import Relaying
    from distlab.simulated import Fabric

__all__ = [
    "RankHosts",
    "World",
    "check_timeout",
    "in_turn",
    "refuse_nested",
    "run",
    "run_once",
]


class RankHosts(Protocol):
    """What `on=` takes: the nodes of a cluster, which can run ranks."""

    def choose_backend(
        self, backend: str, world_size: int, *, share_gpu: bool = False
    ) -> tuple[str, list[str]]:
        """Return "gloo" or "nccl" for ranks on these nodes, and notes on the choice.

        Raises: InvalidArgument if these nodes have not enough for them.
        """

    def start_ranks(self, world_size: int, backend: str, *, persistent: bool) -> Ranks:
        """Start ranks on the nodes; return them."""

    def start_processes(
        self,
        numbers: Sequence[int],
        backend: str,
        board: SharedTrace,
        entry: str,
        also: Sequence[str] = (),
    ) -> Processes:
        """Start processes with these numbers on the nodes; return them."""


def run(
    fn: Callable,
    world_size: int = 4,
    *,
    args: Sequence = (),
    backend: str = "gloo",
    share_gpu: bool = False,
    timeout_s: float = 60,
    faults: Fault | Sequence[Fault] = (),
    quiet: bool = False,
    fabric: "Fabric | None" = None,
    own_args: Sequence[Sequence] = (),
    relayed: "bool | Relaying" = False,
    on: RankHosts | None = None,
) -> Report:
    """Call `fn(comm, *args)` on `world_size` fresh processes; return their report.

    Each rank is a process of its own with a `Comm`, and torch's default process group
    is up. The output of ranks is shown as it is printed, unless `quiet`.

    backend: "gloo", on CPUs, which then see no GPU; "nccl", a GPU for every rank; or
        "auto": NCCL where there are enough GPUs. Tensors must be on `comm.device`.
    share_gpu: let ranks on NCCL share GPUs where there are fewer GPUs than ranks.
    timeout_s: the time limit of the function once all ranks are up; DISTLAB_PATIENCE
        in the environment multiplies it.
    faults: `Kill`, `Hang`, `Slow` and `Corrupt`, to break the run on purpose.
    fabric: simulate the ranks on it instead, on a virtual clock; hundreds are fine.
    own_args: for each rank its further arguments, after `args`, which no other gets.
    relayed: carry all messages through this process, and treat ranks as untrusted:
        they have no process group, and return plain data. More in `Relaying`.
    on: run the ranks on the nodes of a cluster, such as `ray_cluster()`.

    Raises: WorldFailed, as one of its kinds, if a rank raises, dies, deadlocks, skips a
    collective or takes too long; InvalidArgument, NotSerializable, NestedWorld before
    anything has started; KeyboardInterrupt. No process is left behind in any of these.
    """
    how = {"faults": faults, "timeout_s": timeout_s, "quiet": quiet, "fabric": fabric}
    how |= {"backend": backend, "share_gpu": share_gpu, "on": on}
    how |= {"own_args": own_args, "relayed": relayed}
    return in_turn(fn, world_size, [args], **how)[0]


def in_turn(
    fn: Callable,
    world_size: int,
    arguments: Sequence[Sequence],
    *,
    backend: str = "gloo",
    share_gpu: bool = False,
    timeout_s: float = 60,
    faults: Fault | Sequence[Fault] = (),
    quiet: bool = False,
    fabric: "Fabric | None" = None,
    own_args: Sequence[Sequence] = (),
    relayed: "bool | Relaying" = False,
    on: RankHosts | None = None,
) -> list[Report]:
    """Run `fn` as `run` does for each of several `args`, on the same ranks if possible.

    Only the output of the first call is shown.
    """
    refuse_nested("run")
    if on is not None and (relayed or fabric is not None):
        other = "relayed" if relayed else "fabric"
        raise InvalidArgument(f"Take on= or {other}=, not both: they exclude another.")
    elsewhere = fabric is not None or on is not None
    world_size = check_world_size(world_size, simulated=elsewhere)
    for args in arguments:
        check_function(fn, (*args, *own_args[0]) if own_args else args)
    faults = check_faults(faults, world_size)
    limit = {"faults": faults, "timeout_s": check_timeout(timeout_s)}
    if fabric is not None:
        from distlab.launch.simulate import simulate

        how = limit | {"fabric": fabric}
        return [
            simulate(fn, world_size, args=args, **how).report(faults)
            for args in arguments
        ]
    each = own_args or [()]
    calls = [[pack_task(fn, (*a, *own), faults) for own in each] for a in arguments]
    if relayed:
        from distlab.launch.relayed import RelayedRanks, Relaying

        relaying = Relaying() if relayed is True else relayed
        start = partial(RelayedRanks, world_size, relaying, start_method()[0])
        return run_once(start, calls, quiet=quiet, notes=start_notes(), **limit)
    backend, notes = _chosen(backend, world_size, on, share_gpu)
    start = partial(_new_ranks, world_size, backend, on, persistent=False)
    return run_once(start, calls, quiet=quiet, notes=notes, **limit)


def run_once(
    start: Callable[[], Ranks],
    calls: Sequence[Sequence[bytes]],
    *,
    timeout_s: float,
    faults: Sequence[Fault] = (),
    quiet: bool = False,
    notes: Sequence[str] = (),
) -> list[Report]:
    """Make calls, each with a task for all or one per rank; then end the ranks."""
    ranks, reports = None, []
    with Interrupts() as interrupts:
        try:
            for tasks in calls:
                ranks = ranks or _ready(start(), interrupts)
                how = timeout_s, faults, quiet or bool(reports), interrupts, notes
                reports.append(_call(ranks, tasks, *how))
                if interrupts.pending:
                    break
                if not ranks.intact or len(reports) == len(calls):
                    ranks.leave()
                    ranks.close()
                    ranks = None
        finally:
            if ranks is not None:
                ranks.close()
    if interrupts.pending:
        raise KeyboardInterrupt
    return reports


class World:
    """Persistent ranks, for `world.run(fn, *args)` many times on the same processes.

        with World(4) as world:
            world.run(load_data)
            world.run(train, 0.1)

    A rank's globals and modules persist from one call to the next. After a call that
    failed or was interrupted the next one begins with fresh ranks, which its report
    notes. `close` ends the ranks; without `with`, so does the notebook's end.

    backend, share_gpu, on: as of `run`. timeout_s: the time limit of one call.

    Raises: as `run` does; WorldClosed for a call after `close`.
    """

    def __init__(
        self,
        world_size: int,
        *,
        backend: str = "gloo",
        share_gpu: bool = False,
        on: RankHosts | None = None,
    ):
        refuse_nested("World")
        self.world_size = check_world_size(world_size, simulated=on is not None)
        self.backend, self._notes = _chosen(backend, self.world_size, on, share_gpu)
        self._on = on
        self.timeout_s = 60
        self._lock = threading.Lock()
        self._closed = False
        self._ranks = None
        self._lost = ""
        with Interrupts() as interrupts:
            self._open_ranks(interrupts)
            if interrupts.pending:
                self.close()
        if interrupts.pending:
            raise KeyboardInterrupt

    def __repr__(self):
        state = "closed" if self._closed else "open"
        return f"World({self.world_size}, backend='{self.backend}'), {state}"

    def run(self, fn: Callable, *args) -> Report:
        """Call `fn(comm, *args)` on every rank; return their report.

        Raises: as the function `run` does; WorldClosed.
        """
        refuse_nested("World.run")
        check_function(fn, args)
        timeout_s = check_timeout(self.timeout_s)
        task = pack_task(fn, args, ())
        with self._lock, Interrupts() as interrupts:
            notes = [*self._notes, *self._renewed(interrupts)]
            ranks, healthy = self._ranks, False
            try:
                report = _call(ranks, [task], timeout_s, (), False, interrupts, notes)
                healthy = not interrupts.pending
            finally:
                if not healthy:
                    self._drop("the call before this one did not finish")
            if healthy and not ranks.intact:
                self._drop("the call before this one left no whole world behind")
        if interrupts.pending:
            raise KeyboardInterrupt
        return report

    def _renewed(self, interrupts):
        """Start ranks if there are none; return the notes for the report on that."""
        if self._closed:
            raise WorldClosed(
                "this World has been closed, and its ranks are gone. "
                "Open another: world = World(4)."
            )
        if self._ranks is not None:
            return []
        self._open_ranks(interrupts)
        return [f"Fresh ranks: {self._lost}, so what they had in memory is gone."]

    def _open_ranks(self, interrupts):
        ranks = _new_ranks(self.world_size, self.backend, self._on, persistent=True)
        self._ranks = _ready(ranks, interrupts)
        self._finalizer = weakref.finalize(self, self._ranks.close)

    def _drop(self, why):
        self._finalizer()
        self._ranks = None
        self._lost = why

    def close(self) -> None:
        """End the ranks. Closing twice is fine."""
        self._closed = True
        if self._ranks is not None:
            self._ranks.leave()
            self._drop("")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _chosen(backend, world_size, on, share_gpu):
    """Return the backend, and the notes for the report on how ranks start."""
    if on is not None:
        return on.choose_backend(backend, world_size, share_gpu=share_gpu)
    backend, notes = choose_backend(backend, world_size, share_gpu=share_gpu)
    return backend, [*notes, *start_notes()]


def _new_ranks(world_size, backend, on, *, persistent):
    if on is not None:
        return on.start_ranks(world_size, backend, persistent=persistent)
    method = start_method()[0]
    return Ranks(world_size, backend, persistent=persistent, start_method=method)


def _ready(ranks, interrupts):
    """Return the ranks once they have joined their process group."""
    try:
        ranks.wait_ready(interrupts)
    except Failure as failure:
        error = ranks.story(failure, (), [""] * ranks.world_size)
        ranks.close()
        raise error from None
    except BaseException:
        ranks.close()
        raise
    return ranks


def _call(ranks, tasks, timeout_s, faults, quiet, interrupts, notes):
    """Run one call; return its report."""
    console = Console(ranks.world_size, quiet, where=ranks.where)
    try:
        outcomes = ranks.call(
            tasks,
            console=console,
            timeout_s=timeout_s,
            faults=faults,
            interrupts=interrupts,
        )
    except Failure as failure:
        raise ranks.story(failure, faults, console.output()) from None
    finally:
        console.close()
    return Report(
        results=[outcome.value for outcome in outcomes],
        trace=ranks.board.trace(),
        output=console.output(),
        elapsed_s=max(outcome.time for outcome in outcomes) - ranks.board.began,
        backend=ranks.backend,
        notes=[*notes, *ranks.notes(), *ranks.loose_ends()],
    )


def refuse_nested(what: str) -> None:
    """Refuse to open a world inside a rank of another.

    Raises: NestedWorld.
    """
    if inside() is not None:
        raise NestedWorld(
            f"{what} was called inside rank {inside().index} of a world. A rank cannot "
            "open a world of its own: return to the notebook and call it there."
        )


def check_timeout(timeout_s: float) -> float:
    """Return `timeout_s` if it is valid.

    Raises: InvalidArgument if it is not a number of seconds above 0.
    """
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not timeout_s > 0 or math.isinf(patience(timeout_s)):
        raise InvalidArgument(
            f"timeout_s is a number of seconds above 0, and got {timeout_s!r}."
        )
    return timeout_s
