"""The inside of a rank that runs a script, as under torchrun, with its events recorded.

The script is its `__main__`, makes its own process group, and may end in any way. Its
`env://` rendezvous uses a file: the store of torchrun listens on every interface.
"""

import atexit
import io
import itertools
import json
import os
import runpy
import signal
import sys
import threading
import traceback

import torch
import torch.distributed as dist
from torch.distributed import device_mesh, distributed_c10d
from torch.distributed.rendezvous import _rendezvous_handlers

from distlab.comm import Comm
from distlab.faults import Hang, Kill
from distlab.launch.collective_hooks import watch
from distlab.launch.outcome import outcome_of
from distlab.launch.rank import END, describe, pin_loopback, torchrun_names
from distlab.processes import Child
from distlab.recorder import Recorder

__all__ = ["main"]

_FAULTS = {"Kill": Kill, "Hang": Hang}
_ELASTIC = {"RUN_ID": "none", "RESTART_COUNT": "0", "MAX_RESTARTS": "0"}
_ELASTIC |= {"USE_AGENT_STORE": "False"}


def main(child: Child) -> None:
    """Run one rank of a script's world, from its settings to its end."""
    settings = json.loads(child.receive())
    rank, world_size = child.index, settings["world_size"]
    block, meeting, stdin = child.shared
    names = {"ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(world_size)}
    names |= {"GROUP_WORLD_SIZE": "1", "ROLE_NAME": "default"}
    names |= {f"TORCHELASTIC_{key}": value for key, value in _ELASTIC.items()}
    os.environ.update(torchrun_names(rank, world_size) | settings["names"] | names)
    if rank == 0:  # as under mpirun; the others find it empty
        os.dup2(stdin, 0)
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    torch.set_num_threads(settings["threads"])
    torch.default_generator.seed()  # under torchrun each rank draws its own numbers
    comm = Comm(rank, world_size, recorder=Recorder(rank, world_size, block))
    comm.started.besides = sys.maxsize  # a data loader's threads complete no collective
    comm.faults = [_FAULTS[name](*which) for name, *which in settings["faults"]]
    pin_loopback()
    _meet_in_a_file(settings["meeting_place"] or f"/proc/self/fd/{meeting}", comm)
    how = {"leave": watch(_Present(comm).comm), "describe": _described}
    child.send(json.dumps({"outcome": "ready"}).encode())
    child.receive()
    outcome = outcome_of(lambda: _run(settings), comm.recorder, **how)
    for number in (signal.SIGTERM, signal.SIGINT):  # the script's handlers are obsolete
        signal.signal(number, signal.SIG_DFL)
    child.send(outcome)
    while child.receive()[:1] != END:
        pass
    if dist.is_initialized():
        dist.destroy_process_group()


def _run(settings):
    """Run the script or module as Python's command line does, to its very end."""
    first, target = os.getpid(), settings["target"]
    sys.argv = [target, *settings["args"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if settings["module"]:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
            runpy.run_path(target, run_name="__main__")
    except SystemExit as leave:
        if leave.code not in (None, 0):
            if isinstance(leave.code, str):
                print(leave.code, file=sys.stderr)
            raise
    except BaseException as error:
        facts = describe(error)
        if not (facts["communication"] or facts["disagreement"]):  # diagnosed elsewhere
            _print_traceback()
        raise
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        if os.getpid() != first:  # a fork that the script made returns here, too
            os._exit(1 if sys.exc_info()[0] else 0)


def _print_traceback():
    """Print the traceback as Python does, from the script's own first frame on."""
    kind, error, trace = sys.exc_info()
    frame = trace
    while frame and frame.tb_frame.f_globals.get("__name__") != "__main__":
        frame = frame.tb_next
    traceback.print_exception(kind, error, frame or trace)


def _described(error):
    facts = describe(error)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 1
        facts |= {"exit_status": code}
    return facts


def _meet_in_a_file(place, comm):
    """Make env:// meet in the file `place`, and record each init_process_group."""
    attempts = itertools.count()

    def meet(url, **_):
        store = dist.FileStore(place, comm.world_size)
        prefix = f"attempt {next(attempts)}"
        yield dist.PrefixStore(prefix, store), comm.rank, comm.world_size

    _rendezvous_handlers["env"] = meet
    init = distributed_c10d.init_process_group
    everyone = ",".join(map(str, range(comm.world_size))) + "#0"

    def init_process_group(*args, **kwargs):
        comm.recorder.knows(everyone)
        words = "init_process_group()"
        with comm.meeting("collective", words, words, everyone):
            init(*args, **kwargs)

    for module in (distributed_c10d, dist, device_mesh):
        module.init_process_group = init_process_group


class _Present:
    """The Comm of this rank, over the present default process group."""

    def __init__(self, comm):
        self._comm, self._world = comm, None

    def comm(self):
        if self._world is not dist.group.WORLD:
            self._world = dist.group.WORLD
            self._comm.joined()
        return self._comm
