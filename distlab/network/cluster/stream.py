"""Frames through a socket, several at a time, without waiting for its other end."""

import select
import socket
import struct

from distlab.processes import Disconnected

__all__ = ["Stream"]

_LENGTH = struct.Struct("<I")
_PIECE_BYTES = 2**18


class Stream:
    """One end of a Unix socket between a node and the switch.

    waiting: whether something is still to be sent, which the other end has no room for.
    """

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.waiting = bytearray()
        self._read = bytearray()
        sock.setblocking(False)

    def fileno(self) -> int:
        """Return the socket's descriptor, for whoever waits for it."""
        return self.sock.fileno()

    def read(self) -> list[bytes]:
        """Return the frames that are here by now.

        Raises: Disconnected if the other end is gone and nothing is left to read.
        """
        frames, gone = [], False
        try:
            while len(piece := self.sock.recv(_PIECE_BYTES)) == _PIECE_BYTES:
                self._read += piece
            self._read += piece
            gone = not piece
        except BlockingIOError:
            pass
        except OSError:
            gone = True
        at, data = 0, self._read
        while len(data) - at >= _LENGTH.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            frames.append(bytes(data[at + _LENGTH.size : end]))
            at = end
        del data[:at]
        if gone and not frames:
            raise Disconnected("end of stream")
        return frames

    def send(self, payload: bytes) -> None:
        """Send a frame, or as much of it as there is room for; `flush` sends the rest.

        What is sent to somebody who is gone is lost.
        """
        frame = _LENGTH.pack(len(payload)) + payload
        if self.waiting:
            self.waiting += frame
            return
        sent = self._sent(frame)
        if sent < len(frame):
            self.waiting += frame[sent:]

    def flush(self) -> None:
        """Send more of what waits, if there is room."""
        if self.waiting:
            del self.waiting[: self._sent(self.waiting)]

    def finish(self) -> None:
        """Wait until everything is sent, or the other end is gone."""
        while self.waiting:
            select.select([], [self.sock], [])
            self.flush()

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def _sent(self, data):
        """Return how many bytes were taken; all of them if nobody is there."""
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)
