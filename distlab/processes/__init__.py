"""Life cycle of launched processes: start, output, stacks, exit, stop.

    kernel                     process server                 processes
    ──────                     ──────────────                 ─────────
    Processes ── session ────▶ fork() ─────────────────────▶  entry(child)
        ▲    ◀── "exited 9" ── waitpid()                          │
        ├──────────────────── channel: frames both ways ──────────┤
        └──────────────────── output: one pipe each ──────────────┘

The server is started once and imports what every process will need (torch takes
seconds) and nothing of the user's; each process is then a fork of it, in
milliseconds. Nothing listens anywhere: every connection is an inherited pair of
sockets. A session is the life of its processes: when it closes, for whatever reason,
the server kills them and everything they started. When the kernel dies, every
session closes. Where a program like mpirun must start the processes itself,
`LaunchedProcesses` gives them the same connections and the same end. While a submission
is checked, a process in its sandbox is the server (`distlab.sandbox`). This package has
no notion of torch, ranks or tasks.
"""

import sys

if sys.platform == "win32":
    raise ImportError(
        "distlab starts its processes with fork and Unix sockets, which Windows does "
        "not have. Install it in WSL 2, and open the notebook from there."
    )

from distlab.processes.child import Child, inside, on_its_own
from distlab.processes.externally_launched import LaunchedProcesses
from distlab.processes.group import Ended, FrameReceived, Lines, Processes
from distlab.processes.interrupts import Interrupts
from distlab.processes.memory import anonymous_file
from distlab.processes.server_handle import warm_up
from distlab.processes.slowdown import Slowdown
from distlab.processes.untrusted import UntrustedProcesses, Violation
from distlab.processes.wire import Disconnected

__all__ = [
    "Child",
    "Disconnected",
    "Ended",
    "FrameReceived",
    "Interrupts",
    "LaunchedProcesses",
    "Lines",
    "Processes",
    "Slowdown",
    "UntrustedProcesses",
    "Violation",
    "anonymous_file",
    "inside",
    "on_its_own",
    "warm_up",
]
