"""`UntrustedProcesses`: their owner trusts nothing they send, and never waits for them.

What a process sends is read a piece at a time and up to a limit, and memory is taken
only for what has come, whatever length it announced. What is sent to a process waits
here, until it reads.
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
    """A process has sent what it may not: `why` says what."""

    index: int
    why: str


class UntrustedProcesses(Processes):
    """Processes that can be hostile; see `Processes`. There are none before `muster`.

    modules: what only some groups need, and these have.

    If a peer dies: as with `Processes`. One that sends too much is reported as
    `Violation`, once, and not heard any more.
    """

    def __init__(self, entry: str, *, also: Sequence[str] = (), **how):
        self.modules = also
        self._allowance, self._unsent, self._muted = 0, {}, set()
        self._at_work = 0
        super().__init__(0, entry, also=also, **how)

    def muster(self, count: int, allowance_bytes: int) -> None:
        """Have the first `count` at work from now on; start those that are not there.

        Of the others nothing is heard.
        allowance_bytes: how much one of them may send in all from now on.

        Raises: as `Processes` does.
        """
        self._allowance, self._at_work = allowance_bytes, count
        for reader in self._readers.values():
            reader.left = allowance_bytes
        try:
            for index in range(len(self.pids), count):
                self.pids.append(None)
                self._start(index, *self._equipment)
        except OSError as error:
            raise self._server.failure() from error

    def whole(self) -> bool:
        """Return whether all are there, were heard, and have read what they were sent.

        What they have sent without being asked is forgotten.
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
        """Return what happened to those that are at work."""
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

    def _equip(self, index):
        theirs = super()._equip(index)
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
    """Collects frames from a socket: at most a piece of it at a time.

    left: how many bytes may still come.
    """

    def __init__(self, sock, allowance):
        self._sock, self.left = sock, allowance
        self._buffer = bytearray()
        self.why = ""

    def read(self) -> list[bytearray]:
        """Return the frames that are complete with the next piece.

        Raises: Disconnected if the other end is gone, or has sent what it may not.
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
