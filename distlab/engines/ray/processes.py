"""Processes on several nodes, with the interface of processes on this machine."""

import json
import math
import selectors
import signal
import socket
import time
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from distlab.diagnosis import ranks_in_words
from distlab.engines.ray.node import CONTROL, keepalive
from distlab.engines.ray.store import StoreServer
from distlab.errors import EngineFailed, ProcessServerFailed
from distlab.patience import patience
from distlab.processes import Disconnected, Ended, FrameReceived, Lines
from distlab.processes.wire import LENGTH, FrameReader
from distlab.recorder import SharedTrace

__all__ = ["NodeAddress", "NodesProcesses", "connect"]

_CONNECT_S = 10.0
_FIRST_LOOKS, _DRIFT = 5, 1e-4  # 100 ppm: quartz, without NTP
_STOP_S, _ANSWER_S = 2.0, 1.0


class NodeAddress(NamedTuple):
    """A node's name, address and port, its secret, and the ranks that it runs."""

    name: str
    host: str
    port: int
    token: bytes
    ranks: list[int]


def connect(node: NodeAddress, who: int = CONTROL) -> socket.socket:
    """Return a connection to a node: a rank's store, or the control connection.

    Raises: EngineFailed if the node cannot be reached.
    """
    try:
        connection = socket.create_connection((node.host, node.port), _CONNECT_S)
    except OSError as error:
        raise EngineFailed(
            f"{node.name} does not answer at {node.host}:{node.port}: {error}.\n"
            "The nodes of a Ray cluster, and the machine of this process, must reach "
            "each\nother on all ports; a firewall between them may be in the way."
        ) from None
    connection.settimeout(None)
    keepalive(connection, who)
    connection.sendall(node.token + who.to_bytes(4, "big"))
    return connection


class _Node:
    """One node's connection.

    answers: what it has sent that is not an event, in order.
    offset_s: what to add to its clock to have this process's.
    """

    def __init__(self, address):
        self.name, self.ranks = address.name, address.ranks
        self.socket = connect(address)
        self.reader = FrameReader(self.socket)
        self.answers, self.gone = [], False
        self.offset_s, self._error_s, self._looked = 0.0, math.inf, 0.0

    def look(self, asked: float, clock: float, arrived: float) -> None:
        """Note an answer on its clock, if it says more than the one before."""
        error_s = (arrived - asked) / 2
        if error_s < self.clock_error_s():
            self.offset_s, self._error_s = (asked + arrived) / 2 - clock, error_s
            self._looked = arrived

    def clock_error_s(self) -> float:
        """Return the largest error that `offset_s` may have by now."""
        return self._error_s + _DRIFT * (time.monotonic() - self._looked)


class NodesProcesses:
    """The processes of a world on all its nodes; see `Processes` for the methods.

    addresses: the nodes. board: gets what the ranks note.
    more: has some nodes run processes in place of those of nodes that died; returns
    their addresses. It is called on a thread, and may take long.
    release: called at the end, to give back what the nodes held.

    If a node dies: `poll` reports the end of each of its processes, and says why.
    """

    usage, folder = None, ""

    def __init__(
        self,
        addresses: Sequence[NodeAddress],
        board: SharedTrace,
        *,
        more: Callable[[list[int]], list[NodeAddress]],
        release: Callable[[], None],
    ):
        self._board, self._more, self._release = board, more, release
        self._selector, self._nodes = selectors.DefaultSelector(), []
        self._store, self._threads = StoreServer(), ThreadPoolExecutor(1)
        self._pending, self.alive = [], set()
        self._node_of, self._moving, self._unplaced = {}, None, []
        self._unsent, self._closed = {}, False
        board.regroup_copied = self.regroup
        try:
            for address in addresses:
                self._join(address)
        except BaseException:
            self.stop()
            raise

    def _join(self, address):
        """Connect to a node, for control and for the store of each of its ranks."""
        node = _Node(address)
        self._nodes.append(node)
        self._selector.register(node.socket, selectors.EVENT_READ, node)
        for rank in node.ranks:
            self._store.add(connect(address, rank))
            self._node_of[rank] = node
        self.alive |= set(node.ranks)

    def names(self) -> list[str]:
        """Return the name of each process's node."""
        return [self._node_of[index].name for index in sorted(self._node_of)]

    def replace(self, index: int) -> None:
        """Start a new process in the place of one that was reported as ended.

        If its node is gone, then on another, as soon as the cluster has room.
        """
        if self._node_of[index].gone:
            self._unplaced.append(index)
            self._unsent[index] = []
        else:
            self.alive.add(index)
            self._request(self._node_of[index], {"replace": index})

    def _place(self):
        """Place processes whose node is gone, step by step."""
        if self._moving is None:
            moved, self._unplaced = self._unplaced, []
            self._moving = self._threads.submit(self._more, moved)
        elif self._moving.done():
            addresses, self._moving = self._moving.result(), None
            for address in addresses:
                self._join(address)
                for rank in address.ranks:
                    for payload in self._unsent.pop(rank):
                        self.send(rank, payload)

    def regroup(self, regions: Sequence[int], fresh: Container[int]) -> None:
        """Have the nodes regroup their notes; see `SharedTrace.regroup`."""
        for node in self._nodes:
            here = [rank for rank in node.ranks if rank in fresh]
            self._request(node, {"regroup": list(regions), "fresh": here})

    def send(self, index: int, payload: bytes) -> None:
        """Send one frame to a process; a dead one is reported by `poll`, not here."""
        if index in self._unsent:
            self._unsent[index].append(payload)
            return
        self._request(self._node_of[index], {"send": [index]}, payload)

    def signal(self, index: int, number: int) -> None:
        """Send a signal to a process that has not been reported as ended."""
        if index in self.alive:
            self._request(self._node_of[index], {"signal": index, "number": number})

    def request_usage(self) -> None:
        """Do nothing: a limit counts the time that others took on a node, too."""

    def flush(self, index: int) -> str:
        """Return "": a node sends a process's last line before its frame."""
        return ""

    def _request(self, node, request, payload=b""):
        """Send a request; receive meanwhile, so that a node never waits for this."""
        head = json.dumps(request).encode() + b"\n"
        left = memoryview(LENGTH.pack(len(head) + len(payload)) + head + payload)
        while left and not node.gone:
            try:
                left = left[node.socket.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                self._selector.modify(node.socket, 3, node)
                self._receive(0.1)
                self._restore(node)
            except OSError:
                return  # its end is on its way

    def _restore(self, node):
        if not node.gone:
            self._selector.modify(node.socket, selectors.EVENT_READ, node)

    def poll(self, timeout_s: float) -> list[FrameReceived | Lines | Ended]:
        """Return new events, waiting at most `timeout_s` for the first.

        Raises: ProcessServerFailed if the process server of a node is gone.
        """
        if self._unplaced or self._moving:
            self._place()
        if not self._pending:
            self._receive(timeout_s)
        happened, self._pending = self._pending, []
        return happened

    def _receive(self, timeout_s):
        """Wait at most so long for anything from any node, and sort it."""
        for key, _ in self._selector.select(timeout_s):
            node = key.data
            try:
                frames = node.reader.read()
            except Disconnected:
                self._lose(node)
                continue
            for frame in frames:
                end = frame.index(b"\n")
                self._sort(node, json.loads(frame[:end]), frame[end + 1 :])

    def _sort(self, node, what, payload):
        if "notes" in what:
            self._board.write(_pieces(what["notes"], payload))
        elif "frame" in what:
            self._pending.append(FrameReceived(what["frame"], payload))
        elif "lines" in what:
            text = payload.decode(errors="replace")
            self._pending.append(Lines(what["lines"], text))
        elif "ended" in what:
            self.alive.discard(what["ended"])
            self._pending.append(Ended(what["ended"], what["status"]))
        elif "failed" in what:
            raise ProcessServerFailed(f"{node.name}: {what['failed']}")
        else:
            node.answers.append(what | {"arrived": time.monotonic()})

    def _lose(self, node):
        node.gone = True
        self._selector.unregister(node.socket)
        lost = sorted(self.alive & set(node.ranks))
        self.alive -= set(lost)
        why = (
            f"{node.name} was lost, and with it {ranks_in_words(node.ranks)}: the "
            "process of Ray that held them has ended"
        )
        self._pending += [Ended(rank, -signal.SIGKILL, why) for rank in lost]

    def _answers(self, requests, wait_s):
        """Send requests, node -> request; return the answers that come in time."""
        for node, request in requests.items():
            node.answers.clear()
            self._request(node, request)
        deadline = time.monotonic() + wait_s
        waiting = list(requests)
        while waiting and (left_s := deadline - time.monotonic()) > 0:
            self._receive(left_s)
            waiting = [n for n in waiting if not (n.answers or n.gone)]
        return {node: node.answers.pop() for node in requests if node.answers}

    def stacks(self, indices: Iterable[int], wait_s: float = 0.2) -> dict[int, list]:
        """Return the main thread's stack of each process, innermost frame first."""
        wanted, requests = set(indices) & self.alive, {}
        for node in self._nodes:
            here = sorted(wanted & set(node.ranks))
            if here and not node.gone:
                requests[node] = {"stacks": here, "wait_s": wait_s}
        answers = self._answers(requests, patience(wait_s) + _ANSWER_S).values()
        return {
            rank: [tuple(frame) for frame in stack]
            for answer in answers
            for rank, stack in answer["stacks"]
        }

    def compare_clocks(self, members: Sequence[int]) -> None:
        """Set the offsets of the board's clocks, and how wrong one may be.

        members: the process of each rank.

        A node's clock was read some time between question and answer, so half of that
        is the error. An older look's error has grown with the clocks' drift.
        Source: Cristian, "Probabilistic clock synchronization" (1989).
        """
        for _ in range(1 if self._board.clock_error_s else _FIRST_LOOKS):
            asked = {node: time.monotonic() for node in self._nodes if not node.gone}
            questions = {node: {"clock": True} for node in asked}
            answers = self._answers(questions, _ANSWER_S)
            for node, answer in answers.items():
                node.look(asked[node], answer["clock"], answer["arrived"])
        for rank, process in enumerate(members):
            self._board.offsets_s[rank] = self._node_of[process].offset_s
        live = [node.clock_error_s() for node in self._nodes if not node.gone]
        self._board.clock_error_s = max(live, default=0.0)

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until every process has ended; return False after the time-out."""
        deadline = time.monotonic() + timeout_s
        while self.alive and (left_s := deadline - time.monotonic()) >= 0:
            self.poll(left_s)
        return not self.alive

    def stop(self) -> None:
        """Have each node kill its remaining processes, and wait until it has."""
        if self._closed:
            return
        self._closed = True
        for node in self._nodes:
            try:
                node.socket.shutdown(socket.SHUT_WR)
                node.socket.settimeout(_STOP_S)
            except OSError:
                node.gone = True
        for node in self._nodes:
            try:
                while not node.gone and node.socket.recv(65536):
                    pass
            except OSError:
                pass  # it is gone, or does not answer
            node.socket.close()
        self._selector.close()
        self._store.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._release()
        self.alive.clear()


def _pieces(places, payload):
    """Yield the pieces of a frame of notes, each with its offset."""
    start = 0
    for at, length in places:
        yield at, payload[start : start + length]
        start += length
