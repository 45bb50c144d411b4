"""States: all of nodes, clients and network at one time, as a value, a `State`.

A step leads from one state to another and changes neither, so a search can continue
from any state that it has seen, and recognizes one that it reaches by another path.

Big values, such as the memory of a node, are kept once and represented here by a
number. A node's behaviour depends only on its memory and its input, so each reaction
is computed once, too, and looked up from then on.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.client import CallSequence
from distlab.network.copies import NotPlain, SplitMix64, freeze, thaw
from distlab.network.describe import describe
from distlab.network.disk import check_list
from distlab.network.node import (
    Append,
    CancelTimer,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
    Truncate,
)
from distlab.network.node_host import NodeHost, make_node
from distlab.network.schedules.monitors import Monitor, violation
from distlab.network.watchdog import Watchdog

__all__ = ["NodeMemo", "Pending", "State"]

_HOSTS_KEPT = 4096
_VALUES = {  # the field of an effect that is a value of any kind
    Send: "message",
    Reply: "result",
    Save: "value",
    Append: "item",
    SetTimer: "name",
    CancelTimer: "name",
    Sync: "token",
}


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
    has started again. disks: of each node (files, earlier): its files, (name, number),
    and what they were before each write that no sync covers, if that can matter.
    timers: of each node, (round, number of name), in order. syncs: of each node, oldest
    first, (number of token, how many writes it covers). clocks: their readings.
    pending: messages under way, in the default order.
    clients: (`ClientProgress`, numbers of results). sides: the side of each node, in a
    network partition. severed: links that are cut, (src, dst).
    ghosts: number of each monitor's memory. broken: number of what one finds wrong.
    crashes to clock_jumps, fired: how often that has happened.
    past: the clients' calls (0, client) and responses (1, client, outcome, number), in
        order. Calls with no response between them are sorted, as none is the first.
    failed: the number of a NodeFailed, if a node has failed.
    """

    nodes: tuple
    restarts: tuple
    disks: tuple
    timers: tuple
    syncs: tuple
    clocks: tuple
    clients: tuple
    ghosts: tuple
    pending: tuple = ()
    sides: tuple | None = None
    severed: tuple = ()
    crashes: int = 0
    power_losses: int = 0
    disk_losses: int = 0
    drops: int = 0
    duplicates: int = 0
    splits: int = 0
    cuts: int = 0
    clock_jumps: int = 0
    fired: int = 0
    past: tuple = ()
    failed: int = 0
    broken: int = 0


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

    def __init__(
        self,
        make: Callable,
        nodes: int,
        clients: list,
        seed: Any,
        monitors: Iterable[Monitor] = (),
    ):
        self.make, self.nodes, self.clients, self.seed = make, nodes, clients, seed
        self.values = _ValueTable()
        self.watchdog = Watchdog()
        self.failures = [None]
        self._done, self._asked, self._words = {}, {}, {}
        self.ghosts = tuple(
            self._number(monitor, type(monitor).__name__, monitor)
            for monitor in monitors
        )
        self.host = lru_cache(_HOSTS_KEPT)(self.values.__getitem__)  # only to look at

    def start(self, node: int, restarts: int, files: tuple, clock_s: float) -> tuple:
        """Return (memory, effects, failure), as `do` does, of a start from a disk."""
        key = (node, restarts, files, clock_s)
        if key not in self._done:
            self._done[key] = self._started(*key)
        return self._done[key]

    def _started(self, node, restarts, files, clock_s):
        saved = {name: self.values[number] for name, number in files}
        seed = f"{self.seed} {restarts}"
        try:
            new = self.watchdog.call(make_node, self.make, node, self.nodes)
            how = {"seed": seed, "restarted": restarts > 0, "generator": SplitMix64}
            host = NodeHost(new, node, self.nodes, **how)
            if clock_s:
                host.clock(clock_s)
            return self._react(host, "start", saved)
        except NodeFailed as error:
            return self.fails(error)

    def do(self, memory: int, method: str, *args: Any) -> tuple:
        """Return (memory, effects, 0) after a call of a node's method.

        memory: its number. args: whole numbers as they are, then the number of a value.
        Effects have such numbers as their values. For a node that fails, the last item
        is the number of its failure.
        """
        key = (memory, method, *args)
        done = self._done.get(key)
        if done is None:
            *plain, last = args
            try:
                host = self.awake(memory)
                done = self._react(host, method, *plain, self.values[last])
            except NodeFailed as error:
                done = self.fails(error)
            self._done[key] = done
        return done

    def awake(self, memory: int) -> NodeHost:
        """Return the host of a node with this memory, to be called."""
        return self.values[memory]

    def fails(self, error: NodeFailed) -> tuple:
        """Return (0, no effects, number) for a node that fails, as `do` does."""
        self.watchdog.inside = False
        self.failures.append(error)
        return 0, (), len(self.failures) - 1

    def _react(self, host, method, *args):
        coded = tuple(map(self._coded, self.called(host, method, args)))
        return self.remember(host), coded, 0

    def called(self, host: NodeHost, method: str, args: tuple) -> list:
        """Call a node's method, watched; return its effects."""
        return self.watchdog.call(getattr(host, method), *args)

    def _coded(self, effect):
        """Return an effect with the number of its value."""
        field = _VALUES.get(type(effect))
        if field is None:
            return effect
        number = self.values.number(freeze(getattr(effect, field)))
        return effect._replace(**{field: number})

    def remember(self, host: NodeHost) -> int:
        """Return the number of a node's memory."""
        return self._number(host, f"node {host.me} ({host.kind})", host.node)

    def _number(self, value, owner, parts):
        try:
            return self.values.number(freeze(value))
        except NotPlain as error:
            names = [n for n, part in vars(parts).items() if not _freezes(part)]
            raise InvalidArgument(
                f"{owner} holds {error}, in {', '.join(names)}, which cannot be "
                "copied. A search goes back to what it was before; let it remember "
                "plain data: numbers, strings, lists and dicts."
            ) from None

    def written(self, number: int, effect: Append | Truncate) -> int:
        """Return the number of a list after a write; 0 is one that is not there yet."""
        key = number, type(effect), effect[1]
        if key not in self._done:
            kept = self.values[number] if number else []
            check_list(kept, effect)
            if type(effect) is Append:
                kept.append(self.values[effect.item])
            else:
                del kept[effect.length :]
            self._done[key] = self.values.number(freeze(kept))
        return self._done[key]

    def observe(self, ghosts: tuple, nodes: tuple, node: int) -> tuple:
        """Return (monitors' memories, number of what one finds wrong, 0 if none does).

        nodes: their memories. node: the one that has acted.
        """
        key = ghosts, nodes, node
        if key not in self._done:
            objects = [self.host(memory).node if memory else None for memory in nodes]
            after, why = [], ""
            for number in ghosts:
                monitor = self.values[number]
                name = type(monitor).__name__
                why = why or violation(monitor.observe, objects, node, name=name)
                after.append(self._number(monitor, name, monitor))
            broken = self.values.number(why) if why else 0
            self._done[key] = tuple(after), broken
        return self._done[key]

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


def _freezes(value):
    try:
        freeze(value)
    except NotPlain:
        return False
    return True
