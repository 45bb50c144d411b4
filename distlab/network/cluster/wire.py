"""Frames between nodes and the switch, and generations of links in shared memory.

    node ── DEPARTURE, message ──▶ switch ── ARRIVAL, message or call ──▶ node
                                     │                                     │
                                     └─ raises ─▶ generation of the link ◀─┘ compares

A message that has passed the switch may wait in its receiver's socket when a partition
begins. So each link has a generation, in memory that all processes share. The switch
raises it as it cuts the link, and messages of an earlier generation are dropped.
"""

import mmap
import os
import select
import socket
import struct

from distlab.processes.wire import LENGTH, FrameReader

__all__ = [
    "ARRIVAL",
    "DEPARTURE",
    "FROM_CLIENT",
    "FROM_NODE",
    "FrameSocket",
    "LinkGenerations",
    "address_in",
]

# Header of a message from a node: receiver, number, time of sending.
DEPARTURE = struct.Struct("<HQd")
# Header of a message from the switch: kind (from a node or a client), sender, number,
# and the generation of the link; of a client's, its attempt, its request, and 0.
ARRIVAL = struct.Struct("<BHQI")
FROM_NODE, FROM_CLIENT = 0, 1


def address_in(folder: str) -> str:
    """Return the path of the socket at which the switch listens for nodes."""
    return os.path.join(folder, "switch")


class LinkGenerations:
    """The count of cuts of each link between `count` nodes, in shared memory."""

    def __init__(self, descriptor: int, count: int):
        self.descriptor, self.count = descriptor, count
        size = 4 * count * count
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._memory = mmap.mmap(descriptor, size)
        self._cuts = memoryview(self._memory).cast("I")

    def of(self, src: int, dst: int) -> int:
        """Return the number of times that the link from `src` to `dst` was cut."""
        return self._cuts[src * self.count + dst]

    def cut(self, src: int, dst: int) -> None:
        """Raise the link's generation."""
        self._cuts[src * self.count + dst] += 1

    def close(self) -> None:
        """Release the memory."""
        self._cuts.release()
        self._memory.close()
        os.close(self.descriptor)


class FrameSocket:
    """One end of a Unix socket between a node and the switch; it never blocks.

    waiting: bytes still to be sent. Frames are sent together, at the end of a round of
    events: a system call that wakes a process costs more than all else about a frame.
    """

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.waiting = bytearray()
        self.read = FrameReader(sock).read  # the frames that are here by now
        sock.setblocking(False)

    def fileno(self) -> int:
        """Return the socket's descriptor, for polling."""
        return self.sock.fileno()

    def put(self, payload: bytes) -> None:
        """Add a frame to those that `flush` sends."""
        self.waiting += LENGTH.pack(len(payload)) + payload

    def flush(self) -> None:
        """Send waiting bytes, as many as there is room for.

        If the other end is closed, they are dropped.
        """
        if self.waiting:
            try:
                del self.waiting[: self.sock.send(self.waiting)]
            except BlockingIOError:
                pass
            except OSError:
                self.waiting.clear()

    def finish(self) -> None:
        """Wait until everything is sent, or the other end is gone."""
        self.flush()
        while self.waiting:
            select.select([], [self.sock], [])
            self.flush()

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()
