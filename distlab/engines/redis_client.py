"""One connection to a Redis server, on which a command is sent at most once.

An operation "failed" if no connection could be made, or if Redis replied with an
error: it executes a command wholly or, with an error, not at all. Every other failure
to get a response is "unknown", and so is a write that too few replicas acknowledged
to WAIT in time.
"""

import json
import socket
from typing import Any

from distlab.engines.store_clients import NoAnswer, Refused, as_text, as_value
from distlab.errors import InvalidArgument
from distlab.trace import Call

__all__ = ["RedisConnection"]

_CAS = """
local old = redis.call('get', KEYS[1])
if (old or '') == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end
return 0
"""


class RedisConnection:
    """One connection of redis-py to a server, without its retries."""

    def __init__(self, path, timeout_s, wait):
        from redis.backoff import NoBackoff
        from redis.connection import UnixDomainSocketConnection
        from redis.exceptions import RedisError
        from redis.retry import Retry

        self._wait, self._wait_ms = wait, int(timeout_s * 1000)
        self._redis = UnixDomainSocketConnection(
            path=path,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=timeout_s,
            decode_responses=True,
        )
        try:
            self._redis.connect()
        except (RedisError, OSError) as error:
            raise Refused(f"no connection: {error}") from error

    def ask(self, call: Call) -> Any:
        """Make a call; return its result."""
        key = as_text(call.key)
        if call.op == "read":
            found = self._send("GET", key)
            return None if found is None else json.loads(found)
        if call.op == "write":
            self._send("SET", key, as_value(call.value))
            result = None
        elif call.op == "cas":
            old, new = call.value
            words = "" if old is None else as_value(old), as_value(new)
            result = bool(self._send("EVAL", _CAS, 1, key, *words))
        else:
            raise InvalidArgument(
                f"redis is asked to read, write or cas, and got {call!r}."
            )
        if self._wait:
            self._await_replicas()
        return result

    def _await_replicas(self):
        try:
            enough = self._send("WAIT", self._wait, self._wait_ms) >= self._wait
        except Refused as error:
            raise NoAnswer(str(error)) from error
        if not enough:
            raise NoAnswer(f"fewer than {self._wait} replicas have it")

    def _send(self, *words):
        from redis.exceptions import RedisError, ResponseError

        try:
            self._redis.send_command(*words)
            return self._redis.read_response()
        except ResponseError as error:
            raise Refused(str(error)) from error
        except (RedisError, OSError, ValueError) as error:
            raise NoAnswer(str(error)) from error

    def abort(self) -> None:
        """Make a call that waits in another thread raise NoAnswer."""
        try:
            self._redis._sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass  # it has ended

    def close(self) -> None:
        """Close the connection."""
        self._redis.disconnect()
