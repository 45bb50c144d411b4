"""Clients of a real store: concurrent, one connection each, every call recorded.

Each client is a thread, which spends its time waiting for its server. All read one
clock, before the request and after the response, so an operation takes effect between
its start and its end. One more thread aborts calls that exceed the client's time-out;
the caller's own thread injects the faults.

An outcome is one of three. "ok": the store has done it. "failed": it has not, and will
not; an engine reports this only for errors that rule it out, such as a refused
connection. "unknown": all else, above all silence. It may be done now, later, or never.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from distlab.calls.progress import Progress
from distlab.errors import InvalidArgument
from distlab.faults import Crash, Split, check_node_faults
from distlab.history import History
from distlab.network import Client
from distlab.network.client import CallSequence
from distlab.trace import Call, Operation

__all__ = ["Connection", "NoAnswer", "Refused", "as_text", "as_value", "drive"]

_TICK_S = 0.01


class Refused(Exception):
    """An error that guarantees that the store has not done a call, and never will."""


class NoAnswer(Exception):
    """A failure after which it is unknown whether the store did, or will do, a call."""


class Connection(Protocol):
    """One connection of a client to a server."""

    def ask(self, call: Call) -> Any:
        """Make a call; return its result.

        Raises: Refused or NoAnswer; after the latter the connection is not used again.
        """

    def abort(self) -> None:
        """Make an `ask` that is under way in another thread raise NoAnswer."""

    def close(self) -> None:
        """Close the connection."""


def drive(
    servers,
    zero: float,
    clients: Sequence[Client],
    connect: Callable[[int, float], Connection],
    faults: Iterable[Split | Crash] = (),
    meanwhile: Callable[[], object] | None = None,
) -> History:
    """Run all clients concurrently; return the history of their operations.

    zero: the time from which all times are counted, that of the store's start, so that
        histories of one store can be merged.
    connect: given a server's number and the client's time-out, returns a connection
        or raises Refused.
    faults: faults of the servers. One whose time comes when the clients are done
        does not happen; a split or a crash that has begun by then ends at once, if it
        was to end at all.
    meanwhile: called in this thread, while the clients run.
    """
    faults = check_node_faults(faults, len(servers), (Split, Crash))
    if lossy := [one for one in faults if getattr(one, "loses", "")]:
        raise InvalidArgument(f"{lossy[0]}: a server is killed, and its disk is kept.")
    if faults and meanwhile is not None:
        raise InvalidArgument("drive takes faults or meanwhile, not both.")
    events = _events(servers, faults)
    drivers = [_Driver(n, client, connect, zero) for n, client in enumerate(clients)]
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(drivers, done), daemon=True)
    threads = [threading.Thread(target=d.run, daemon=True) for d in drivers]
    for thread in [watch, *threads]:
        thread.start()
    try:
        _happen(events, time.monotonic(), threads)
        if meanwhile is not None:
            meanwhile()
        with Progress(f"{len(drivers)} clients at work"):
            while _alive(threads):
                time.sleep(_TICK_S)
    finally:
        while _alive(threads):  # the caller was interrupted
            for driver in drivers:
                driver.stop()
            time.sleep(_TICK_S)
        done.set()
        watch.join()
    for driver in drivers:
        if driver.error is not None:
            raise driver.error
    return History(each for driver in drivers for each in driver.operations)


def _watch(drivers, done):
    while not done.wait(_TICK_S):
        for driver in drivers:
            driver.break_off(time.monotonic())


def _events(servers, faults):
    """Return (time, function to call, fault, True for its end) tuples, in order."""
    events = []
    for fault in faults:
        if isinstance(fault, Split):
            start, end = partial(servers.split, *fault.sides), servers.heal
        else:
            start = partial(servers.kill, fault.node)
            end = partial(servers.restart, fault.node)
        events.append((fault.at_s, start, fault, False))
        if fault.until_s is not None:
            events.append((fault.until_s, end, fault, True))
    return sorted(events, key=lambda event: event[0])


def _happen(events, began, threads):
    """Start and end each fault at its time, as long as clients run."""
    begun = []
    for at_s, act, fault, is_end in events:
        while (busy := _alive(threads)) and time.monotonic() < began + at_s:
            time.sleep(_TICK_S)
        if busy if not is_end else fault in begun:
            act()
            begun.append(fault)


def _alive(threads):
    return any(thread.is_alive() for thread in threads)


class _Driver:
    """One client, which makes its calls one after the other."""

    def __init__(self, number: int, client: Client, connect: Callable, zero: float):
        self.operations = []
        self.error = None
        self._number, self._client, self._connect = number, client, connect
        self._zero = zero
        self._connection = None
        self._deadline = None
        self._turn = threading.Lock()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Make all calls; keep an exception of the generator of calls in `error`."""
        try:
            self._stopping.wait(self._client.start_s)
            asking, result = CallSequence(self._number, self._client.calls), None
            while (call := asking.next(result)) and not self._stopping.is_set():
                result = self._make(call)
                self._stopping.wait(self._client.pause_s)
        except BaseException as error:
            self.error = error
        finally:
            self._hang_up()

    def _make(self, call):
        """Make one call and record it; return its result."""
        result, end = None, None
        start = time.monotonic()
        with self._turn:
            self._deadline = start + self._client.timeout_s
        try:
            if self._connection is None:
                node, wait_s = self._client.node, self._client.timeout_s
                self._connection = self._connect(node, wait_s)
            result = self._connection.ask(call)
            outcome, end = "ok", time.monotonic()
        except Refused:
            outcome, end = "failed", time.monotonic()
        except NoAnswer:
            outcome = "unknown"
        with self._turn:
            self._deadline = None
        if outcome == "unknown":
            self._hang_up()
        times = start - self._zero, None if end is None else end - self._zero
        self.operations.append(Operation(self._number, *call, *times, outcome, result))
        return result

    def break_off(self, now: float) -> None:
        """Abort the call under way if the client's time-out has passed."""
        with self._turn:
            late = self._deadline is not None and now > self._deadline
            if late and self._connection is not None:
                self._deadline = None
                self._connection.abort()

    def stop(self) -> None:
        """Make no more calls, and abort the one under way."""
        self._stopping.set()
        with self._turn:
            if self._connection is not None:
                self._connection.abort()

    def _hang_up(self):
        with self._turn:
            gone, self._connection = self._connection, None
        if gone is not None:
            gone.close()


def as_text(value: Any) -> str:
    """Return a value as a store keeps it, in JSON; equal values give the same text.

    Raises: InvalidArgument for a value that JSON does not preserve.
    """
    try:
        text = json.dumps(value, sort_keys=True)
        same = json.loads(text) == value
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InvalidArgument(
            "a real store is given what JSON has: numbers, strings, True, False, None, "
            f"and lists and dicts of them. It got {value!r}."
        )
    return text


def as_value(value: Any) -> str:
    """Return a value to be written, in JSON.

    Raises: InvalidArgument for None, which is what a key without a value reads as.
    """
    if value is None:
        raise InvalidArgument(
            "a real store is asked to write None, which is what a key without a value "
            "reads as. Write something else."
        )
    return as_text(value)
