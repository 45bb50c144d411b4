"""The inside of a watched rank: it notes what it does, in a folder that outlives it.

    folder/job/attempt-0/node/rank-3.notes    its region of the shared block, alone
                              rank-3.json     who it is, and how it ended
                              rank-3.stacks   what faulthandler writes on a signal

A rank sees no other rank's notes, so nothing is compared here: `distlab explain` does.
"""

import atexit
import contextlib
import faulthandler
import json
import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch.distributed as dist
from torch.distributed import device_mesh, distributed_c10d

from distlab.comm import Comm
from distlab.launch.collective_hooks import watch
from distlab.launch.rank import describe
from distlab.processes.child import STACKS_SIGNAL
from distlab.processes.child_processes import started_at
from distlab.recorder import Recorder, region_alone

__all__ = ["VERSION", "begin", "clock_name", "run_script"]

VERSION = 1  # of the files; another one is not read
_BEAT_S = 5.0
_WATCHED = "DISTLAB_WATCHED_BY"  # the process that is watched; its children are not
_RANKS = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
_RANKS += (("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))


def begin() -> None:
    """Note what this process does with torch.distributed, from here on.

    Its rank is the one that its launcher names, else that of init_process_group. A
    folder that cannot be written costs a line on stderr, and the job goes on.
    """
    if os.environ.get(_WATCHED) or multiprocessing.parent_process():
        return
    os.environ[_WATCHED] = str(os.getpid())
    for rank, world_size in _RANKS:
        if rank in os.environ and world_size in os.environ:
            _watch_as(int(os.environ[rank]), int(os.environ[world_size]))
            return
    _WatchedRank.wait_for_init()


def run_script() -> None:
    """Run the script of the command line as `__main__`, watched."""
    if len(sys.argv) < 2:
        sys.exit("python -m distlab.watch runs a script: name one, with its arguments.")
    module = sys.argv[1] == "-m"
    sys.argv[:] = sys.argv[2 if module else 1 :]
    begin()
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


def clock_name() -> str:
    """Return a name for the monotonic clock of this process: the boot it counts from.

    Containers of one machine may have their own, by a time namespace.
    """
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/time')}"
    return socket.gethostname()


def _watch_as(rank, world_size):
    try:
        _WatchedRank(rank, world_size)
    except (OSError, ValueError) as error:
        said = f"distlab.watch: no notes of rank {rank}: {error}. The job goes on."
        print(said, file=sys.stderr, flush=True)


class _LonelyComm(Comm):
    """A Comm that knows of no other rank's notes: it only writes its own."""

    def check_agreement(self, number, words, group=""):
        """Do nothing: the reader compares."""

    def _has_partner(self, side):
        return True


class _WatchedRank:
    """The notes of this process, and the files they are in."""

    def __init__(self, rank, world_size):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        self._place = folder / f"rank-{rank}"
        layout = region_alone(world_size)
        with open(self._place.with_suffix(".notes"), "w+b") as notes:
            # A page that the disk has no room for would end the process when written.
            os.posix_fallocate(notes.fileno(), 0, layout.total)
            self._recorder = Recorder(
                rank, world_size, notes.fileno(), layout=layout, overwrite=True
            )
        self._recorder.begin()
        self._process, self._world = os.getpid(), None
        self._about = {
            "distlab_watch": VERSION,
            "rank": rank,
            "world_size": world_size,
            "process": self._process,
            "process_started": started_at(self._process),
            "node": socket.gethostname(),
            "clock": clock_name(),
            "began": time.time(),
            "script": sys.argv[0],
            "ended": None,
        }
        self._write()
        self._stacks = open(self._place.with_suffix(".stacks"), "wb")  # noqa: SIM115
        faulthandler.register(STACKS_SIGNAL, file=self._stacks, all_threads=True)
        self._comm = _LonelyComm(rank, world_size, recorder=self._recorder)
        self._comm.started.besides = sys.maxsize
        self._leave = watch(self._present)
        _note_init(self._comm)
        self._until_its_end()

    def _present(self):
        """Return the Comm of this rank, over the present default process group."""
        if os.getpid() != self._process:
            return None
        if self._world is not dist.group.WORLD:
            self._world = dist.group.WORLD
            self._comm.joined()
        return self._comm

    @staticmethod
    def wait_for_init():
        """Begin with the first init_process_group, which says the rank."""
        init = distributed_c10d.init_process_group

        def init_process_group(*args, **kwargs):
            _replace_init(init)
            init(*args, **kwargs)
            _watch_as(dist.get_rank(), dist.get_world_size())

        _replace_init(init_process_group)

    def _until_its_end(self):
        hook = sys.excepthook

        def raised(kind, error, trace):
            self._ended("raised", describe(error))
            hook(kind, error, trace)

        sys.excepthook = raised
        atexit.register(lambda: self._ended("returned", {}))
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self):
        while os.getpid() == self._process and self._about["ended"] is None:
            with contextlib.suppress(OSError):
                os.utime(self._place.with_suffix(".json"))
            time.sleep(_BEAT_S)

    def _ended(self, how, details):
        if os.getpid() != self._process or self._about["ended"]:
            return
        self._leave(False)
        self._recorder.now("done" if how == "returned" else "raised")
        self._about["ended"] = {"how": how, "time": time.monotonic(), **details}
        with contextlib.suppress(OSError):
            self._write()

    def _write(self):
        """Write who this rank is; a reader sees the old file or the new one."""
        text = json.dumps(self._about, default=str)
        made, name = tempfile.mkstemp(dir=self._place.parent, prefix=".rank-")
        with open(made, "w") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, self._place.with_suffix(".json"))


def _note_init(comm):
    """Record init_process_group as a collective of all ranks."""
    init = distributed_c10d.init_process_group
    everyone = ",".join(map(str, range(comm.world_size))) + "#0"

    def init_process_group(*args, **kwargs):
        comm.recorder.knows(everyone)
        words = "init_process_group()"
        with comm.meeting("collective", words, words, everyone):
            init(*args, **kwargs)

    _replace_init(init_process_group)


def _replace_init(call):
    for module in (distributed_c10d, dist, device_mesh):
        module.init_process_group = call


def _folder():
    """Return the folder of this node's ranks in this attempt of this job."""
    of = os.environ.get
    run = of("TORCHELASTIC_RUN_ID", "none")
    run = of("SLURM_JOB_ID") if run == "none" else run
    run = run or f"{of('MASTER_ADDR', 'job')}-{of('MASTER_PORT', '0')}"
    attempt = of("TORCHELASTIC_RESTART_COUNT") or of("SLURM_RESTART_COUNT") or "0"
    folder = Path(of("DISTLAB_WATCH") or "distlab-watch")
    return folder / run / f"attempt-{attempt}" / socket.gethostname()
