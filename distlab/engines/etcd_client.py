"""One connection to a member of etcd, over the JSON gateway of its gRPC API.

These errors guarantee that the operation was not done, so it "failed": no connection;
"no leader", which our requests make a member check before it processes them;
"too many requests", checked then as well; and refusals of the request itself. A
time-out is none of them, nor is "leader changed": the proposal may be in a log already,
and be committed when a member that has it leads. All such are "unknown".
"""

import base64
import http.client
import json
import socket
from typing import Any

from distlab.engines.store_clients import NoAnswer, Refused, as_text, as_value
from distlab.errors import InvalidArgument
from distlab.trace import Call

__all__ = ["EtcdConnection"]

_INVALID_ARGUMENT = 3  # gRPC's code for a request with invalid content
# Errors that a member returns before it proposes anything to the others.
_REFUSALS = "etcdserver: no leader", "etcdserver: too many requests"
_CHECK_LEADER = {"Grpc-Metadata-Hasleader": "true"}


class EtcdConnection:
    """One connection to a member, over the JSON gateway of its gRPC API."""

    def __init__(self, path, timeout_s, serializable=False):
        self._serializable = serializable
        self._http = http.client.HTTPConnection("etcd", timeout=timeout_s)
        self._http.auto_open = False  # it would connect by TCP to a host "etcd"
        self._http.sock = socket.socket(socket.AF_UNIX)
        self._http.sock.settimeout(timeout_s)
        try:
            self._http.sock.connect(path)
        except OSError as error:
            self.close()
            raise Refused(f"no connection: {error}") from error

    def ask(self, call: Call) -> Any:
        """Make a call; return its result."""
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
        """Send a request; return the response.

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
        """Make a call that waits in another thread raise NoAnswer."""
        try:
            self._http.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass  # it has ended

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def _bytes(text):
    """Return text in base64, the gateway's encoding of bytes."""
    return base64.b64encode(text.encode()).decode()


def _value(text):
    return json.loads(base64.b64decode(text))
