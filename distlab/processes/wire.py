"""Frames over a Unix stream socket: eight bytes of length, then the payload."""

import array
import socket
import struct
from collections.abc import Sequence

__all__ = [
    "Disconnected",
    "FrameReader",
    "receive_frame",
    "receive_request",
    "send_frame",
    "send_request",
]

_LENGTH = struct.Struct("<Q")
_MAX_DESCRIPTORS = 16


class Disconnected(Exception):
    """The other end of a socket is gone."""


def send_frame(sock: socket.socket, payload: bytes) -> None:
    """Send one frame on a blocking socket.

    Raises: Disconnected if the other end is gone.
    """
    try:
        if len(payload) < 65536:
            sock.sendall(_LENGTH.pack(len(payload)) + payload)
        else:
            sock.sendall(_LENGTH.pack(len(payload)))
            sock.sendall(payload)
    except OSError as error:
        raise Disconnected(str(error)) from error


def receive_frame(sock: socket.socket) -> bytearray:
    """Return the next frame from a blocking socket.

    Raises: Disconnected if the other end is gone.
    """
    return _exactly(sock, _LENGTH.unpack(_exactly(sock, _LENGTH.size))[0])


def send_request(
    sock: socket.socket, payload: bytes, descriptors: Sequence[int]
) -> None:
    """Send one frame and, with its length, open file descriptors."""
    rights = array.array("i", descriptors)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
    sock.sendmsg([_LENGTH.pack(len(payload))], ancillary)
    sock.sendall(payload)


def receive_request(sock: socket.socket) -> tuple[bytearray, list[int]]:
    """Return the next frame and the descriptors that came with it.

    Raises: Disconnected if the other end is gone.
    """
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize)
    try:
        head, ancillary, _, _ = sock.recvmsg(_LENGTH.size, room)
    except OSError as error:
        raise Disconnected(str(error)) from error
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    if len(head) < _LENGTH.size:
        head += _exactly(sock, _LENGTH.size - len(head))
    return _exactly(sock, _LENGTH.unpack(head)[0]), list(descriptors)


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
    """Collect frames from a socket without ever waiting for one."""

    def __init__(self, sock: socket.socket):
        self._sock = sock
        self._head = bytearray()
        self._body = None
        self._filled = 0

    def read(self) -> list[bytearray]:
        """Return the frames that are complete by now.

        Raises: Disconnected if the other end is gone and nothing is left to read.
        """
        frames = []
        while True:
            try:
                if self._body is None:
                    missing = _LENGTH.size - len(self._head)
                    piece = self._sock.recv(missing, socket.MSG_DONTWAIT)
                    got = len(piece)
                    self._head += piece
                else:
                    rest = memoryview(self._body)[self._filled :]
                    got = self._sock.recv_into(rest, 0, socket.MSG_DONTWAIT)
                    self._filled += got
            except BlockingIOError:
                return frames
            except OSError:
                got = 0
            if not got:
                if frames:
                    return frames
                raise Disconnected("end of stream")
            if self._body is None and len(self._head) == _LENGTH.size:
                self._body = bytearray(_LENGTH.unpack(self._head)[0])
                self._filled = 0
                self._head.clear()
            if self._body is not None and self._filled == len(self._body):
                frames.append(self._body)
                self._body = None
