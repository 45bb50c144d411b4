"""One connection to a member of etcd, over the JSON face of its gRPC.

Which errors say that nothing was done, so that an operation "failed": no connection;
"no leader", which our requests ask a member to check before it does anything with them;
"too many requests", checked then as well; and refusals of the request itself. A time
out is none of them, nor is "leader changed": the proposal may be in a log already, and
come into force when a member that has it leads. All such are "unknown".
"""

import base64
import http.client
import json
import socket
from typing import Any

from distlab.engines.driving import NoAnswer, Refused, as_text, as_value
from distlab.errors import InvalidArgument
from distlab.trace import Call

__all__ = ["Connection"]

_INVALID_ARGUMENT = 3  # gRPC's code for a request that is refused for what it says
# What a member finds before it proposes anything to the others.
_REFUSALS = "etcdserver: no leader", "etcdserver: too many requests"
_CHECK_LEADER = {"Grpc-Metadata-Hasleader": "true"}


class Connection:
    """One connection to a member, over the JSON face of its gRPC."""

    def __init__(self, path, timeout_s, serializable=False):
        self._serializable = serializable
        self._http = http.client.HTTPConnection("etcd", timeout=timeout_s)
        self._http.auto_open = False  # it would not know the way
        self._http.sock = socket.socket(socket.AF_UNIX)
        self._http.sock.settimeout(timeout_s)
        try:
            self._http.sock.connect(path)
        except OSError as error:
            self.close()
            raise Refused(f"no connection: {error}") from error

    def ask(self, call: Call) -> Any:
        """Return the result of a call."""
        key, value = _bytes(as_text(call.key)), call.value
        if call.op == "read":
            request = {"key": key, "serializable": self._serializable}
            check = {} if self._serializable else _CHECK_LEADER
            found = self.post("/v3/kv/range", request, check).get("kvs")
            return _value(found[0]["value"]) if found else None
        if call.op == "write":
            request = {"key": key, "value": _bytes(as_value(value))}
            self.post("/v3/kv/put", request, _CHECK_LEADER)
            return None
        if call.op == "cas":
            return self._cas(key, *value)
        raise InvalidArgument(f"etcd is asked to read, write or cas, and got {call!r}.")

    def _cas(self, key, old, new):
        compare = {"key": key, "target": "VERSION", "version": 0}
        if old is not None:
            compare = {"key": key, "target": "VALUE", "value": _bytes(as_value(old))}
        put = {"requestPut": {"key": key, "value": _bytes(as_value(new))}}
        request = {"compare": [compare], "success": [put]}
        done = self.post("/v3/kv/txn", request, _CHECK_LEADER)
        return done.get("succeeded", False)

    def post(self, path, request, headers):
        """Return the answer to a request.

        Raises: Refused if it was not done, NoAnswer if that is not known.
        """
        try:
            self._http.request("POST", path, json.dumps(request), headers)
            response = self._http.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(repr(error)) from error
        if response.status == 200:
            return answer
        why = answer.get("error", "")
        if answer.get("code") == _INVALID_ARGUMENT or why in _REFUSALS:
            raise Refused(why)
        raise NoAnswer(why)

    def abort(self) -> None:
        """End a wait for an answer in another thread."""
        try:
            self._http.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass  # it has ended

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def _bytes(text):
    """Return text as the gateway has bytes."""
    return base64.b64encode(text.encode()).decode()


def _value(text):
    return json.loads(base64.b64decode(text))
