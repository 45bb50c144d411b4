"""What nodes, clients and deliveries are checked for before anything starts."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from distlab.errors import InvalidArgument
from distlab.network.client import Client
from distlab.network.delivery import Delivery
from distlab.network.plain import NotPlain, copied
from distlab.trace import Call

__all__ = [
    "Asking",
    "check_again",
    "check_clients",
    "check_delivery",
    "check_nodes",
    "check_seconds",
]

_MOST_NODES = 10_000


def check_nodes(nodes: int, most: int = _MOST_NODES) -> None:
    """Refuse what is no number of nodes.

    Raises: InvalidArgument.
    """
    whole = isinstance(nodes, int) and not isinstance(nodes, bool)
    if not whole or not 1 <= nodes <= most:
        raise InvalidArgument(
            f"nodes is a number from 1 to {most:,}, and got {nodes!r}."
        )


def check_clients(clients: Client | Iterable[Client], nodes: int) -> list[Client]:
    """Return the clients, one or several, as a list.

    Raises: InvalidArgument naming the first that cannot be.
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
        if isinstance(client.calls, Call):
            raise InvalidArgument(
                f"{who}'s calls are one Call; put it into a list: [{client.calls}]"
            )
        if not isinstance(client.calls, Iterable) and not callable(client.calls):
            raise InvalidArgument(
                f"{who}'s calls are a list of Calls, or a generator of them, and not "
                f"{client.calls!r}."
            )
    return clients


def check_seconds(what: str, value: Any) -> None:
    """Refuse what is no number of seconds, from 0 on.

    Raises: InvalidArgument.
    """
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not 0 <= value < math.inf:
        raise InvalidArgument(f"{what} is a number of seconds, and got {value!r}.")


def check_delivery(delivery: Delivery) -> None:
    """Refuse a delivery that cannot be.

    Raises: InvalidArgument.
    """
    if not isinstance(delivery, Delivery):
        raise InvalidArgument(
            f"delivery is {delivery!r}. For example: Delivery(delay_s=(0.01, 0.02))"
        )
    try:
        shortest, longest = delivery.delay_s
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{delivery}: delay_s is the shortest and the longest time, (0.001, 0.003)."
        ) from None
    check_seconds("the shortest delay", shortest)
    check_seconds("the longest delay", longest)
    if shortest > longest:
        raise InvalidArgument(f"{delivery}: the shortest delay is above the longest.")
    for name in ("loss", "duplicate"):
        share = getattr(delivery, name)
        real = isinstance(share, int | float) and not isinstance(share, bool)
        if not real or not 0 <= share <= 1:
            raise InvalidArgument(f"{delivery}: {name} is a share, from 0 to 1.")


def check_again(clients: list[Client]) -> None:
    """Refuse clients whose calls can be gone through only once.

    Raises: InvalidArgument naming the first.
    """
    for number, client in enumerate(clients):
        if isinstance(client.calls, Iterator):
            raise InvalidArgument(
                f"client {number} is run more than once, and its calls can be gone "
                "through only once. Give a list, or the function that makes the "
                f"generator without calling it: Client({client.node}, ask)"
            )


class Asking:
    """What one client asks, one call after another.

    number: the client's, for what is said about a call that is none.
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

        Raises: InvalidArgument for what is no Call.
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
            return copied(call)
        except NotPlain as error:
            raise InvalidArgument(
                f"client {self._number} asks {call!r}, which holds {error}. A call is "
                "made of plain data: numbers, strings, and tuples and lists of them."
            ) from None
