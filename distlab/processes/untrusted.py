"""Untrusted processes: their owner limits all they send, and never waits for them.

Bytes from a process are read a piece at a time and up to a limit, and memory is
allocated only for bytes that have arrived, whatever length the frame announced. Frames
to a process are buffered here until it reads them.
"""

import selectors
import socket
from collections.abc import Sequence
from typing import NamedTuple

from distlab.errors import ProcessServerFailed
from distlab.processes.group import Processes
from distlab.processes.wire import LENGTH, Disconnected

__all__ = ["UntrustedProcesses", "Violation"]

MOST_FRAME_BYTES = 2**25
_PIECE_BYTES = 2**18


class Violation(NamedTuple):
    """A breach of the limits by a process: `why` describes it."""

    index: int
    why: str


class UntrustedProcesses(Processes):
    """Processes that can be hostile; see `Processes`. There are none before `start`.

    modules: the imports of `also`, which only some groups need.

    If a peer dies: as with `Processes`. One that sends too much is reported as
    `Violation`, once, and ignored from then on.
    """

    def __init__(self, entry: str, *, also: Sequence[str] = (), **how):
        self.modules = also
        self._allowance, self._unsent, self._muted = 0, {}, set()
        self._at_work = 0
        super().__init__(0, entry, also=also, **how)

    def start(self, count: int, allowance_bytes: int) -> None:
        """Make the first `count` processes the active ones; start the missing ones.

        Events of the others are dropped.
        allowance_bytes: the most bytes that each may send in all from now on.

        Raises: as `Processes` does.
        """
        self._allowance, self._at_work = allowance_bytes, count
        for reader in self._readers.values():
            reader.left = allowance_bytes
        try:
            for index in range(len(self.pids), count):
                self.pids.append(None)
                self._start(index, *self._start_arguments)
        except OSError as error:
            raise self._server.failure() from error

    def whole(self) -> bool:
        """Return True if all are alive, none is muted, and none has unread frames.

        Frames that they have sent without a request are dropped.
        """
        try:
            self.poll(0)
        except ProcessServerFailed:
            return False
        all_there = len(self.alive) == len(self.pids)
        return all_there and not self._muted and not self._unsent

    def post(self, index: int, payload: bytes) -> None:
        """Send one frame, now or, where the process does not read, in later polls."""
        unsent = self._unsent.setdefault(index, bytearray())
        unsent += LENGTH.pack(len(payload)) + payload
        self._write(index)

    def poll(self, timeout_s: float) -> list:
        """Return the new events of the active processes."""
        happened = super().poll(timeout_s)
        return [what for what in happened if what.index < self._at_work]

    def _write(self, index):
        unsent, channel = self._unsent.get(index), self._channels[index]
        if unsent is None:
            return
        try:
            del unsent[: channel.send(unsent, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            pass  # it has not read what came before
        except OSError:
            unsent.clear()  # its end is on its way
        if not unsent:
            del self._unsent[index]
        interest = selectors.EVENT_READ | selectors.EVENT_WRITE * bool(unsent)
        try:
            self._selector.modify(channel, interest, index)
        except KeyError:
            pass  # read to its end already

    def _open_channels(self, index):
        theirs = super()._open_channels(index)
        self._readers[index] = _Reader(self._channels[index], self._allowance)
        return theirs

    def _take(self, source):
        self._write(source)
        happened = super()._take(source)
        why = self._readers[source].why
        if why and source not in self._muted:
            self._muted.add(source)
            happened.append(Violation(source, why))
        return happened


class _Reader:
    """A reader of frames from a socket, one piece of at most 256 KiB at a time.

    left: the bytes that may still arrive. why: the breach of a limit, "" if none.
    """

    def __init__(self, sock, allowance):
        self._sock, self.left = sock, allowance
        self._buffer = bytearray()
        self.why = ""

    def read(self) -> list[bytearray]:
        """Return the frames that are complete with the next piece.

        Raises: Disconnected if the other end is gone, or has breached a limit.
        """
        if self.why:
            raise Disconnected(self.why)
        try:
            piece = self._sock.recv(_PIECE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            piece = b""
        if not piece:
            raise Disconnected("end of stream")
        self.left -= len(piece)
        self._buffer += piece
        frames = []
        while len(self._buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer)
            end = LENGTH.size + length
            if length > MOST_FRAME_BYTES or self.left < 0:
                self.why = f"a message of {length:,} bytes"
                if length <= MOST_FRAME_BYTES:
                    self.why = "more bytes than a world may send"
                break
            if len(self._buffer) < end:
                break
            frames.append(self._buffer[LENGTH.size : end])
            del self._buffer[:end]
        return frames
