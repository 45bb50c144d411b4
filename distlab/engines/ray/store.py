"""The key-value store over which ranks meet: the side that keeps it, a thread here."""

import json
import selectors
import socket
import threading
import time

from distlab.processes.wire import Disconnected, FrameReader, send_frame

__all__ = ["StoreServer"]

_LOOK_S = 1.0


class StoreServer:
    """A thread that answers the stores of all ranks of a world until it is closed.

    `add` gives it the connections of ranks, which it closes.
    """

    def __init__(self):
        self._values, self._waiting = {}, {}
        self._selector = selectors.DefaultSelector()
        self._ours, theirs = socket.socketpair()
        self._selector.register(theirs, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def add(self, connection: socket.socket) -> None:
        """Answer on one more connection."""
        reader = FrameReader(connection)
        self._selector.register(connection, selectors.EVENT_READ, reader)

    def close(self) -> None:
        """End the thread and close the connections. Closing twice is fine."""
        self._ours.close()
        self._thread.join()

    def _serve(self):
        with self._selector:
            while True:
                for key, _ in self._selector.select(_LOOK_S):
                    if key.data is None:
                        self._close_all()
                        return
                    self._read(key.fileobj, key.data)
                self._answer_waiting()

    def _close_all(self):
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()

    def _read(self, connection, reader):
        try:
            requests = [json.loads(frame) for frame in reader.read()]
        except Disconnected:
            self._selector.unregister(connection)
            kept = {key: w for key, w in self._waiting.items() if key[0] != connection}
            self._waiting = kept
            connection.close()
            return
        for number, name, *arguments in requests:
            if name == "get":
                keys, timeout_s = arguments
                until = time.monotonic() + timeout_s
                self._waiting[connection, number] = keys, until
            else:
                value = getattr(self, f"_{name}")(*arguments)
                self._answer(connection, number, value)

    def _answer(self, connection, *answer):
        try:
            send_frame(connection, json.dumps(answer).encode())
        except Disconnected:
            pass  # the next read notices it

    def _answer_waiting(self):
        """Answer each `get` whose keys are there by now, or whose time is up."""
        for (connection, number), (keys, until) in list(self._waiting.items()):
            there = self._check(keys)
            if there or time.monotonic() > until:
                del self._waiting[connection, number]
                values = [self._values[key] for key in keys] if there else None
                self._answer(connection, number, values)

    def _set(self, key, value):
        self._values[key] = value

    def _add(self, key, amount):
        total = int(self._values.get(key, 0)) + amount
        self._values[key] = str(total)
        return total

    def _append(self, key, value):
        self._values[key] = self._values.get(key, "") + value

    def _compare_set(self, key, expected, desired):
        if self._values.get(key, "" if not expected else None) == expected:
            self._values[key] = desired
        return self._values.get(key, expected)

    def _check(self, keys):
        return all(key in self._values for key in keys)

    def _delete_key(self, key):
        return self._values.pop(key, None) is not None

    def _num_keys(self):
        return len(self._values)
