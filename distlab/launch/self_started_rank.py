"""The inside of a rank that a script starts itself: with mp.spawn, mp.Process or fork.

    script's process ── fork, or a new interpreter ──▶ init_process_group(rank, size)
                                                          │
        launcher ◀── notes, stacks, end: files of a folder ──┘

A fork inherits the hooks. A new interpreter gets them before it imports the script: the
data that multiprocessing sends ahead sets them up as it is read. The launcher's side is
`self_started`.
"""

import faulthandler
import functools
import inspect
import itertools
import os
import signal
import sys
from multiprocessing import spawn, util
from types import FrameType

import torch.distributed as dist
from torch.distributed import device_mesh, distributed_c10d
from torch.distributed.rendezvous import _rendezvous_handlers

from distlab.comm import Comm
from distlab.launch.collective_hooks import watch
from distlab.launch.outcome import outcome_of
from distlab.launch.rank import describe
from distlab.processes.child import STACKS_SIGNAL
from distlab.recorder import BlockLayout, Recorder

__all__ = ["PresentComm", "begin", "described_end", "notes_file", "quiet"]

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_PREPARED = (  # the interpreter may not find the package before it got its path
    "__import__('sys').path.append({0!r}) or __import__('importlib').import_module("
    "'distlab.launch.self_started_rank').begin({1!r})"
)


class PresentComm:
    """The Comm of this process, over its present default process group.

    settings: "folder" for the notes of ranks that the script starts, "world_size" of
    the launch, and "cpu", whether a CPU stands in for GPUs.
    comm: of a launched rank; a fork or a new interpreter begins without one.
    """

    def __init__(self, settings: dict, comm: Comm | None = None):
        self._settings, self._comm, self._world = settings, comm, None
        self.launched, self.attempts = comm is not None, itertools.count()
        self.leave = watch(self)
        os.register_at_fork(after_in_child=self._forked)
        _replace_init(self)
        prepare = spawn.get_preparation_data
        spawn.get_preparation_data = functools.wraps(prepare)(
            lambda name: prepare(name) | {"distlab": _Prepared(settings)}
        )

    def __call__(self) -> Comm | None:
        """Return the Comm; None if this process is no rank."""
        if self._comm and self._world is not dist.group.WORLD:
            self._world = dist.group.WORLD
            self._comm.joined()
        return self._comm

    def _forked(self):
        self._comm = self._world = None
        self.launched = False

    def enter(self, rank: int, world_size: int) -> Comm | None:
        """Return the Comm of the group that init_process_group is called for.

        rank, world_size: as the script or the environment has them.

        Raises: ValueError if they contradict the launch.
        """
        if not self.launched:
            return self._start_own(rank, world_size)
        comm = self._comm
        if world_size != comm.world_size:
            raise ValueError(
                f"init_process_group(world_size={world_size}), but distlab launch "
                f"started {comm.world_size} ranks; -n {world_size} starts as many."
            )
        if rank != comm.rank:
            raise ValueError(
                f"init_process_group(rank={rank}) in the process that was started as "
                f"rank {comm.rank}: take rank=int(os.environ['RANK'])."
            )
        return comm

    def _start_own(self, rank, world_size):
        """Become a rank of a world that the script started, if the launch follows."""
        known = self._comm and (self._comm.rank, self._comm.world_size)
        if known == (rank, world_size):
            return self._comm
        if self._settings["world_size"] > 1:
            words = (
                f"This script starts {world_size} ranks itself. They are not watched, "
                "and may collide; `distlab launch -n 1` runs it once, and watches them."
            )
            if rank == 0:
                print(words, file=sys.stderr, flush=True)
            return None
        for number in itertools.count():
            place = f"{self._settings['folder']}/{world_size}-{number}"
            try:
                self._stacks = open(f"{place}-{rank}.stacks", "x")  # noqa: SIM115
            except FileExistsError:  # of an earlier world of this size
                continue
            break
        file = notes_file(f"{place}.notes", world_size)
        recorder = Recorder(rank, world_size, file)
        os.close(file)
        recorder.note_pid()
        faulthandler.register(STACKS_SIGNAL, file=self._stacks, all_threads=True)
        self._comm = Comm(rank, world_size, recorder=recorder)
        self._comm.started.besides = sys.maxsize
        util.Finalize(None, self._end, (f"{place}-{rank}.end",), exitpriority=100)
        return self._comm

    def _end(self, place):
        """Write how this process ends; called while its exception, if any, is up."""
        error = sys.exc_info()[1]
        trace = error and error.__traceback__
        left = isinstance(error, SystemExit)
        cause = error.__context__ or error if left else error  # as mp.spawn does

        def work():
            if error and not (left and error.code in (None, 0)):
                context = cause.__context__
                try:
                    raise cause
                finally:
                    cause.__context__ = context  # else it is `error` now

        traces = [(each, each.__traceback__) for each in (error, cause) if each]
        how = {"describe": described_end, "leave": self.leave}
        frame = outcome_of(work, self._comm.recorder, **how)
        for each, trace in traces:
            each.__traceback__ = trace
        with open(place + "~", "wb") as file:
            file.write(frame)
        os.rename(place + "~", place)


class _Prepared:
    """What sets up the hooks in a new interpreter, as it is unpickled there."""

    def __init__(self, settings):
        self._settings = settings

    def __reduce__(self):
        return eval, (_PREPARED.format(_PACKAGES, self._settings),)


def begin(settings: dict) -> None:
    """Set up this process, which multiprocessing has started anew for a script."""
    signal.signal(signal.SIGINT, quiet)
    sys.stdout.reconfigure(line_buffering=True)
    if settings["cpu"]:
        from distlab.launch.cuda_on_cpu import install

        install(settings["world_size"])
    PresentComm(settings)


def notes_file(place: str, world_size: int) -> int:
    """Return a descriptor of the file of a world's notes, made if need be."""
    file = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, BlockLayout(world_size).total)
    return file


def quiet(number: int, frame: FrameType | None) -> None:
    """Do nothing on Ctrl-C: INTERRUPT_SIGNAL comes once the launcher has the stacks."""


def described_end(error: BaseException) -> dict:
    """Return the facts of an exception, and the exit status that it leads to."""
    facts = describe(error)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 1
        facts |= {"exit_status": code}
    return facts


def _replace_init(present):
    """Make init_process_group a recorded call of the ranks that the script means."""
    init = distributed_c10d.init_process_group
    signature = inspect.signature(init)

    @functools.wraps(init)
    def init_process_group(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        rank, size = (
            int(os.environ.get(name.upper(), -1))
            if given.get(name, -1) == -1
            else given[name]
            for name in ("rank", "world_size")
        )
        comm = None if min(rank, size) < 0 else present.enter(rank, size)
        if comm is None:
            return init(*args, **kwargs)
        everyone = ",".join(map(str, range(comm.world_size))) + "#0"
        comm.recorder.knows(everyone)
        words = "init_process_group()"
        with comm.meeting("collective", words, words, everyone):
            return init(*args, **kwargs)

    for module in (distributed_c10d, dist, device_mesh):
        module.init_process_group = init_process_group


def meet_in_a_file(place: str, present: PresentComm) -> None:
    """Make env:// meet in the file `place`, for the ranks that were launched."""
    from_environment = _rendezvous_handlers["env"]

    def meet(url, *args, **kwargs):
        if not present.launched:
            return (yield from from_environment(url, *args, **kwargs))
        comm = present()
        store = dist.FileStore(place, comm.world_size)
        prefix = f"attempt {next(present.attempts)}"
        store = dist.PrefixStore(prefix, store)
        port = os.environ.get("MASTER_PORT", "")
        if (first := store.compare_set("port", "", port).decode()) != port:
            print(
                f"Warning: MASTER_PORT is {port} on rank {comm.rank}, and {first} on "
                "another: under torchrun they would not meet.",
                file=sys.stderr,
            )
        yield store, comm.rank, comm.world_size

    _rendezvous_handlers["env"] = meet
