"""Frames over a Unix stream socket: eight bytes of length, then the payload."""

import array
import socket
import struct
from collections.abc import Sequence

__all__ = [
    "LENGTH",
    "Disconnected",
    "FrameReader",
    "TooLong",
    "receive_frame",
    "receive_request",
    "send_frame",
    "send_request",
]

LENGTH = struct.Struct("<Q")
_MAX_DESCRIPTORS = 16
_PIECE = 2**16


class Disconnected(Exception):
    """The other end of a socket is gone."""


class TooLong(Exception):
    """The other end of a socket sends a frame that is longer than it may be."""


def send_frame(sock: socket.socket, payload: bytes) -> None:
    """Send one frame on a blocking socket.

    Raises: Disconnected if the other end is gone.
    """
    try:
        if len(payload) < 65536:
            sock.sendall(LENGTH.pack(len(payload)) + payload)
        else:
            sock.sendall(LENGTH.pack(len(payload)))
            sock.sendall(payload)
    except OSError as error:
        raise Disconnected(str(error)) from error


def receive_frame(sock: socket.socket) -> bytearray:
    """Return the next frame from a blocking socket.

    Raises: Disconnected if the other end is gone.
    """
    (length,) = LENGTH.unpack(_exactly(sock, LENGTH.size))
    return _exactly(sock, length)


def send_request(
    sock: socket.socket, payload: bytes, descriptors: Sequence[int]
) -> None:
    """Send one frame and, with its first byte, open file descriptors.

    A short frame is sent in one piece, even if others send on copies of this socket.
    """
    rights = array.array("i", descriptors)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if rights else []
    frame = LENGTH.pack(len(payload)) + payload
    sent = sock.sendmsg([frame], ancillary)
    if sent < len(frame):
        sock.sendall(memoryview(frame)[sent:])


def receive_request(sock: socket.socket) -> tuple[bytearray, list[int]]:
    """Return the next frame and the descriptors that came with it.

    Raises: Disconnected if the other end is gone.
    """
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize)
    try:
        head, ancillary, _, _ = sock.recvmsg(LENGTH.size, room)
    except OSError as error:
        raise Disconnected(str(error)) from error
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    if len(head) < LENGTH.size:
        head += _exactly(sock, LENGTH.size - len(head))
    return _exactly(sock, LENGTH.unpack(head)[0]), list(descriptors)


def _exactly(sock, count):
    data = bytearray(count)
    view, filled = memoryview(data), 0
    while filled < count:
        try:
            got = sock.recv_into(view[filled:])
        except OSError as error:
            raise Disconnected(str(error)) from error
        if not got:
            raise Disconnected("end of stream")
        filled += got
    return data


class FrameReader:
    """A reader of frames of at most `most_bytes` from a socket, which never waits.

    It reads as much as there is at once: a system call costs more than a short frame.
    """

    def __init__(self, sock: socket.socket, most_bytes: int = 2**40):
        self._sock = sock
        self._most_bytes = most_bytes
        self._arrived = bytearray()  # of frames that are not complete
        self._body, self._filled = None, 0  # of one frame that is long

    def read(self) -> list[bytearray]:
        """Return the frames that are complete by now.

        Raises: Disconnected if the other end is gone and nothing is left to read;
        TooLong.
        """
        frames, got, most = [], 1, 1
        while got == most:  # else there was no more
            most = _PIECE if self._body is None else len(self._body) - self._filled
            try:
                got = self._receive(most)
            except BlockingIOError:
                return frames
            except OSError:
                got = 0
            if not got:
                if frames:
                    return frames
                raise Disconnected("end of stream")
            self._split(frames)
        return frames

    def _receive(self, most):
        """Receive bytes; return their number, 0 at the end."""
        if self._body is None:
            piece = self._sock.recv(most, socket.MSG_DONTWAIT)
            self._arrived += piece
            return len(piece)
        rest = memoryview(self._body)[self._filled :]
        got = self._sock.recv_into(rest, 0, socket.MSG_DONTWAIT)
        self._filled += got
        return got

    def _split(self, frames):
        """Add the frames that are complete; make room for the rest of a long one."""
        if self._body is not None:
            if self._filled == len(self._body):
                frames.append(self._body)
                self._body = None
            return
        arrived, at = self._arrived, 0
        while at + LENGTH.size <= len(arrived):
            (length,) = LENGTH.unpack_from(arrived, at)
            if length > self._most_bytes:
                raise TooLong(f"{length} bytes")
            body = arrived[at + LENGTH.size : at + LENGTH.size + length]
            if len(body) == length:
                frames.append(body)
            elif length > _PIECE:
                self._body, self._filled = bytearray(length), len(body)
                self._body[: len(body)] = body
            else:
                break
            at += LENGTH.size + len(body)
        del arrived[:at]
