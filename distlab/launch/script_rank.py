"""The inside of a rank that runs a script, as under torchrun, with its events recorded.

The script is its `__main__`, makes its own process group, and may end in any way. Its
`env://` rendezvous uses a file: the store of torchrun listens on every interface.
"""

import atexit
import io
import json
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from importlib.machinery import SourceFileLoader
from itertools import pairwise

import torch
import torch.distributed as dist

from distlab.calls.failure_location import learners_frames
from distlab.comm import Comm
from distlab.faults import Hang, Kill
from distlab.launch.outcome import outcome_of
from distlab.launch.rank import END, describe, pin_loopback, torchrun_names
from distlab.launch.self_started_rank import (
    PresentComm,
    described_end,
    meet_in_a_file,
    quiet,
)
from distlab.processes import Child
from distlab.processes.child import INTERRUPT_SIGNAL
from distlab.recorder import ENDING, Recorder

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
    if settings["cpu"]:
        from distlab.launch.cuda_on_cpu import install

        install(world_size)
    present = PresentComm(settings["own"], comm)
    meet_in_a_file(settings["meeting_place"] or f"/proc/self/fd/{meeting}", present)
    how = {"leave": present.leave, "describe": described_end}
    child.send(json.dumps({"outcome": "ready"}).encode())
    child.receive()
    end = {}
    how["facts"] = lambda: end
    outcome = outcome_of(lambda: _run(settings, end, comm), comm.recorder, **how)
    for number in (
        signal.SIGTERM,
        INTERRUPT_SIGNAL,
    ):  # the script's handlers are obsolete
        signal.signal(number, signal.SIG_DFL)
    child.send(outcome)
    while child.receive()[:1] != END:
        pass
    if dist.is_initialized():
        dist.destroy_process_group()


def _run(settings, end, comm):
    """Run the script or module as Python's command line does, to its very end.

    end: gets how it left, if it did so before its last line.
    """
    first, target = os.getpid(), settings["target"]
    sys.argv = [target, *settings["args"]]
    signal.signal(signal.SIGINT, quiet)
    signal.signal(INTERRUPT_SIGNAL, _interrupt)
    try:
        if settings["module"]:
            sys.path[0] = os.getcwd()  # in the place of the launcher's own folder
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.realpath(target))
            _run_file(os.path.abspath(target))
    except SystemExit as leave:
        if leave.code not in (None, 0):
            if isinstance(leave.code, str):
                print(leave.code, file=sys.stderr)
            raise
        end["left"] = _left_by(leave)
    except BaseException as error:
        facts = describe(error)
        told = facts["communication"] or facts["disagreement"]  # in the diagnosis
        if not told and not isinstance(error, KeyboardInterrupt):
            _print_traceback()
        raise
    finally:
        others = [t.name for t in threading.enumerate() if not t.daemon][1:]
        if others:
            comm.recorder.point("mark", f"its thread {', '.join(others[:3])}")
            comm.recorder.raise_flag(ENDING)
        threading._shutdown()
        atexit._run_exitfuncs()
        if os.getpid() != first:  # a fork that the script made returns here, too
            os._exit(1 if sys.exc_info()[0] else 0)


def _run_file(place):
    """Run a file as `python place` does: it is and stays the module `__main__`."""
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = place, __builtins__
    main.__loader__, main.__annotations__ = SourceFileLoader("__main__", place), {}
    main.__cached__ = None
    sys.modules["__main__"] = main
    with io.open_code(place) as file:
        code = compile(file.read(), place, "exec")
    exec(code, vars(main))


def _left_by(leave):
    """Return the call of sys.exit: its line, and the signal that it handles."""
    frames = list(traceback.walk_tb(leave.__traceback__))
    handlers = {}
    for number in signal.Signals:
        code = getattr(signal.getsignal(number), "__code__", None)
        handlers |= {code: number.name} if code else {}
    own = [
        (f, n) for f, n in frames if learners_frames([(f.f_code.co_filename, n, "")])
    ]
    said = f"sys.exit({leave.code or 0})"
    if own:
        said += f" at line {own[-1][1]}"
    for (_, line), (frame, _) in pairwise(own):
        if frame.f_code in handlers:
            named = handlers[frame.f_code]
            said += f", in its handler of {named}, while at line {line}"
    return said


def _interrupt(number, frame):
    """Do as on Ctrl-C: the launcher has told who waits for whom."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is quiet:
        raise KeyboardInterrupt
    if callable(handler):
        handler(signal.SIGINT, frame)


def _print_traceback():
    """Print the traceback as Python does, from the script's own first frame on."""
    kind, error, trace = sys.exc_info()
    frame = trace
    while frame and frame.tb_frame.f_globals.get("__name__") != "__main__":
        frame = frame.tb_next
    traceback.print_exception(kind, error, frame or trace)
