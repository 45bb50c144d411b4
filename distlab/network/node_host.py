"""`NodeHost`: the only caller of a node's methods, which checks the effects.

    on_message(0, …) ─▶ None, a list, a generator ─▶ checked, copied ─▶ [Send, Reply, …]
                            │
                            └─ raised, nonsense, never returned ─▶ NodeFailed

All runtimes, on a virtual clock, in a search or as processes, call nodes through a
`NodeHost`, so that the same mistake is reported in the same words everywhere.
"""

import inspect
import math
import random
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from itertools import islice
from reprlib import repr as briefly
from typing import Any, get_args

from distlab.errors import InvalidArgument
from distlab.network.copies import ATOMS, NotPlain, plain_copy
from distlab.network.node import (
    Append,
    CancelTimer,
    Effect,
    Node,
    Note,
    Peers,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
    Truncate,
)
from distlab.network.node_diagnosis import never_returned, no_effects, nonsense, raised
from distlab.network.watchdog import NeverReturned
from distlab.trace import Call

__all__ = ["NodeHost", "check_nodes", "make_node", "new_host"]

_MOST_NODES, _MOST_EFFECTS = 10_000, 100_000
_KINDS = get_args(Effect)
_ARGUMENTS = {
    "on_start": ("saved",),
    "on_client": ("request", "call"),
    "on_message": ("sender", "message"),
    "on_timer": ("name",),
    "on_synced": ("token",),
}


class NodeHost:
    """One node's object, from its start to its crash, and the requests it has open.

    me: its number. nodes: the number of nodes.
    seed: of `node.random`, which is of the class `generator`.
    restarted: whether it has crashed before; it may then answer earlier requests.
    open: requests that it has been given and has not answered -> how often it has.
    Each method returns the effects, in order, with copies of their values.

    Raises: NodeFailed, from each method, with the exception or result, and the place.
    """

    __slots__ = ("_given", "_restarted", "kind", "me", "node", "nodes", "open")

    def __init__(
        self,
        node: Node,
        me: int,
        nodes: int,
        *,
        seed: Any = 0,
        restarted: bool = False,
        generator: type[random.Random] = random.Random,
    ):
        self.node, self.me, self.nodes = node, me, nodes
        self.kind = type(node).__name__
        self.open = {}
        self._restarted = restarted
        self._given = set()  # the requests since the last restart
        node.random = generator(f"{seed} {me}")

    def start(self, saved: dict[str, Any]) -> list[Effect]:
        """Start the node, with its saved values."""
        return self._call("on_start", (plain_copy(saved),))

    def client(self, request: int, call: Call) -> list[Effect]:
        """Deliver a client's call; a retry has the same request."""
        self.open[request] = self.open.get(request, 0) + 1
        if self._restarted:
            self._given.add(request)
        return self._call("on_client", (request, call))

    def message(self, sender: int, message: Any) -> list[Effect]:
        """Deliver a message."""
        return self._call("on_message", (sender, message))

    def timer(self, name: Hashable) -> list[Effect]:
        """Fire a timer."""
        return self._call("on_timer", (name,))

    def synced(self, token: Hashable) -> list[Effect]:
        """Report that the disk has written all that a `Sync` covers."""
        return self._call("on_synced", (token,))

    def clock(self, reading_s: float) -> list[Effect]:
        """Set the reading of the node's clock; no method is called."""
        self.node.clock_s = reading_s
        return []

    def _call(self, method, args):
        returned, where = None, (self.me, self.kind, method, args)
        try:
            returned = getattr(self.node, method)(*args)
            if returned is None:
                return []
            if type(returned) in _KINDS:
                effects = None
            elif hasattr(returned, "__next__"):
                effects = list(map(_as_yielded, islice(returned, _MOST_EFFECTS + 1)))
            else:
                effects = list(islice(returned, _MOST_EFFECTS + 1))
        except NeverReturned as stop:
            raise never_returned(*where, stop) from None
        except (Exception, SystemExit) as error:
            if returned is not None and not isinstance(returned, Iterable):
                raise nonsense(*where, *no_effects(returned)) from None
            raise raised(*where, error) from None
        if effects is None or len(effects) > _MOST_EFFECTS:
            raise nonsense(*where, *no_effects(returned))
        return self._checked(effects, where, returned)

    def _checked(self, effects, where, returned):
        """Check each effect; replace mutable values by copies."""
        gone = False
        for at, effect in enumerate(effects):
            kind = type(effect)
            if kind is Send:
                to, message = effect
                if type(message) not in ATOMS:
                    kept = _copied(message, "sent", where)
                    if kept is not message:
                        effects[at] = Send(to, kept)
                if type(to) is not int or not 0 <= to < self.nodes:
                    raise self._no_such_node(where, effect)
            elif kind is Reply or kind is Refuse:
                request = effect.request
                if times := self.open.pop(request, 0):
                    if times > 1:
                        self.open[request] = times - 1
                elif self._of_an_earlier_life(request):
                    effects[at], gone = None, True
                else:
                    raise _no_such_request(where, effect)
                if kind is Refuse and effect.to is not None:
                    self._check_redirect(effect, where)
                if kind is Reply:
                    result = _copied(effect.result, "answered", where)
                    effects[at] = effects[at] and Reply(request, result)
            elif kind is SetTimer or kind is CancelTimer:
                _check_timer(effect, where)
            elif kind is Save or kind is Append:
                effects[at] = _saved(effect, where)
            elif kind is Truncate:
                _check_length(effect, where)
            elif kind is Sync:
                _check_name("a sync", effect.token, where)
            elif kind is not Note:
                raise nonsense(*where, *no_effects(returned, effect))
        return [effect for effect in effects if effect is not None] if gone else effects

    def _of_an_earlier_life(self, request):
        """Return True if a request may be from before a crash: its reply is dropped."""
        return self._restarted and type(request) is int and request not in self._given

    def _check_redirect(self, effect, where):
        if type(effect.to) is not int or not 0 <= effect.to < self.nodes:
            raise self._no_such_node(where, effect)

    def _no_such_node(self, where, effect):
        verb = "sent a message" if type(effect) is Send else "sent a client on"
        what = f"{verb} to node {briefly(effect.to)}"
        others = f"Its peers are {', '.join(map(str, self.node.peers))}."
        if self.nodes == 1:
            others = "It has no peers."
        return nonsense(*where, what, others)


def _copied(value, verb, where):
    try:
        return plain_copy(value)
    except NotPlain as error:
        what = f"{verb} {briefly(value)}"
        place = f", at {error.where} of it" if error.where else ""
        hint = (
            f"That is {error}{place}, and no plain data. None, numbers, strings "
            "and bytes are, and tuples, lists, dicts, sets and dataclasses of them."
        )
    except RecursionError:
        what = f"{verb} a value that contains itself"
        hint = "Another node could not be sent that. Send a copy of its parts."
    raise nonsense(*where, what, hint)


def _saved(effect, where):
    name, value = effect
    _check_file(name, where)
    return type(effect)(name, _copied(value, "saved", where))


def _check_file(name, where):
    if type(name) is not str:
        what = f"saved a value under the name {briefly(name)}"
        hint = "The name is a string: Save('log', self.log)."
        raise nonsense(*where, what, hint)


def _check_length(effect, where):
    _check_file(effect.name, where)
    if type(effect.length) is not int or effect.length < 0:
        what = f"cut {effect.name!r} to {briefly(effect.length)} items"
        hint = "The length is a number from 0 on: Truncate('log', 3) keeps three."
        raise nonsense(*where, what, hint)


def _check_name(thing, name, where):
    try:
        hash(name)
    except TypeError:
        what = f"named {thing} {briefly(name)}"
        hint = f"A list or a dict names no {thing.split()[1]}. A string, a number or a "
        raise nonsense(*where, what, hint + "tuple can.") from None


def _check_timer(effect, where):
    _check_name("a timer", effect.name, where)
    if type(effect) is SetTimer:
        after_s = effect.after_s
        real = isinstance(after_s, int | float) and not isinstance(after_s, bool)
        if not real or not 0 <= after_s < math.inf:
            what = f"set the timer {effect.name!r} to {briefly(after_s)}"
            hint = "A timer runs out after some seconds: SetTimer('again', 0.1)."
            raise nonsense(*where, what, hint)


def _no_such_request(where, effect):
    request = effect.request
    verb = "answered" if type(effect) is Reply else "refused"
    what = f"{verb} request {briefly(request)}"
    hint = "It was never given it, or had answered it before. The number of a "
    hint += "request is what on_client gets, and it is answered once."
    return nonsense(*where, what, hint)


def _as_yielded(effect):
    """Return a copy of a yielded effect, before its node changes a value in it."""
    if type(effect) in (Send, Save, Append, Reply) and type(effect[1]) not in ATOMS:
        try:
            return type(effect)(effect[0], plain_copy(effect[1]))
        except (NotPlain, RecursionError):
            pass  # this is reported when all effects are there
    return effect


def check_nodes(nodes: int, most: int = _MOST_NODES) -> None:
    """Check that `nodes` is a number from 1 to `most`.

    Raises: InvalidArgument.
    """
    if type(nodes) is not int or not 1 <= nodes <= most:
        raise InvalidArgument(
            f"nodes is a number from 1 to {most:,}, and got {nodes!r}."
        )


def make_node(make: Callable, me: int, nodes: int) -> Node:
    """Return the node that make(me, peers) returns.

    Raises: InvalidArgument if `make` has another signature, or returns no Node;
    NodeFailed if it raised.
    """
    peers = Peers(me, nodes)
    if isinstance(make, Node):
        raise InvalidArgument(
            f"every node needs an object of its own, and got one, {make!r}. "
            f"Give the class: {type(make).__name__}."
        )
    if not callable(make):
        raise InvalidArgument(
            f"nodes are made by a class or a function make(me, peers); got {make!r}."
        )
    _check_signature(make, me, peers)
    kind = getattr(make, "__name__", "make")
    try:
        node = make(me, peers)
    except NeverReturned as stop:
        raise never_returned(me, kind, "__init__", (), stop) from None
    except (Exception, SystemExit) as error:
        raise raised(me, kind, "__init__", (), error) from None
    if not isinstance(node, Node):
        raise InvalidArgument(
            f"make({me}, {peers}) returned {node!r}, which is no Node. "
            "A protocol is a subclass: class Store(Node)."
        )
    if getattr(node, "me", None) != me or not hasattr(node, "peers"):
        raise InvalidArgument(
            f"{type(node).__name__} does not know its number and peers. "
            "Let its __init__ begin with super().__init__(me, peers)."
        )
    _check_methods(type(node))
    return node


def new_host(
    make: Callable,
    me: int,
    nodes: int,
    seed: Any,
    restarts: int,
    generator: type[random.Random] = random.Random,
) -> NodeHost:
    """Make a node that has started so often before; return its host."""
    node = make_node(make, me, nodes)
    how = {"seed": f"{seed} {restarts}", "restarted": restarts > 0}
    return NodeHost(node, me, nodes, generator=generator, **how)


def _check_signature(make, me, peers):
    try:
        inspect.signature(make).bind(me, peers)
    except TypeError as error:
        name = getattr(make, "__name__", "make")
        raise InvalidArgument(
            f"a node is made by {name}(me, peers), but {name} does not take that: "
            f"{error}."
        ) from None
    except ValueError:
        pass  # some built-ins have no signature


@lru_cache(maxsize=256)
def _check_methods(kind):
    for method, names in _ARGUMENTS.items():
        try:
            inspect.signature(getattr(kind, method)).bind("self", *names)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"{kind.__name__}.{method} is called as "
                f"{method}({', '.join(names)}), and does not take that."
            ) from None
