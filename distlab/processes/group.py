"""The owner's side of a group of processes: start, frames, output, signals, end."""

import json
import os
import selectors
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from distlab.errors import ProcessServerFailed
from distlab.patience import patience
from distlab.processes.child import STACKS_SIGNAL
from distlab.processes.folders import new_folder
from distlab.processes.memory import anonymous_file
from distlab.processes.output import LineReader, Stack, read_stacks
from distlab.processes.server_handle import ServerHandle
from distlab.processes.wire import (
    Disconnected,
    FrameReader,
    TooLong,
    send_frame,
    send_request,
)

__all__ = ["Ended", "FrameReceived", "Lines", "Processes", "close_theirs"]


class FrameReceived(NamedTuple):
    """A frame that a process has sent."""

    index: int
    payload: bytearray


class Lines(NamedTuple):
    """Text that a process has printed: whole lines, except at its end."""

    index: int
    text: str


class Ended(NamedTuple):
    """The end of a process: `status` is its exit status, or minus the signal number.

    why: the cause in words, if more than this process ended.
    """

    index: int
    status: int
    why: str = ""


class Processes:
    """`count` processes that run one entry point, and end together.

    entry: "package.module:function", called with a `Child` in each process.
    preload: modules that the process server imports before it forks. also: further
    ones that only some groups need.
    shared: descriptors that every process gets a copy of.
    private_folder: True for a new folder, in memory where the system has such folders,
    or the path of an existing one. Either is removed when the processes have ended.
    `folder` is its path. disk_folder: True for one more, not in memory; then its path.
    environment: variables added to this process's.
    most_bytes: of a frame; a process that sends a longer one is killed.
    usage: the last answer to `request_usage`, see `child_processes.usage`.

    Raises: ProcessServerFailed if the server cannot start or fork.
    If a peer dies: `poll` reports `Ended`; the others continue.
    """

    def __init__(
        self,
        count: int,
        entry: str,
        *,
        preload: Sequence[str] = (),
        also: Sequence[str] = (),
        shared: Sequence[int] = (),
        start_method: str = "fork",
        private_folder: bool | str = False,
        disk_folder: bool = False,
        environment: Mapping[str, str] | None = None,
        most_bytes: int | None = None,
    ):
        self._how = {"entry": entry, "also": list(also)}
        self._how["start_method"] = start_method
        self.pids = [None] * count
        self.alive = set()
        self.folder = private_folder if isinstance(private_folder, str) else None
        self.disk_folder = None
        self._channels, self._readers, self._outputs, self._stacks = {}, {}, {}, {}
        self.exceeded, self.usage = "", None
        self._selector = selectors.DefaultSelector()
        self._session, self._server = ServerHandle.open_session(preload, start_method)
        self._most_bytes = most_bytes or self._server.most_bytes
        self._process_events = FrameReader(self._session)
        self._selector.register(self._session, selectors.EVENT_READ, "session")
        self._closed = False
        try:
            if private_folder and self.folder is None:
                self.folder = self._server.new_folder()
            if disk_folder:
                self.disk_folder = new_folder(in_memory=False)
            self._start_arguments = self._surroundings(environment or {}), shared
            self._start_all(*self._start_arguments)
        except OSError as error:
            self.stop()
            raise self._server.failure() from error
        except BaseException:
            self.stop()
            raise

    def _surroundings(self, environment):
        found = self._server.surroundings() | self._how | {"folders": self._folders()}
        found["environment"] |= environment
        return found

    def _folders(self):
        return [f for f in (self.folder, self.disk_folder) if f is not None]

    def _start_all(self, surroundings, shared):
        for index in range(len(self.pids)):
            self._start(index, surroundings, shared)

    def _start(self, index, surroundings, shared):
        """Request from the server a fork that becomes process `index`."""
        descriptors = self._open_channels(index)
        request = json.dumps(surroundings | {"index": index}).encode()
        try:
            send_request(self._session, request, [*descriptors, *shared])
        finally:
            close_theirs(descriptors)

    def _open_channels(self, index):
        """Connect process `index`; return its ends: channel, output pipe, stacks."""
        ours, theirs = socket.socketpair()
        pipe, write_end = os.pipe()
        stacks = anonymous_file("stacks")
        self._channels[index] = ours
        self._readers[index] = FrameReader(ours, self._most_bytes)
        self._outputs[index] = LineReader(pipe)
        self._stacks[index] = stacks
        self._selector.register(ours, selectors.EVENT_READ, index)
        self._selector.register(pipe, selectors.EVENT_READ, index)
        self.alive.add(index)
        return [theirs.detach(), write_end, stacks]

    def _close_channels(self, index):
        self._channels.pop(index).close()
        self._outputs.pop(index).close()
        os.close(self._stacks.pop(index))

    def replace(self, index: int) -> None:
        """Start a new process in the place of one that was reported as ended."""
        self._forget(self._channels[index])
        self._forget(self._outputs[index].descriptor)
        self._close_channels(index)
        self.pids[index] = None
        try:
            self._start(index, *self._start_arguments)
        except OSError as error:
            raise self._server.failure() from error

    def send(self, index: int, payload: bytes) -> None:
        """Send one frame to a process; a dead one is reported by `poll`, not here."""
        try:
            send_frame(self._channels[index], payload)
        except Disconnected:
            pass

    def fileno(self) -> int:
        """Return a descriptor that is readable when `poll` has something to return."""
        return self._selector.fileno()

    def poll(self, timeout_s: float) -> list[FrameReceived | Lines | Ended]:
        """Return new events, waiting at most `timeout_s` for the first.

        A process's output comes before the frame it sent next, and both come before
        its end.

        Raises: ProcessServerFailed if the server is gone.
        """
        happened = []
        event = False
        for source in {key.data for key, _ in self._selector.select(timeout_s)}:
            if source == "session":
                event = True
            else:
                happened += self._take(source)
        if event:
            happened += self._read_process_events()
        return happened

    def _take(self, source):
        """Return the new events of one source; here each source is a process."""
        return self._drain(source)

    def _drain(self, index):
        """Return the output and frames that have arrived from a process."""
        frames = []
        try:
            frames = self._readers[index].read()
        except Disconnected:
            self._forget(self._channels[index])
        except TooLong:
            self._forget(self._channels[index])
            self.signal(index, signal.SIGKILL)
        text, open_still = self._outputs[index].read(to_the_end=bool(frames))
        if not open_still:
            self._forget(self._outputs[index].descriptor)
        printed = [Lines(index, text)] if text else []
        return printed + [FrameReceived(index, frame) for frame in frames]

    def _forget(self, source):
        try:
            self._selector.unregister(source)
        except KeyError:
            pass  # read once more after its end

    def _read_process_events(self):
        happened = []
        try:
            frames = self._process_events.read()
        except Disconnected:
            raise self._server.failure() from None
        self._server.answered = True
        for event in map(json.loads, frames):
            if "started" in event:
                self.pids[event["started"]] = event["pid"]
            elif "failed" in event:
                raise ProcessServerFailed(
                    f"process {event['failed']} could not be started: {event['why']}"
                )
            elif "exceeded" in event:
                self.exceeded = event["exceeded"]
            elif "usage" in event:
                self.usage = event["usage"]
            else:
                happened += self._end(event["ended"], event["status"])
        return happened

    def _end(self, index, status):
        """Return a process's last output and frames, and its `Ended`."""
        self.alive.discard(index)
        happened = self._drain(index)
        text = self._outputs[index].finish()
        happened += [Lines(index, text)] if text else []
        return [*happened, Ended(index, status)]

    def signal(self, index: int, number: int) -> None:
        """Send a signal to a process that has not been reported as ended."""
        if index in self.alive and self.pids[index] is not None:
            self._server.signal(self._session, index, self.pids[index], number)

    def compare_clocks(self, members: Sequence[int]) -> None:
        """Do nothing: processes of one machine have one clock."""

    def request_usage(self) -> None:
        """Ask how long the processes ran and waited; a later `poll` sets `usage`."""
        with suppress(OSError):  # the server is gone, which `poll` reports
            send_request(self._session, b'{"usage": true}', [])

    def flush(self, index: int) -> str:
        """Return a process's last, unfinished line of output."""
        return self._outputs[index].finish()

    def stacks(self, indices: Iterable[int], wait_s: float = 0.2) -> dict[int, Stack]:
        """Return the main thread's stack of each process, innermost frame first.

        A frame is (file name, line number, function name). A process that does not
        answer in time has an empty stack. wait_s: which `patience` multiplies.
        """
        files = {i: self._stacks[i] for i in indices if i in self.alive}
        for index, file in files.items():
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            self.signal(index, STACKS_SIGNAL)
        return read_stacks(files, patience(wait_s))

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until every process has ended; return False after the time-out."""
        deadline, left_s = time.monotonic() + timeout_s, timeout_s
        while self.alive and left_s >= 0:
            try:
                self.poll(left_s)
            except ProcessServerFailed:
                self.alive.clear()
            left_s = deadline - time.monotonic()
        return not self.alive

    def stop(self) -> None:
        """Kill the remaining processes, wait for their end, close every descriptor."""
        if self._closed:
            return
        self._closed = True
        self._selector.close()
        try:
            self._session.shutdown(socket.SHUT_WR)
            self._session.settimeout(2.0)
            while self._server.answered and self._session.recv(65536):
                pass
        except OSError:
            for index in self.alive:  # the server does not answer: it may be starting
                self.signal(index, signal.SIGKILL)
        self._session.close()
        for index in list(self._channels):
            self._close_channels(index)
        for folder in self._folders():  # the server has removed it, unless it is gone
            shutil.rmtree(folder, ignore_errors=True)
        self.alive.clear()


def close_theirs(descriptors: Sequence[int]) -> None:
    """Close the ends that `_open_channels` returned, once the process has copies."""
    channel, output, _ = descriptors  # the file for stacks stays open here
    os.close(channel)
    os.close(output)
