"""The inside of a rank that runs a script: as under torchrun, and its notes are kept.

The script is its `__main__`, makes its own process group, and may end as it likes. Its
`env://` meets in a file: the store of torchrun listens on every interface.
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
from torch.distributed import distributed_c10d
from torch.distributed.rendezvous import _rendezvous_handlers

from distlab.comm import Comm
from distlab.faults import Hang, Kill
from distlab.launch.outcome import outcome_of
from distlab.launch.rank import END, describe, pin_loopback, torchrun_names
from distlab.launch.witness import watch
from distlab.processes import Child
from distlab.recorder import Recorder

__all__ = ["main"]

_FAULTS = {"Kill": Kill, "Hang": Hang}


def main(child: Child) -> None:
    """Be one rank of a script's world, from its settings to its end."""
    settings = json.loads(child.receive())
    rank, world_size = child.index, settings["world_size"]
    block, meeting, stdin = child.shared
    os.environ.update(torchrun_names(rank, world_size) | settings["names"])
    if rank == 0:  # as under mpirun; the others find it empty
        os.dup2(stdin, 0)
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    torch.set_num_threads(settings["threads"])
    comm = Comm(rank, world_size, recorder=Recorder(rank, world_size, block))
    comm.started.besides = sys.maxsize  # threads of a data loader free no collective
    comm.faults = [_FAULTS[name](*which) for name, *which in settings["faults"]]
    pin_loopback()
    _meet_in_a_file(settings["meeting_place"] or f"/proc/self/fd/{meeting}", comm)
    watch(lambda: comm if dist.is_initialized() else None)
    child.send(json.dumps({"outcome": "ready"}).encode())
    first = os.getpid()
    child.receive()
    outcome = outcome_of(lambda: _run(settings), comm.recorder, describe=_described)
    if os.getpid() != first:  # a fork that the script made, which came out here
        os._exit(0 if b'"returned"' in outcome.partition(b"\n")[0] else 1)
    child.send(outcome)
    while child.receive()[:1] != END:
        pass
    if dist.is_initialized():
        dist.destroy_process_group()


def _run(settings):
    """Run the script or module as Python's command line does, to its very end."""
    target, sys.argv = settings["target"], [settings["target"], *settings["args"]]
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
        if not describe(error)["communication"]:  # which is an echo of another's end
            _print_traceback()
        raise
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()


def _print_traceback():
    """Print it as Python does, from the script's own first frame on."""
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
    """Have env:// meet in a file, another one each time, and Comm know the group."""
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
        comm.joined()

    distributed_c10d.init_process_group = dist.init_process_group = init_process_group
