"""`Client`: one client of a store: its node, its calls, its pauses and time-out."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from distlab.errors import InvalidArgument
from distlab.network.copies import NotPlain, plain_copy
from distlab.network.node import CALLS_PER_CLIENT
from distlab.trace import Call, Operation

__all__ = [
    "CallSequence",
    "Client",
    "ClientProgress",
    "ClientSession",
    "check_clients",
    "check_seconds",
]


@dataclass(frozen=True)
class Client:
    """One client: it makes one call after another.

    node: the number of the node that it calls. A client is on the side of its node: no
        network partition separates them.
    calls: its calls. A generator is sent the result of each call, None if it was
        refused or timed out: `version = yield Call("read", "x")`. To run a client more
        than once, as a search does, give the function that makes the generator.
    start_s: the time of its first call.
    pause_s: the pause between a response and the next call.
    timeout_s: its time-out: a response that comes later is dropped, and the operation's
        outcome is unknown.
    retries: how often it asks again, with the same request: the node that a refusal
        names, or, after a time-out, the next one. Its operation ends with the last;
        its next call goes to the node that it has asked last.
    """

    node: int
    calls: Iterable[Call] | Callable[[], Generator[Call, Any, None]]
    start_s: float = 0.0
    pause_s: float = 0.0
    timeout_s: float = 1.0
    retries: int = 0


class CallSequence:
    """The calls of one client, one after another.

    number: the client's, for errors about an invalid call.
    """

    def __init__(self, number: int, calls: Iterable[Call] | Callable):
        self._number = number
        source = calls() if callable(calls) else calls
        try:
            self._calls: Iterator = iter(source)
        except TypeError:
            raise InvalidArgument(
                f"client {number}'s calls came as {source!r}, and not as Calls."
            ) from None
        self._send = getattr(self._calls, "send", None)
        self._begun = False

    def next(self, result: Any = None) -> Call | None:
        """Return the next call, None after the last; `result` is the last one's.

        Raises: InvalidArgument for an item that is no Call.
        """
        try:
            if self._send is not None and self._begun:
                call = self._send(result)
            else:
                call = next(self._calls)
        except StopIteration:
            return None
        self._begun = True
        if not isinstance(call, Call):
            raise InvalidArgument(
                f"client {self._number} asks {call!r}, which is no Call. "
                'For example: Call("write", "x", 1)'
            )
        try:
            return plain_copy(call)
        except NotPlain as error:
            raise InvalidArgument(
                f"client {self._number} asks {call!r}, which holds {error}. A call is "
                "made of plain data: numbers, strings, and tuples and lists of them."
            ) from None


class ClientProgress(NamedTuple):
    """How far a client is: whom it asks, and how often it has, as a value.

    ended: the number of calls that have ended. node: the one that it asks. tries: how
    often it has asked for the present call, 0 before the first time. waits: whether it
    waits for a response. doubtful: whether it has waited in vain for one of this call,
    so that the call may still take effect.
    """

    ended: int
    node: int
    tries: int = 0
    waits: bool = False
    doubtful: bool = False

    def request(self, client: int) -> int:
        """Return the request of the present call, of the client with this number."""
        return client * CALLS_PER_CLIENT + self.ended + 1

    def asked(self) -> "ClientProgress":
        """Count one more attempt."""
        return self._replace(tries=self.tries + 1, waits=True)

    def hears(self, node: int, done: bool) -> bool:
        """Return True if a response from a node counts; a late refusal does not."""
        return self.tries > 0 and (done or (self.waits and node == self.node))

    def after(
        self, outcome: str, to: int | None, retries: int, nodes: int
    ) -> tuple["ClientProgress", str]:
        """Return (what follows a response or a time-out, the outcome of the call).

        outcome: "ok", "failed" (refused; `to`: the node to ask instead) or "unknown"
        (timed out). The outcome of the call is "" if the client asks again: it does
        after a time-out, and after a refusal that names a node.
        """
        doubtful = self.doubtful or outcome == "unknown"
        again = outcome == "unknown" or (outcome == "failed" and to is not None)
        if again and self.tries <= retries:
            node = (self.node + 1) % nodes if to is None else to
            return ClientProgress(self.ended, node, self.tries, doubtful=doubtful), ""
        if outcome == "failed" and doubtful:
            outcome = "unknown"
        return ClientProgress(self.ended + 1, self.node), outcome


class ClientSession:
    """A running client: its sequence of calls, and its open call.

    name: its name in the history. number: in its requests. nodes: how many there are.
    call, start_s: of the open call, since its first attempt. attempts: of it.
    """

    def __init__(self, name: int | str, client: Client, number: int, nodes: int):
        self.name, self.client, self.number, self._nodes = name, client, number, nodes
        self.attempts = ClientProgress(0, client.node)
        self.call = self.start_s = self._result = None
        self._asking = CallSequence(name, client.calls)

    @property
    def request(self) -> int | None:
        """The request of its open call, None if there is none."""
        return self.attempts.request(self.number) if self.attempts.tries else None

    @property
    def attempt(self) -> tuple:
        """The present attempt, so that what was planned for it meets no other one."""
        return self.attempts.ended, self.attempts.tries

    def ask(self, now_s: float) -> Call | None:
        """Begin the next call, or one more attempt; return it, None after the last."""
        if not self.attempts.tries:
            call = self._asking.next(self._result)
            if call is None:
                return None
            self.call, self.start_s = call, now_s
        self.attempts = self.attempts.asked()
        return self.call

    def hears(self, request: int, node: int, done: bool) -> bool:
        """Return True if it waits for this response of a node."""
        return request == self.request and self.attempts.hears(node, done)

    def end(
        self, now_s: float, outcome: str, result: Any = None, to: int | None = None
    ) -> Operation | None:
        """End an attempt; return the finished operation, None if it is to ask again."""
        retries = self.client.retries
        after, outcome = self.attempts.after(outcome, to, retries, self._nodes)
        operation = None
        if outcome:
            self._result = result if outcome == "ok" else None
            end_s = None if outcome == "unknown" else now_s
            operation = self.operation(end_s, outcome, self._result)
        self.attempts = after
        return operation

    def operation(
        self, end_s: float | None = None, outcome: str = "unknown", result: Any = None
    ) -> Operation:
        """Return its call as an operation, by default one without a response."""
        return Operation(self.name, *self.call, self.start_s, end_s, outcome, result)


def check_clients(
    clients: Client | Iterable[Client], nodes: int, repeatable: bool = False
) -> list[Client]:
    """Return the clients, one or several, as a list.

    repeatable: whether their calls must be such that can be made more than once.
    Raises: InvalidArgument naming the first invalid one.
    """
    if isinstance(clients, Client) or not isinstance(clients, Iterable):
        clients = [clients]
    clients = list(clients)
    for number, client in enumerate(clients):
        who = f"client {number}"
        if not isinstance(client, Client):
            raise InvalidArgument(
                f"{who} is {client!r}, and no Client. "
                'For example: Client(0, [Call("write", "x", 1)])'
            )
        whole = isinstance(client.node, int) and not isinstance(client.node, bool)
        if not whole or not 0 <= client.node < nodes:
            raise InvalidArgument(
                f"{who} asks node {client.node!r}; of {nodes} nodes the last is "
                f"{nodes - 1}."
            )
        for name in ("start_s", "pause_s", "timeout_s"):
            check_seconds(f"{who}'s {name}", getattr(client, name))
        if client.timeout_s == 0:
            raise InvalidArgument(f"{who} waits for no answer: timeout_s is 0.")
        retries = client.retries
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
            raise InvalidArgument(
                f"{who}'s retries are a number from 0 on, and came as {retries!r}."
            )
        if isinstance(client.calls, Call):
            raise InvalidArgument(
                f"{who}'s calls are one Call; put it into a list: [{client.calls}]"
            )
        if not isinstance(client.calls, Iterable) and not callable(client.calls):
            raise InvalidArgument(
                f"{who}'s calls are a list of Calls, or a generator of them, and not "
                f"{client.calls!r}."
            )
        if repeatable and isinstance(client.calls, Iterator):
            raise InvalidArgument(
                f"{who} is run more than once, and its calls can be gone through only "
                "once. Give a list, or the function that makes the generator without "
                f"calling it: Client({client.node}, ask)"
            )
    return clients


def check_seconds(what: str, value: Any) -> None:
    """Check that `value` is a finite number of seconds, from 0 on.

    Raises: InvalidArgument.
    """
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not 0 <= value < math.inf:
        raise InvalidArgument(f"{what} is a number of seconds, and got {value!r}.")
