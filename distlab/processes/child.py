"""The inside of a started process: its surroundings, its channel, its entry point."""

import ctypes
import faulthandler
import importlib
import io
import json
import os
import random
import signal
import socket
import sys
import types
from itertools import pairwise

from distlab.processes.wire import Disconnected, FrameReader, receive_frame, send_frame

__all__ = [
    "INTERRUPT_SIGNAL",
    "STACKS_SIGNAL",
    "Child",
    "die_with",
    "execute",
    "forget_randomness",
    "inside",
    "keep_only",
    "live",
    "on_its_own",
]

STACKS_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2 - 7) + 7
# The owner's Ctrl-C: that of a terminal comes before anyone could ask for the stacks.
INTERRUPT_SIGNAL = STACKS_SIGNAL - 1
_PR_SET_PDEATHSIG = 1

_current = None


def inside() -> "Child | None":
    """Return the `Child` that this process is, or None if the user started it."""
    return _current


def on_its_own() -> None:
    """Make `inside` return None, as in a process that the user started."""
    global _current
    _current = None


class Child:
    """A started process's own side: its index, channel and shared descriptors.

    index: its number among the processes started together.
    shared: open file descriptors that all of them received, in the owner's order.
    """

    def __init__(self, index: int, channel: socket.socket, shared: list[int]):
        self.index = index
        self.shared = shared
        self._channel = channel
        self._reader = FrameReader(channel)

    def fileno(self) -> int:
        """Return the channel's descriptor, for a caller with its own selector."""
        return self._channel.fileno()

    def received(self) -> list[bytearray]:
        """Return the frames that have arrived, without waiting for one.

        Ends this process when the owner is gone. After a call of this, `receive` may
        not be called.
        """
        try:
            return self._reader.read()
        except Disconnected:
            os._exit(0)

    def receive(self) -> bytearray:
        """Return the owner's next frame; ends this process when the owner is gone."""
        try:
            return receive_frame(self._channel)
        except Disconnected:
            os._exit(0)

    def send(self, payload: bytes) -> None:
        """Send one frame to the owner; ends this process when the owner is gone."""
        try:
            send_frame(self._channel, payload)
        except Disconnected:
            os._exit(0)


def live(request: dict, descriptors: list[int]) -> None:
    """Set up this process as `request` specifies, call its entry point, and end it."""
    global _current
    die_with(os.getppid())
    channel, output, stacks, *shared = keep_only(descriptors)
    _take_output(output)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if request["group"] is not None:
        os.setpgid(0, request["group"])
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:] = request["path"]
    if request["directory"] is not None:
        os.chdir(request["directory"])
    forget_randomness()
    # This process must not see the module that the server ran as its `__main__`.
    sys.modules["__main__"] = types.ModuleType("__main__")
    _current = Child(request["index"], socket.socket(fileno=channel), shared)
    module, _, name = request["entry"].partition(":")
    getattr(importlib.import_module(module), name)(_current)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def execute(request: dict, descriptors: list[int]) -> None:
    """Replace this fork by a fresh interpreter that runs `live` with `request`."""
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    code = (
        "import json, sys; "
        "request, descriptors, sys.path[:] = json.loads(sys.argv[1]); "
        "from distlab.processes.child import live; live(request, descriptors)"
    )
    argument = json.dumps([request, descriptors, [p for p in sys.path if p]])
    seed = {k: v for k, v in request["environment"].items() if k == "PYTHONHASHSEED"}
    os.execve(sys.executable, [sys.executable, "-c", code, argument], os.environ | seed)


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def keep_only(descriptors: list[int]) -> list[int]:
    """Close all other descriptors above 2: a copied session socket keeps it open."""
    limit = min(os.sysconf("SC_OPEN_MAX"), 2**20)
    for kept, following in pairwise(sorted({2, *descriptors, limit})):
        os.closerange(kept + 1, following)
    return descriptors


def _take_output(output):
    """Redirect stdout and stderr to the pipe, buffered by line; stdin is empty."""
    silence = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((silence, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(silence)
    os.close(output)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _lines_to(1)
    sys.stderr = _lines_to(2)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def _lines_to(descriptor):
    raw = open(descriptor, "wb", closefd=False)  # noqa: SIM115
    how = {"encoding": "utf-8", "errors": "replace", "line_buffering": True}
    return io.TextIOWrapper(raw, **how)


def forget_randomness() -> None:
    """Reseed random and numpy, which forks would otherwise all start alike."""
    random.seed()
    if "numpy.random" in sys.modules:  # numpy itself imports it at its first use
        sys.modules["numpy.random"].seed()
