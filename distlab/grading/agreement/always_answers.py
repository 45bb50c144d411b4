"""The check of a store that answers at once, whatever is cut, and agrees afterwards.

a split      ─▶ every call answered on both sides, without any delay
it is over   ─▶ every node has the same, and of two writes the later one, if its
                writer knew of the other
much later   ─▶ what the nodes tell each other does not grow
"""

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from distlab.faults import Split
from distlab.grading.agreement.nodes_on_trial import OnTrial, Wrong
from distlab.grading.agreement.split_plans import lanes_of, told
from distlab.network import Client, Delivery
from distlab.trace import Call

__all__ = ["AlwaysAnswers", "answered_at_once", "last_reads"]

_SEEDS, _FINALLY_S = 6, 3.0
_ROUGH = Delivery((0.001, 0.15), loss=0.3, duplicate=0.3)
_AT_ONCE_S = 1e-5


@dataclass
class AlwaysAnswers(OnTrial):
    """A key-value store whose nodes answer at once, and agree after a split.

    case: "at once", "after a split", "losses" or "much later".
    """

    _repeats = True
    titles: ClassVar[dict[str, str]] = {
        "at once": "both sides of a split answer, at once",
        "after a split": "some time after a split all nodes agree",
        "losses": "lost, doubled and overtaking messages, five nodes",
        "much later": "what is told does not grow for ever",
    }

    def _try(self):
        {
            "at once": self._at_once,
            "after a split": self._after,
            "losses": self._losses,
            "much later": self._later,
        }[self.case]()

    # ---- at once ---------------------------------------------------------------------

    def _at_once(self):
        calls = [[Call("write", n, 1), Call("read", n)] for n in range(3)]
        calls = [[*some, *_turns(n, 8)] for n, some in enumerate(calls)]
        clients = [Client(n, some, 0.02 * n, 0.1) for n, some in enumerate(calls)]
        split = Split(0.3, [0, 1], [2], until_s=0.8)
        run = self.simulate(3, clients, faults=split, seed=self.drawn)
        answered_at_once(run, HINTS)
        for one in run.history:
            own = type(one.key) is int and one.op == "read"
            if own and (type(one.result) is not int or one.result != 1):
                found = f"{lanes_of(run.history.of(one.client))}\n{told(one)}"
                raise Wrong(f"{found}, where 1 had been written.", HINTS["own"])

    # ---- afterwards ------------------------------------------------------------------

    def _after(self):
        for nodes, sides in ((3, ([0, 1], [2])), (4, ([0, 1], [2, 3]))):
            split = Split(0.3, *sides, until_s=1.2)
            plan = [
                (0, 0.1, "z", 1),
                (2, 0.1, "v", 1),
                (1, 0.8, "z", 2),
                (2, 0.6, "w", 3),
                (2, 0.7, "w", 4),
                (0, 0.5, "x", 5),
                (2, 0.5, "x", 6),
                (nodes - 1, 0.9, "y", 7),
                (2, 1.9, "v", 8),
                (0, 2.6, "v", 9),
            ]
            last = {"z": 2, "w": 4, "y": 7, "v": 9}
            self._agree(nodes, plan, last, 1.2, faults=split, seed=self.drawn)

    def _losses(self):
        for number in range(_SEEDS):
            dice = random.Random(f"{self.drawn} {number}")
            sides = _sides(dice, 5), _sides(dice, 5)
            splits = [
                Split(0.2, *sides[0], until_s=0.8),
                Split(0.9, *sides[1], until_s=1.5),
            ]
            plan = [
                (dice.randrange(5), dice.uniform(0, 1.5), dice.choice("xy"), 1 + n)
                for n in range(12)
            ]
            how = {
                "faults": splits,
                "delivery": _ROUGH,
                "seed": f"{self.drawn} {number}",
            }
            self._agree(5, plan, {}, 1.5, **how)

    def _agree(self, nodes, plan, last, healed_s, **how):
        """Write, wait, and see whether all nodes read the same."""
        end_s = max(healed_s, *(when for _, when, *_ in plan)) + _FINALLY_S
        clients = [
            Client(node, [Call("write", key, value)], start_s=when)
            for node, when, key, value in plan
        ]
        keys = sorted({key for _, _, key, _ in plan})
        clients += last_reads(nodes, keys, end_s)
        run = self.simulate(nodes, clients, **how)
        answered_at_once(run, HINTS)
        for key in keys:
            values = [o.result for o in run.history if (o.op, o.key) == ("read", key)]
            writes = [o for o in run.history if (o.op, o.key) == ("write", key)]
            written = [one.value for one in writes]
            found = f"{lanes_of(writes)}\nMuch later the nodes read {key} → {values}."
            odd = [v for v in values if type(v) is not int or v not in written]
            if len({repr(value) for value in values}) > 1:
                said = max(healed_s, *(one.start for one in run.history if one.value))
                kind = self._differ(run, nodes, said, key in last)
                raise Wrong(found, HINTS[kind], run.trace)
            if odd:
                raise Wrong(found, HINTS["no value"], run.trace)
            if values[0] != last.get(key, values[0]):
                raise Wrong(found, HINTS["old"], run.trace)

    def _differ(self, run, nodes, said_s, known):
        """Say why nodes differ: nothing said again, equal versions, or the order."""
        late = [
            event
            for event in run.trace.events
            if event.kind == "send" and event.start > said_s + 0.5
            and event.rank < nodes and event.peer < nodes
        ]  # fmt: skip
        if not late:
            return "once"
        if known:
            return "old"
        return "ties" if self._same(2) and not self._same(1) else "order"

    def _same(self, twice):
        """Whether nodes agree after a split in which one side wrote so many times."""
        one = [Call("write", "x", n) for n in range(twice)]
        clients = [Client(0, one, 0.1), Client(2, [Call("write", "x", 9)], 0.1)]
        clients += last_reads(3, ["x"], 3)
        run = self.simulate(3, clients, faults=Split(0, [0, 1], [2], until_s=0.5))
        return len({repr(o.result) for o in run.history if o.op == "read"}) == 1

    # ---- much later ------------------------------------------------------------------

    def _later(self):
        clients = [Client(n, _turns(n, 4), 0.1, 0.1) for n in range(3)]
        clients += last_reads(3, "xy", 13)
        self.trial.sizes.clear()
        run = self.simulate(3, clients, delivery=Delivery(duplicate=0.1))
        answered_at_once(run, HINTS)
        sends = [
            e.start
            for e in run.trace.events
            if e.kind == "send" and e.rank < 3 and e.peer < 3
        ]
        sizes = self.trial.sizes[: len(sends)]
        sent = list(zip(sends, sizes, strict=False))
        windows = [
            [size for when, size in sent if begin <= when < begin + 3]
            for begin in (4, 7, 10)
        ]
        totals, messages = list(map(sum, windows)), len(windows[-1])
        found = "Bytes between nodes in three seconds each, long after the last write: "
        found += ", ".join(f"{size:,}" for size in totals) + "."
        if all(later > 1.15 * before for before, later in pairwise(totals)):
            raise Wrong(found, HINTS["grows"])
        if messages > _MOST_MESSAGES:
            found = f"{messages:,} messages in three seconds, with nothing new."
            raise Wrong(found, HINTS["many"])


_MOST_MESSAGES = 3 * 2 * 3 * 25  # nodes, peers, seconds, times a second


def answered_at_once(run, hints) -> None:
    """Raise what is wrong if a call was not answered, or not at once."""
    for one in run.history:
        if one.outcome == "ok" and one.end - one.start <= _AT_ONCE_S:
            continue
        which, kind = "Not answered at once", "asks"
        if one.outcome == "unknown":
            which, kind = "Never answered", "silent"
        elif one.outcome == "failed":
            which, kind = "Refused", "refuses"
        raise Wrong(f"{which}: {told(one)}.", hints[kind], run.trace)


def last_reads(nodes: int, keys, start_s: float) -> list[Client]:
    """Return a client for each node that reads every key, late."""
    calls = [Call("read", key) for key in keys]
    return [Client(node, calls, start_s) for node in range(nodes)]


def _turns(node, calls):
    return [
        Call("write", "xy"[n % 4 // 2], 10 * node + n)
        if n % 2
        else Call("read", "xy"[n % 4 // 2])
        for n in range(calls)
    ]


def _sides(dice, nodes):
    order = dice.sample(range(nodes), nodes)
    size = dice.randrange(1, nodes - 1)
    return order[:size], order[size:]


HINTS = {
    "silent": "A call was not answered at all. Here every node answers whatever is "
    "cut, from what it has.",
    "refuses": "A call was refused. Here every node answers whatever is cut.",
    "asks": "The answer came late: somebody else was heard first. Whoever is cut off "
    "hears nobody. Answer in on_client, from what is here.",
    "own": "What a client has just written at a node, the same node does not read.",
    "once": "After the split nobody says anything. What was sent during it is lost, so "
    "it has to be said again, now and then, on a timer that is set again.",
    "order": "The nodes have different values for ever, or go on swapping them. What "
    "arrived last is not the same one everywhere: which of two copies stays must not "
    "depend on which came first.",
    "ties": "Two sides wrote once each, and their writes have versions that are equal. "
    "Every node has to decide alike between the two: what differs for sure?",
    "old": "An old value has won over one that was written by somebody who knew it. A "
    "write's version is above that of what it replaces, and what is sent again does "
    "not replace what is newer.",
    "no value": "What the nodes agree on was never written. Is something lost, or "
    "is the version part of the answer?",
    "grows": "Nothing new is written, and what the nodes tell each other grows and "
    "grows. Send what a node has now, and not all that it has heard.",
    "many": "Nothing new is written, and still messages are sent without a pause. What "
    "a node hears in gossip is no reason to send at once.",
}
