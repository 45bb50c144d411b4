"""`RelayedComm`: a Comm whose messages all go through one stream, to a relay.

    rank ── "send to 1, float32" and the bytes ──▶ relay ── waits for rank 1's receive
         ◀───────── "done" ─────────────────────────┘

The relay matches messages, times them and records the events. A rank has no process
group and shares no memory, so no code that runs in it can change the relay's record.

A request is a line of JSON, then bytes; so is its response, which names the request.
Marks have no response.
"""

import json
import threading
import time
from contextlib import contextmanager

import torch

from distlab.comm.buffers import filled
from distlab.comm.comm import Comm, Request
from distlab.comm.transfer import type_of
from distlab.errors import DistlabError, MessageMismatch
from distlab.peers import Disagreement

__all__ = ["RelayStream", "RelayedComm"]

_ERRORS = {each.__name__: each for each in (MessageMismatch, Disagreement, ValueError)}


class RelayStream:
    """The rank's end of the stream; its threads may use it at once, as a process group.

    send, receive: functions that transfer one frame.

    Invariant: one thread at a time reads the stream, and passes to each of the others
    the response to its request.
    """

    def __init__(self, send, receive):
        self._send, self._receive = send, receive
        self._pen, self._arrivals = threading.Lock(), threading.Condition()
        self._numbers = iter(range(2**62))
        self._answers, self._read_by_one = {}, False

    def tell(self, request: dict, data: bytes = b"") -> None:
        """Send a request that has no response."""
        with self._pen:
            self._send(b"?" + json.dumps(request).encode() + b"\n" + data)

    def ask(self, request: dict, data: bytes = b"") -> tuple[dict, memoryview]:
        """Send a request; return its response, and the bytes that came with it.

        Raises: the error that the relay reports.
        """
        number = next(self._numbers)
        self.tell(request | {"asks": number}, data)
        answer, arrived = self._answer_to(number)
        if "error" in answer:
            raise _ERRORS.get(answer["error"], DistlabError)(answer["message"])
        return answer, arrived

    def _answer_to(self, number):
        with self._arrivals:
            while number not in self._answers:
                if self._read_by_one:
                    self._arrivals.wait()
                else:
                    self._read()
            return self._answers.pop(number)

    def _read(self):
        """Read the next response, of any request; the caller holds `_arrivals`."""
        self._read_by_one = True
        self._arrivals.release()
        try:
            frame = self._receive()
        finally:
            self._arrivals.acquire()
            self._read_by_one = False
            self._arrivals.notify_all()
        end = frame.index(b"\n")
        answer = json.loads(frame[:end])
        self._answers[answer["to"]] = answer, memoryview(frame)[end + 1 :]


class _Pen:
    """A stub of `Recorder`: it sends flags and marks to the relay, which records them.

    step: this rank's n-th Comm call; the relay counts for itself.
    """

    def __init__(self, line):
        self._line = line
        self._flags = 0
        self.step = 0

    def knows(self, group):
        """Return True: the relay has registered the group."""
        return True

    def begin(self):
        self.step = 0

    def now(self, state):
        """Do nothing: the relay sees itself how the call ends."""

    def raise_flag(self, flag):
        if not self._flags & flag:
            self._flags |= flag
            self._line.tell({"do": "flag", "flag": flag})

    def point(self, kind, label):
        self._line.tell({"do": "point", "kind": kind, "label": label})


class RelayedComm(Comm):
    """The Comm of a rank whose messages are carried by a relay.

    An `isend` sends the tensor as it is at that moment.

    sleeps: True if `work` takes real time, not that of the relay's clock.
    """

    def __init__(
        self, rank: int, world_size: int, line: RelayStream, *, sleeps: bool = True
    ):
        super().__init__(rank, world_size, recorder=_Pen(line))
        self._line, self._sleeps = line, sleeps
        self._calls = iter(range(1, 2**62))
        self._works = iter(range(2**62))

    def ask(self, question: object) -> object:
        """Return the answer of the process that started this world; both plain data."""
        self.started.drain()
        return self.ask_at_once(question)

    def ask_at_once(self, question: object) -> object:
        """Return the same as `ask`, without waiting for started collectives."""
        answer, _ = self._line.ask({"do": "ask", "question": question})
        return answer["answer"]

    @contextmanager
    def work(self, label: str, *, seconds: float = 0.0):
        """Record the time of the body in the trace, `seconds` at least."""
        number, start = next(self._works), time.monotonic()
        self._line.tell({"do": "work", "number": number})
        yield
        if self._sleeps:
            time.sleep(max(0.0, start + seconds - time.monotonic()))
        done = {"do": "worked", "number": number, "label": str(label)}
        self._line.tell(done | {"seconds": float(seconds)})

    def check_agreement(self, number, words, group=""):
        """Do nothing: the relay compares."""

    def _transfer(self, kind, *, out=None, into=None):
        *_, arrived = self._call(kind, True, out, into)
        _land(arrived, into)

    def _begin(self, kind, tensor, *, out=None, into=None):
        number, *_ = self._call(kind, False, out, into)

        def finish():
            _, arrived = self._line.ask({"do": "wait", "call": number})
            _land(arrived, into)
            return tensor if into is None else filled(tensor, into[0])

        def is_over():
            return self._line.ask({"do": "done", "call": number})[0]["done"]

        return finish, is_over, number

    def _receive_any(self, buffer):
        into = {"into": [-1, type_of(buffer), buffer.nbytes]}
        _, answer, arrived = self._ask_for("recv", into)
        _land(arrived, (buffer, -1))
        self._last_src = self.ranks.index(answer["from"])

    def _wait_any(self, requests):
        if all(isinstance(each, Request) for each in requests):
            calls = [each._sides for each in requests]
            return self._line.ask({"do": "any", "calls": calls})[0]["place"]
        return super()._wait_any(requests)

    def _call(self, kind, waits, out, into):
        sides = self._offer_sides(out, into)
        data = _in_bytes(out[0]).numpy().tobytes() if out else b""
        return self._ask_for(kind, sides, data, waits)

    def _ask_for(self, kind, sides, data=b"", waits=True):
        number = next(self._calls)
        request = {"do": "call", "call": number, "kind": kind, "waits": waits}
        request["group"] = self.group
        return number, *self._line.ask(request | sides, data)

    def _offer_sides(self, out, into):
        sides = {}
        if out is not None:
            sides["out"] = [self.ranks[out[1]], type_of(out[0])]
        if into is not None:
            src = self.ranks[into[1]]
            sides["into"] = [src, type_of(into[0]), into[0].nbytes]
        return sides

    def _give_object(self, data, dst):
        self._ask_for("send", {"out": [self.ranks[dst], "object"]}, data)

    def _take_object(self, src):
        *_, data = self._ask_for("recv", {"into": [self.ranks[src], "object", -1]})
        return bytes(data)

    def _meet(self):
        self._ask_for("barrier", {"words": "barrier"})

    def _split(self, color, key, name, words):
        said = {"words": words, "split": [color, key, name]}
        _, answer, _ = self._ask_for("barrier", said)
        return answer["group"] and self.among(answer["ranks"], answer["group"])


def _land(arrived, into):
    if into is not None and len(arrived):
        _in_bytes(into[0]).copy_(torch.frombuffer(arrived, dtype=torch.uint8))


def _in_bytes(tensor):
    """Return a contiguous tensor's bytes; numpy gives an empty one any stride."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
