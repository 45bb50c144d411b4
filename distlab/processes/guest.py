"""The inside of a guest: it comes in by the owner's door, and is watched from there.

A guest is two processes. The one that the host started stays what it is and waits for
the other, its fork, which lives as the owner says. So the owner hears how a guest
ended, and the host does not: of a guest that fails it learns nothing, and leaves the
others alone until the owner has seen what they were doing.

The host itself is an ordinary process of the server, until it becomes the host.
"""

import json
import os
import signal
import socket
import traceback

from distlab.processes.child import Child, die_with, live
from distlab.processes.wire import receive_request, send_frame

__all__ = ["come_in", "host"]


def host(child: Child) -> None:
    """Become the host, whose command is the owner's one frame."""
    command = json.loads(child.receive())
    os.execvp(command[0], command)


def come_in(door: str, number: str) -> None:
    """Be the guest whose index is in the environment variable `number`; never returns.

    door: path of the socket at which the owner waits.
    """
    die_with(os.getppid())
    visit = socket.socket(socket.AF_UNIX)
    visit.connect(door)
    _tell(visit, index=int(os.environ[number]))
    payload, descriptors = receive_request(visit)
    request = json.loads(payload) | {"environment": dict(os.environ)}
    first, pid = os.getpid(), os.fork()
    if pid == 0:
        _live(first, request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    _tell(visit, pid=pid)
    _, status = os.waitpid(pid, 0)
    _tell(visit, ended=os.waitstatus_to_exitcode(status))
    if status:
        signal.pause()  # until the owner ends the host
    os._exit(0)


def _live(first, request, descriptors):
    die_with(first)
    try:
        live(request, descriptors)
    except BaseException:
        traceback.print_exc()  # by now into the guest's own output
    finally:
        os._exit(1)


def _tell(visit, **news):
    send_frame(visit, json.dumps(news).encode())
