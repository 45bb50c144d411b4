"""The inside of a node: ranks for worlds that a process elsewhere controls.

    cell                              node (an actor of Ray)         ranks
    ────                              ──────────────────────         ─────
    control ◀── one connection ────▶  RanksOfNode ── frames ──────▶  entry(child)
            frames, signals, stacks        ◀── output, ends ────────    │
            ◀── changes of the notes ────  block ◀── Recorder ──────────┤
    store   ◀── one connection each ────────────────────────────────────┘

A node listens on its own address for as long as one world connects, and takes only who
knows the token that it received through Ray. All that the control connection carries
stays in order: a rank's notes and output come before its frame, and all before its end.
When that connection ends, or the raylet, so do the ranks.
"""

import hmac
import json
import os
import select
import selectors
import socket
import threading
import time
from contextlib import suppress

from distlab.errors import ProcessServerFailed
from distlab.launch.machine import PRELOAD
from distlab.processes import (
    Disconnected,
    Ended,
    FrameReceived,
    Lines,
    Processes,
    anonymous_file,
    warm_up,
)
from distlab.processes.wire import FrameReader, send_frame
from distlab.recorder import NotesReader, SharedTrace

__all__ = ["CONTROL", "TOKEN_BYTES", "keepalive", "open_listener", "prepare"]

TOKEN_BYTES = 32
CONTROL = 2**32 - 1  # instead of a rank, in the greeting of a connection
_GREET_S = 30.0
_TICK_S = 0.04
_WATCH_S = 0.1


def prepare() -> None:
    """Start the process server, and end this process when the raylet has ended."""
    warm_up(PRELOAD)
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()


def _end_with(raylet):
    """End this process when its parent ends, also if that stays as a zombie.

    Ray ends it later: after 0.6 s, or 13 s beside a zombie.
    """
    if hasattr(os, "pidfd_open"):
        with suppress(ProcessLookupError):
            select.select([os.pidfd_open(raylet)], [], [])
    while os.getppid() == raylet and not hasattr(os, "pidfd_open"):
        time.sleep(_WATCH_S)
    os._exit(1)


def keepalive(connection: socket.socket, who: int) -> None:
    """Have the system report within 2 s that the other machine is gone.

    Only the control connection does so: it speaks for all of its node. On one machine
    the system reports an end anyway.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if who != CONTROL or connection.getpeername()[0] == connection.getsockname()[0]:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("IDLE", 1), ("INTVL", 1), ("CNT", 2)):
        if hasattr(socket, f"TCP_KEEP{name}"):
            option = getattr(socket, f"TCP_KEEP{name}")
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2000)


def open_listener(address: str, token: bytes, settings: dict) -> int:
    """Return the port at which one world connects, and serve it on a thread.

    settings: "world_size", "own" (its ranks here), "entry", "also", "environment",
    "path" and "directory".
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family)
    port = listener.getsockname()[1]
    arguments = listener, address, token, settings
    threading.Thread(target=_serve, args=arguments, daemon=True).start()
    return port


def _serve(listener, address, token, settings):
    with listener:
        connections = _accepted(listener, token, [CONTROL, *settings["own"]])
    if connections is not None:
        control = connections.pop(CONTROL)
        try:
            RanksOfNode(control, connections, address, settings).serve()
        finally:
            control.close()


def _accepted(listener, token, wanted):
    """Return the connections by rank, once all are there; None if one is missing."""
    found, deadline = {}, time.monotonic() + _GREET_S
    try:
        while len(found) < len(wanted):
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            connection, _ = listener.accept()
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            greeting = connection.recv(TOKEN_BYTES + 4, socket.MSG_WAITALL)
            who = int.from_bytes(greeting[TOKEN_BYTES:], "big")
            known = hmac.compare_digest(greeting[:TOKEN_BYTES], token)
            if known and who in wanted:
                connection.settimeout(None)
                keepalive(connection, who)
                found[who] = connection
            else:
                connection.close()
    except OSError:
        for connection in found.values():
            connection.close()
        return None
    return found


def interface_of(address: str) -> str:
    """Return the name of the network interface with this address, "" if unknown."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = name.encode()[:15].ljust(256, b"\0")
            try:
                found = fcntl.ioctl(probe, 0x8915, request)  # SIOCGIFADDR
            except OSError:
                continue  # it has no address
            if socket.inet_ntoa(found[20:24]) == address:
                return name
    return "lo" if address.startswith("127.") else ""


class ProcessesOfNode(Processes):
    """The processes of a world that run on this node; each keeps its own number.

    stores: number -> the connection that only this process gets, after those shared.
    path, directory: where they import from first, and start in; else as this process.
    """

    def __init__(
        self,
        count: int,
        entry: str,
        *,
        stores: dict,
        path: list[str],
        directory: str | None,
        **how,
    ):
        self._stores, self._path, self._directory = stores, path, directory
        super().__init__(count, entry, **how)

    def _surroundings(self, environment):
        found = super()._surroundings(environment)
        path = list(dict.fromkeys([*self._path, *found["path"]]))
        return found | {
            "path": path,
            "directory": self._directory or found["directory"],
        }

    def _start_all(self, surroundings, shared):
        for index in sorted(self._stores):
            self._start(index, surroundings, shared)

    def _start(self, index, surroundings, shared):
        store = self._stores[index].fileno()
        super()._start(index, surroundings, [*shared, store])


class RanksOfNode:
    """The ranks of one world on this node, and their connection to its process."""

    def __init__(self, control: socket.socket, stores: dict, address: str, how: dict):
        self._control, self._stores = control, stores
        self._reader = FrameReader(control)
        self._block = anonymous_file("distlab-notes")
        self._board = SharedTrace(how["world_size"], self._block)
        self._notes = NotesReader(self._block, how["world_size"])
        self._own = how["own"]
        self._how = how
        interface = interface_of(address)
        named = {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
        self._environment = how["environment"] | (named if interface else {})
        self._processes = None

    def serve(self) -> None:
        """Run the ranks until the control connection ends."""
        try:
            self._processes = self._started()
            self._loop()
        except ProcessServerFailed as error:
            self._try_to_send(failed=str(error))
        except Disconnected:
            pass
        finally:
            if self._processes is not None:
                self._processes.stop()
            for store in self._stores.values():
                store.close()
            self._board.close()
            os.close(self._block)

    def _started(self):
        return ProcessesOfNode(
            self._how["world_size"],
            self._how["entry"],
            stores=self._stores,
            path=self._how["path"],
            directory=self._how["directory"],
            preload=PRELOAD,
            also=self._how["also"],
            shared=[self._block],
            environment=self._environment,
        )

    def _loop(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._processes, selectors.EVENT_READ)
            next_look = 0.0
            while True:
                selector.select(max(0.0, next_look - time.monotonic()))
                for frame in self._reader.read():
                    self._obey(frame)
                for event in self._processes.poll(0):
                    self._forward(event)
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + _TICK_S
                    self._send_changes(self._own)

    def _obey(self, frame):
        """Do what the process of the cell requests."""
        end = frame.index(b"\n")
        request, payload = json.loads(frame[:end]), memoryview(frame)[end + 1 :]
        if "send" in request:
            for rank in request["send"]:
                self._processes.send(rank, payload)
        elif "clock" in request:
            self._send({"clock": time.monotonic()})
        elif "signal" in request:
            self._processes.signal(request["signal"], request["number"])
        elif "replace" in request:
            self._processes.replace(request["replace"])
        elif "regroup" in request:
            self._send_changes(self._own)
            self._board.regroup(request["regroup"], request["fresh"])
            for region in self._own:
                self._notes.forget(region, fresh=region in request["fresh"])
        elif "stacks" in request:
            stacks = self._processes.stacks(request["stacks"], request["wait_s"])
            self._send({"stacks": list(stacks.items())})

    def _forward(self, event):
        if isinstance(event, Lines):
            self._send({"lines": event.index}, event.text.encode())
        elif isinstance(event, FrameReceived):
            text = self._processes.flush(event.index)
            if text:
                self._send({"lines": event.index}, text.encode())
            self._send_changes([event.index])
            self._send({"frame": event.index}, event.payload)
        elif isinstance(event, Ended):
            self._send_changes([event.index])
            self._send({"ended": event.index, "status": event.status})

    def _send_changes(self, ranks):
        pieces = [piece for rank in ranks for piece in self._notes.changes(rank)]
        if pieces:
            places = [(at, len(piece)) for at, piece in pieces]
            self._send({"notes": places}, b"".join(piece for _, piece in pieces))

    def _send(self, what, payload=b""):
        send_frame(self._control, json.dumps(what).encode() + b"\n" + payload)

    def _try_to_send(self, **what):
        try:
            self._send(what)
        except Disconnected:
            pass
