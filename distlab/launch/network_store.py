"""The key-value store over which ranks of several machines meet: a rank's side.

Each rank has one connection, which its process was started with, to the process of the
cell; `StoreServer` answers there. So no rank listens for others to meet it.
"""

import itertools
import json
import os
import socket
import threading
from datetime import timedelta

import torch.distributed as dist

from distlab.processes.wire import receive_frame, send_frame

__all__ = ["NetworkStore"]


class NetworkStore(dist.Store):
    """A store of torch.distributed whose keys another process keeps.

    Called by: torch, in C++, from any thread.

    Raises: Disconnected once that process is gone.
    """

    def __init__(self, descriptor: int):
        super().__init__()
        self._socket = socket.socket(fileno=descriptor)
        self._sending, self._numbers = threading.Lock(), itertools.count()
        self._changed, self._receiving = threading.Condition(), False
        self._answers = {}
        self._timeout = timedelta(days=1)

    def _ask(self, *request):
        """Send a request; return its answer.

        Of the threads that wait one receives, for all: one that waits for a rank that
        is gone never ends, and must not keep others from asking.
        """
        with self._sending:
            number = f"{os.getpid()}-{next(self._numbers)}"
            send_frame(self._socket, json.dumps([number, *request]).encode())
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: number in self._answers or not self._receiving
                )
                if number in self._answers:
                    return self._answers.pop(number)
                self._receiving = True
            answered, value = json.loads(receive_frame(self._socket))
            with self._changed:
                self._answers[answered], self._receiving = value, False
                self._changed.notify_all()

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` waits for a key."""
        self._timeout = timeout

    def set(self, key: str, value: bytes | str) -> None:
        """Give a key its value."""
        self._ask("set", key, _text(value))

    def get(self, key: str) -> bytes:
        """Return a key's value, once it has one.

        Raises: DistStoreError at the time-out.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return the values of some keys, once all have one."""
        return self._values(keys, self._timeout)

    def multi_set(self, keys: list[str], values: list[bytes]) -> None:
        """Give each key its value."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all these keys have a value."""
        self._values(keys, timeout or self._timeout)

    def _values(self, keys, timeout):
        values = self._ask("get", keys, timeout.total_seconds())
        if values is None:
            raise dist.DistStoreError(f"no rank has set all of {keys} within {timeout}")
        return [value.encode("latin-1") for value in values]

    def add(self, key: str, amount: int) -> int:
        """Add to the number at a key; return the sum."""
        return self._ask("add", key, amount)

    def append(self, key: str, value: bytes | str) -> None:
        """Append to the value of a key."""
        self._ask("append", key, _text(value))

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Set a key to `desired` if it is `expected`; return what it is then."""
        found = self._ask("compare_set", key, _text(expected), _text(desired))
        return found.encode("latin-1")

    def check(self, keys: list[str]) -> bool:
        """Return True if all these keys have a value."""
        return self._ask("check", keys)

    def delete_key(self, key: str) -> bool:
        """Remove a key; return True if it was there."""
        return self._ask("delete_key", key)

    def num_keys(self) -> int:
        """Return the number of keys."""
        return self._ask("num_keys")

    def has_extended_api(self) -> bool:
        """Return True: `append`, `multi_get` and `multi_set` are there."""
        return True


def _text(value):
    """Return bytes as text that JSON can carry, byte by byte."""
    return (value.encode() if isinstance(value, str) else bytes(value)).decode(
        "latin-1"
    )
