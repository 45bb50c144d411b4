"""The inside of a process that a host such as mpirun launches, and of the host itself.

A launched process is two. The one that the host started connects to the owner's
socket, forks, and waits for the fork, which runs the owner's entry point. So the owner
receives the exit status and the host does not: after a failure the host leaves the
other processes running until the owner has read their stacks.

The host is an ordinary process of the server until it executes the host's command.
"""

import json
import os
import signal
import socket
import traceback

from distlab.processes.child import Child, die_with, live
from distlab.processes.wire import receive_request, send_frame

__all__ = ["host", "join"]


def host(child: Child) -> None:
    """Execute the host's command, which the owner sends as one frame."""
    command = json.loads(child.receive())
    os.execvp(command[0], command)


def join(listener: str, number: str) -> None:
    """Connect to the owner and run its entry point; never returns.

    listener: path of the owner's socket. number: the variable with the index.
    """
    die_with(os.getppid())
    incoming = socket.socket(socket.AF_UNIX)
    incoming.connect(listener)
    _report(incoming, index=int(os.environ[number]))
    payload, descriptors = receive_request(incoming)
    request = json.loads(payload) | {"environment": dict(os.environ)}
    first, pid = os.getpid(), os.fork()
    if pid == 0:
        _live(first, request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    _report(incoming, pid=pid)
    _, status = os.waitpid(pid, 0)
    _report(incoming, ended=os.waitstatus_to_exitcode(status))
    if status:
        signal.pause()  # until the owner ends the host
    os._exit(0)


def _live(first, request, descriptors):
    die_with(first)
    try:
        live(request, descriptors)
    except BaseException:
        traceback.print_exc()  # by now into the process's own output
    finally:
        os._exit(1)


def _report(incoming, **event):
    send_frame(incoming, json.dumps(event).encode())
