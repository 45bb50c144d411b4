"""The check of a shopping cart that answers on both sides of a split, and heals.

one node alone  ─▶ add, remove, add again
a split         ─▶ nothing that either side did is lost, and nothing comes back
many runs       ─▶ the same, by the definition, with losses, doubles, overtaking
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from distlab.faults import Split
from distlab.grading.agreement.always_answers import answered_at_once
from distlab.grading.agreement.cart_oracle import expected
from distlab.grading.agreement.nodes_on_trial import OnTrial, Wrong
from distlab.network import Client, Delivery
from distlab.trace import Call, Operation

__all__ = ["HealedCart"]

_RUNS, _FINALLY_S = 16, 3.0
_ROUGH = Delivery((0.001, 0.15), loss=0.1, duplicate=0.3)
_SPLIT_S = (2.0, 4.0)


@dataclass
class HealedCart(OnTrial):
    """A cart on several nodes: what was added stays, until somebody who saw it removes.

    case: "one node", "a split" or "many runs".
    """

    _repeats = True
    titles: ClassVar[dict[str, str]] = {
        "one node": "a cart on one node, nobody else there",
        "a split": "both sides of a split fill and empty the cart",
        "many runs": "lost, doubled and overtaking messages, many runs",
    }

    def _try(self):
        if self.case == "one node":
            self._alone()
        elif self.case == "a split":
            for plan in _PLANS:
                self._split(*plan)
        else:
            for number in range(_RUNS):
                self._run(number)

    def _alone(self):
        asked = "add tea, add milk, read, remove tea, read, add tea, add tea, read, "
        asked += "remove tea, remove jam, read"
        clients = [Client(0, [_call(words) for words in asked.split(", ")])]
        run = self.simulate(1, clients)
        answered_at_once(run, HINTS)
        cart, removed = set(), set()
        for number, one in enumerate(run.history, 1):
            if one.op == "add":
                cart.add(one.value)
            elif one.op == "remove":
                removed |= {one.value}
                cart.discard(one.value)
            elif _items(one) != sorted(cart):
                until = _lanes(list(run.history)[:number])
                found = f"{until}\nThere should be {sorted(cart)}."
                raise Wrong(found, HINTS[self._local(one, cart, removed)])

    def _local(self, one, cart, removed):
        items = _items(one)
        if items is None:
            return "no list"
        if set(items) - cart:
            return "kept"
        return "again" if set(cart) - set(items) <= removed else "own"

    # ---- a split ---------------------------------------------------------------------

    def _split(self, before, left, right, needed, gone):
        """Fill the cart, split, change it on both sides; what is in it then?"""
        run = self._parted(before, left, right)
        answered_at_once(run, HINTS)
        self._compare(run, 7, needed, gone, _added(left, right))

    def _parted(self, before, left, right):
        clients = [_client(0, before, 0.1)]
        clients += [_client(1, left, 2.5), _client(2, right, 2.5)]
        clients += [Client(node, [Call("read", "cart")], 7) for node in range(3)]
        split = Split(_SPLIT_S[0], [0, 1], [2], until_s=_SPLIT_S[1])
        return self.simulate(3, clients, faults=split, seed=self.drawn)

    def _compare(self, run, end_s, needed, gone, sides=()):
        """Compare what all nodes read in the end with what has to be there."""
        reads = [one for one in run.history if one.start >= end_s]
        carts = [_items(one) for one in reads]
        found = f"{_lanes(o for o in run.history if o.start < end_s)}\n"
        found += f"Much later the nodes read {', '.join(map(str, carts))}."
        if None in carts:
            raise Wrong(found, HINTS["no list"], run.trace)
        added = {one.value for one in run.history if one.op == "add"}
        for cart in carts:
            for item in sorted(set(needed) - set(cart)):
                kind = needed[item]
                if kind == "lost" and sides:
                    kind = self._lost(carts, sides)
                told = f"{found}\n{item} should be there."
                raise Wrong(told, HINTS[kind], run.trace)
        for cart in carts:
            for item in sorted(gone & set(cart)):
                told = f"{found}\n{item} should not be there."
                raise Wrong(told, HINTS["back"], run.trace)
            if set(cart) - added:
                raise Wrong(found, HINTS["nobody"], run.trace)
        if any(cart != carts[0] for cart in carts):
            raise Wrong(found, HINTS["differ"], run.trace)

    def _lost(self, carts, sides):
        """Say whether replicas differ, one side lost all, or items were mixed up."""
        if any(cart != carts[0] for cart in carts):
            return "differ"
        some = [f"add {item}" for item in ("tea", "egg", "fig")]
        other = self._parted([], some, ["add jam"])
        reads = [_items(one) or [] for one in other.history if one.start >= 7]
        mixed = _mixed(carts, sides) or _mixed(reads, _added(some, ["add jam"]))
        return "tags" if mixed else "lost"

    # ---- many runs -------------------------------------------------------------------

    def _run(self, number):
        clients, how = _drawn(f"{self.drawn} {number}")
        wrong = self._wrong(clients, how)
        if wrong is None:
            return
        for place, client in enumerate(clients):  # what is not needed is left out
            for at in range(len(client.calls) - 1, -1, -1):
                calls = list(clients[place].calls)
                del calls[at]
                fewer = list(clients)
                fewer[place] = replace(client, calls=calls)
                other = self._wrong(fewer, how)
                if other is not None and other.hint == wrong.hint:
                    clients, wrong = fewer, other
        raise wrong

    def _wrong(self, clients, how):
        """Return what is wrong with a run, or None."""
        end_s = 2 + _FINALLY_S
        last = [Client(node, [Call("read", "cart")], end_s) for node in range(3)]
        run = self.simulate(3, [*clients, *last], **how)
        try:
            answered_at_once(run, HINTS)
            wanted = expected(run, 3, end_s)
            self._compare(run, end_s, wanted.needed, wanted.gone)
        except Wrong as wrong:
            return wrong
        return None


def _drawn(seed):
    """Return clients at three nodes that add, read and remove, and a split."""
    dice = random.Random(f"cart {seed}")
    clients = []
    for node in range(3):
        calls = []
        for _ in range(4):
            item = dice.choice(("tea", "milk", "jam"))
            if dice.random() < 0.55:
                calls.append(Call("add", "cart", item))
            else:
                calls += [Call("read", "cart"), Call("remove", "cart", item)]
        clients.append(Client(node, calls, dice.uniform(0, 0.5), dice.uniform(0, 0.2)))
    alone, at_s = dice.randrange(3), dice.uniform(0, 0.6)
    together = [node for node in range(3) if node != alone]
    split = Split(at_s, together, [alone], until_s=at_s + dice.uniform(0.2, 0.8))
    return clients, {"faults": split, "delivery": _ROUGH, "seed": seed}


def _added(left, right):
    """Return the items that each side adds."""
    return [{w.split()[1] for w in words if "add" in w} for words in (left, right)]


def _mixed(carts, sides):
    """Whether a cart has a part of what one side added."""
    whole = [{item for item in cart if item in sides[0] | sides[1]} for cart in carts]
    return any(some and some not in sides for some in whole)


def _items(one: Operation) -> list | None:
    """Return what was read, None if it is no list of strings, each once."""
    result = one.result
    if type(result) not in (list, tuple, set):
        return None
    if any(type(item) is not str for item in result):
        return None
    return sorted(result) if len(set(result)) == len(result) else None


def _client(node, words, start_s):
    return Client(node, [_call(each) for each in words], start_s, 0.15)


def _call(words):
    op, _, item = words.partition(" ")
    return Call(op, "cart", item or None)


def _lanes(operations: Iterable[Operation]) -> str:
    lines = []
    for one in operations:
        what = f"→ {one.result}" if one.op == "read" else one.value
        lines.append(f"  {one.start:5.2f} s  client {one.client}: {one.op} {what}")
    return "\n".join(lines)


_PLANS = (  # before the split, node 1 and node 2 during it; needed, gone
    ([], ["add tea", "add egg"], ["add jam", "add salt", "add rice"],
     dict.fromkeys(("tea", "egg", "jam", "salt", "rice"), "lost"), set()),
    (["add milk", "add tea"], ["remove milk"], ["add salt"],
     {"tea": "lost", "salt": "lost"}, {"milk"}),
    (["add milk"], ["remove milk"], ["add milk"], {"milk": "concurrent"}, set()),
    (["add milk"], ["remove milk", "add milk"], ["remove milk"],
     {"milk": "concurrent"}, set()),
    (["add milk", "add milk"], ["add milk", "remove milk"], ["remove milk"],
     {}, {"milk"}),
    (["add milk", "remove milk", "add milk"], ["add tea"], ["remove milk", "add jam"],
     {"tea": "lost", "jam": "lost"}, {"milk"}),
)  # fmt: skip

HINTS = {
    "silent": "A call was not answered. Here every node answers, from what it has.",
    "refuses": "A call was refused. Here every node answers whatever is cut.",
    "asks": "The answer came late. Answer in on_client, from what is here.",
    "no list": "A read answers with the list of the items in the cart, each once, in "
    "any order.",
    "kept": "What was removed is still there. Which adds of the item does a remove "
    "end?",
    "again": "An item was removed, and added again afterwards, and is not there. A "
    "remove ends the adds that it has seen, and not the item for ever.",
    "own": "What was added at a node is not read there.",
    "lost": "What one side added is lost. A cart is no value of which one replaces the "
    "other: what one side did has to be put together with what the other did.",
    "tags": "Of what both sides added some is lost, and some is there. Are there two "
    "adds, on two nodes, that have the same tag?",
    "concurrent": "An item was removed on one node and added on another, and neither "
    "knew of the other. The add wins: a remove ends only the adds that it has seen.",
    "back": "What was removed after it was seen came back. Another node still "
    "had it, and told the rest. They need to know that it was removed, and did not "
    "just never hear of it.",
    "nobody": "There is something in the cart that nobody has added.",
    "differ": "The nodes have different carts for ever. Whatever arrives, in whichever "
    "order and however often, the same has to come of it; and what was lost has to be "
    "said again.",
}
