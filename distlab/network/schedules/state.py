"""States: all of nodes, clients and network at one time, as a value, a `State`.

A step leads from one state to another and changes neither, so a search can continue
from any state that it has seen, and recognizes one that it reaches by another path.

Big values, such as the memory of a node, are kept once and represented here by a
number. A node's behaviour depends only on its memory and its input, so each reaction
is computed once, too, and looked up from then on.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.client import CallSequence
from distlab.network.copies import NotPlain, SplitMix64, freeze, thaw
from distlab.network.describe import describe, describe_call
from distlab.network.node import CancelTimer, Note, Refuse, Reply, Save, Send, SetTimer
from distlab.network.node_host import NodeHost, make_node
from distlab.network.watchdog import Watchdog

__all__ = ["NodeMemo", "Pending", "State"]


class Pending(NamedTuple):
    """A message under way from src to dst.

    round: the length of the chain of messages that led to it. number: of its content.
    """

    round: int
    src: int
    dst: int
    number: int


class State(NamedTuple):
    """One state. Each "number" below refers to a value in `NodeMemo.values`.

    nodes: number of each node's memory, 0 while it is dead. restarts: how often each
    has started again. disks: (name, number of value) of each saved value.
    timers: of each node, (round, number of name), in order.
    pending: messages under way, in the default order.
    clients: (index of its call, whether it waits for it, numbers of results).
    sides: the side of each node, if the network is partitioned.
    crashes, drops, duplicates, splits, fired: how often that has happened.
    past: the clients' calls (0, client) and responses (1, client, outcome, number), in
        order. Calls with no response between them are sorted, as none is the first.
    failed: the number of a NodeFailed, if a node has failed.
    """

    nodes: tuple
    restarts: tuple
    disks: tuple
    timers: tuple
    pending: tuple
    clients: tuple
    sides: tuple | None = None
    crashes: int = 0
    drops: int = 0
    duplicates: int = 0
    splits: int = 0
    fired: int = 0
    past: tuple = ()
    failed: int = 0


class _ValueTable:
    """A table of values that states refer to by number, from 1; equal ones share it."""

    def __init__(self):
        self._numbers = {}
        self._frozen = [None]

    def number(self, frozen: Any) -> int:
        """Return the number of a frozen value."""
        number = self._numbers.get(frozen)
        if number is None:
            number = self._numbers[frozen] = len(self._frozen)
            self._frozen.append(frozen)
        return number

    def frozen(self, number: int) -> Any:
        """Return the frozen value with a number."""
        return self._frozen[number]

    def __getitem__(self, number):
        return thaw(self._frozen[number])


class NodeMemo:
    """A memo of nodes' reactions and clients' calls, each computed once.

    values: the table that states refer to. failures: NodeFailed by their numbers.
    """

    def __init__(self, make: Callable, nodes: int, clients: list, seed: Any):
        self.make, self.nodes, self.clients, self.seed = make, nodes, clients, seed
        self.values = _ValueTable()
        self.watchdog = Watchdog()
        self.failures = [None]
        self._done, self._asked, self._words = {}, {}, {}

    def start(self, node: int, restarts: int, disk: tuple) -> tuple:
        """Return (memory, effects, failure), as `do` does, of a start from a disk."""
        key = (node, restarts, disk)
        if key not in self._done:
            saved = {name: self.values[number] for name, number in disk}
            self._done[key] = self._started(node, restarts, saved)
        return self._done[key]

    def _started(self, node, restarts, saved):
        seed = f"{self.seed} {restarts}"
        try:
            new = self._watched(make_node, self.make, node, self.nodes)
            how = {"seed": seed, "restarted": restarts > 0, "generator": SplitMix64}
            host = NodeHost(new, node, self.nodes, **how)
            return self._coded(host, self._watched(host.start, saved))
        except NodeFailed as error:
            return self._failed(error)

    def do(self, memory: int, method: str, *args: Any) -> tuple:
        """Return (memory, effects, 0) after a call of a node's method.

        memory: its number. args: whole numbers as they are, then the number of a value.
        An effect is a tuple that begins with its class. For a node that fails, the last
        item is the number of its failure.
        """
        key = (memory, method, *args)
        done = self._done.get(key)
        if done is None:
            host = self.values[memory]
            *plain, last = args
            try:
                args = *plain, self.values[last]
                effects = self._watched(getattr(host, method), *args)
                done = self._coded(host, effects)
            except NodeFailed as error:
                done = self._failed(error)
            self._done[key] = done
        return done

    def _watched(self, method, *args):
        self.watchdog.calls += 1
        self.watchdog.inside = True
        result = method(*args)
        self.watchdog.inside = False
        return result

    def _failed(self, error):
        self.watchdog.inside = False
        self.failures.append(error)
        return 0, (), len(self.failures) - 1

    def _coded(self, host, effects):
        number, coded = self.values.number, []
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                coded.append((Send, effect.to, number(freeze(effect.message))))
            elif kind is Reply:
                result = number(freeze(effect.result))
                coded.append((Reply, effect.request, "ok", result))
            elif kind is Refuse:
                coded.append((Reply, effect.request, "failed", number(None)))
            elif kind is Save:
                coded.append((Save, effect.name, number(freeze(effect.value))))
            elif kind is SetTimer or kind is CancelTimer:
                coded.append((kind, number(freeze(effect.name))))
            else:
                assert kind is Note
        return number(self._memory(host)), tuple(coded), 0

    def _memory(self, host):
        try:
            return freeze(host)
        except NotPlain as error:
            raise self._cannot_be_copied(host, error) from None

    def _cannot_be_copied(self, host, error):
        names = [n for n, value in vars(host.node).items() if not _freezes(value)]
        what = f"node {host.me} ({host.kind}) holds {error}, in {', '.join(names)}"
        return InvalidArgument(
            f"{what}, which cannot be copied. A search goes back to what a node was "
            "before; let it remember plain data: numbers, strings, lists and dicts."
        )

    def call(self, client: int, index: int, results: tuple) -> int:
        """Return the number of a client's next call, 0 after the last.

        index: the number of calls it has made. results: numbers of their results.
        """
        key = (client, index, results)
        if key not in self._asked:
            asking = CallSequence(client, self.clients[client].calls)
            described = [None] + [self.values[result] for result in results]
            described += [None] * (index + 1 - len(described))
            call = None
            for result in described:
                call = asking.next(result)
                if call is None:
                    break
            self._asked[key] = 0 if call is None else self.values.number(freeze(call))
        return self._asked[key]

    def with_result(self, client: int, results: tuple, result: int) -> tuple:
        """Return `results` with one more, or () if the client's calls ignore them."""
        return (*results, result) if callable(self.clients[client].calls) else ()

    def words(self, number: int, described: Callable = describe) -> str:
        """Return a value in words."""
        if number not in self._words:
            self._words[number] = described(self.values[number])
        return self._words[number]

    def call_words(self, number: int) -> str:
        """Return a call in words."""
        return self.words(number, describe_call)


def _freezes(value):
    try:
        freeze(value)
    except NotPlain:
        return False
    return True
