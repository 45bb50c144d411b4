"""MPI: a function of `MPI.COMM_WORLD`, under mpirun, on this machine.

    cell ── run(fn, 4) ──▶ mpirun -n 4 ──▶ four Python processes ──▶ fn(world, *args)
         ◀── results, lines, exceptions ──────────┘

`world` is mpi4py's own communicator, and Open MPI does the rest: nothing of distlab is
between the function and it. Its methods in capitals, such as `world.Allreduce(a, b)`,
move numpy arrays.

On one machine Open MPI passes messages through shared memory, and large ones with one
copy, straight from the sender's memory to the receiver's; gloo, and so `comm`, goes
through sockets of the loopback interface, with system calls and two copies for every
piece. That, and not a better algorithm, is why its all-reduce of ten numbers takes a
hundredth of gloo's time here, and one of 16 MB half of it (tests/bench/mpi.py). Its
ranks open no network port. mpirun itself opens one, for daemons of other machines, of
which there are none; this version has no option against it.

Every call starts four interpreters and MPI afresh, which takes 0.8 s on two idle cores
and is over before `fn` begins. An MPI process that waits does so in a busy loop, which
four of them on two cores cannot afford: `mpi_yield_when_idle` makes these yield.
"""

import os
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

from distlab.calls.serialize import check_function, pack_task
from distlab.errors import EngineMissing
from distlab.launch.machine import check_world_size, start_method
from distlab.launch.ranks import Ranks
from distlab.launch.world import check_timeout, refuse_nested, run_once
from distlab.processes import LaunchedProcesses

__all__ = ["is_installed", "run"]

if find_spec("mpi4py"):
    import mpi4py

    # `from mpi4py import MPI` starts MPI. Here, in the notebook, it must not: a name of
    # MPI's may be used there, and its exceptions arrive there.
    mpi4py.rc.initialize = False

# An mpirun or a batch system above this process must not be taken for our own.
_FOREIGN = ("OMPI_", "PMIX_", "PRTE_", "SLURM_")


def run(
    fn: Callable,
    world_size: int = 4,
    *,
    args: Sequence = (),
    timeout_s: float = 60,
    quiet: bool = False,
) -> list:
    """Call `fn(world, *args)` on `world_size` processes of MPI; return their results.

    The output of ranks is shown as it is printed, unless `quiet`.

    timeout_s: the time limit of the function, from MPI's start on.

    Returns: one value per rank.
    Raises: EngineMissing if mpi4py or mpirun is not installed; EngineFailed if mpirun
    ends early; RankRaised, RankDied or WorldTimeout, as `distlab.run` does;
    InvalidArgument, NotSerializable, NestedWorld before anything has started;
    KeyboardInterrupt. No process is left behind in any of these.
    """
    refuse_nested("mpi.run")
    if missing := _missing():
        raise EngineMissing.of("mpi.run", missing, "mpi")
    start = partial(_MpiRanks, check_world_size(world_size))
    check_function(fn, args, "world")
    check_timeout(timeout_s)
    task = pack_task(fn, args, ())
    return run_once(start, [[task]], timeout_s=timeout_s, quiet=quiet)[0].results


def is_installed() -> bool:
    """Return True if mpi4py and mpirun are installed."""
    return not _missing()


def _missing():
    parts = {"mpi4py": find_spec("mpi4py"), "mpirun": _mpirun()}
    return [name for name, found in parts.items() if not found]


def _mpirun():
    """Return the path of mpirun, from this environment if it is there, or None."""
    places = [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    return shutil.which("mpirun", path=os.pathsep.join(places))


class _MpiRanks(Ranks):
    """Ranks that mpirun starts, without a process group of torch."""

    noted = False

    def __init__(self, world_size):
        super().__init__(
            world_size, "mpi", persistent=False, start_method=start_method()[0]
        )

    def _start(self, **how):
        env = os.environ.items()
        return LaunchedProcesses(
            self.world_size,
            "distlab.engines.mpi_rank:main",
            host=self._command,
            number="OMPI_COMM_WORLD_RANK",
            environment={k: v for k, v in env if not k.startswith(_FOREIGN)},
            **how,
        )

    def _command(self, folder):
        return [
            _mpirun(),
            *("-n", str(self.world_size)),
            "--allow-run-as-root",
            *("--map-by", ":OVERSUBSCRIBE"),
            *("--bind-to", "none"),
            *("--prtemca", "prte_tmpdir_base", folder),
            *("--mca", "pml", "ob1"),  # messages by the transports of the next line
            *("--mca", "btl", "self,sm"),  # shared memory, and none of the network
            *("--mca", "btl_sm_backing_directory", folder),
            *("--mca", "mpi_yield_when_idle", "1"),
            *("--mca", "opal_signal", ""),  # distlab reports a crash, not MPI
        ]
