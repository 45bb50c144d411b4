"""Operations of a history, read once: their words, and a verdict's additions.

    client 0   ├─ write x 1 ─┤          ├─ read x → 2 ─┤
    client 1         ├───── write x 2 ─────── ─ ─        no response: open to the right

A verdict is anything with `ok`, `violated` and `inconclusive`: its history is drawn,
with the order that explains it, or with the few operations that no order explains.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.canvas.text import literal
from distlab.show.reading.alt_text import capital, listed, plural
from distlab.trace import Operation
from distlab.units import readable_seconds

__all__ = ["Histories", "Judged", "answered_before", "effects", "names_of"]

_VALUE = 14
_OUTCOMES = {"ok": "answered", "failed": "refused", "unknown": "of unknown outcome"}


class Judged(NamedTuple):
    """The contents of a verdict on a history.

    how: "ok", "violated" or "inconclusive"; "" for a history without a verdict.
    model: the consistency model, in words. why: the reason, a sentence.
    witness: operations in the order that explains them. orders: several such orders, of
    which no two share an operation. smallest: those that no order explains.
    real_time: True if the model has to respect real-time order.
    """

    how: str = ""
    model: str = ""
    why: str = ""
    witness: tuple = ()
    orders: tuple = ()
    smallest: tuple = ()
    real_time: bool = True


class Histories:
    """The operations to be drawn, in order of their starts.

    operations: those of `key`, or all. clients: their clients. keys: their keys.
    all: the number of operations before a key was chosen. judged: the verdict.
    stuck, start_s, last_s: read by `TimeAxis`.
    """

    stuck = ()

    def __init__(self, thing, key=None):
        self.judged, found = _parted(thing)
        found = sorted(found, key=lambda one: one.start)
        self._names = {}
        self.all, self.key = len(found), key
        every = list(dict.fromkeys(map(_key_of, found)))
        if key is not None:
            if _key_of_value(key) not in every:
                there = listed(every, 6) or "none"
                raise InvalidArgument(
                    f"no operation is about the key {key!r}; the keys are {there}."
                )
            found = [one for one in found if _key_of(one) == _key_of_value(key)]
            witness, smallest = (
                tuple(one for one in part if one in found)
                for part in (self.judged.witness, self.judged.smallest)
            )
            self.judged = self.judged._replace(witness=witness, smallest=smallest)
        self.operations = found
        self.keys = list(dict.fromkeys(map(_key_of, found)))
        self.clients = sorted({one.client for one in found}, key=_by_number)
        ends = [one.end for one in found if one.end is not None]
        starts = [one.start for one in found]
        self.start_s = min(starts, default=0.0)
        self.last_s = max([*starts, *ends], default=0.0)
        if any(one.end is None for one in found):  # room for open bars
            self.last_s += 0.04 * (self.last_s - self.start_s) or 1e-6

    def headline(self) -> str:
        """Return operations, clients, keys and outcomes in one line."""
        if not self.operations:
            return "no operations"
        parts = [f"{plural(len(self.operations), 'operation')} by"]
        parts[0] += f" {plural(len(self.clients), 'client')}"
        if self.key is not None:
            parts[0] += f" on {_key_of_value(self.key)}, of {self.all:,} in all"
        elif len(self.keys) > 1:
            parts[0] += f" on {len(self.keys):,} keys"
        counts = Counter(one.outcome for one in self.operations)
        described = [
            f"{counts[how]:,} {_OUTCOMES[how]}" for how in _OUTCOMES if counts[how]
        ]
        return f"{parts[0]}: {', '.join(described)}"

    def sentences(self) -> list[str]:
        """Return the verdict and its reason, in words."""
        judged, said = self.judged, []
        if not judged.how:
            return said
        words = f"{judged.model}: {judged.how}" if judged.model else judged.how
        said.append(f"{capital(words)}.")
        if judged.why:
            said.append(f"{capital(judged.why).rstrip('. ')}.")
        if judged.witness:
            order = [
                f"{n} {names_of(one)[0]} ({self.name(one.client)})"
                for n, one in enumerate(judged.witness, 1)
            ]
            said.append(f"An order that explains every response: {listed(order, 40)}.")
        if judged.real_time:
            for one, other in answered_before(judged.smallest)[:12]:
                said.append(
                    f"{names_of(one)[0]} of {self.name(one.client)} had its "
                    f"response before {names_of(other)[0]} of "
                    f"{self.name(other.client)} was invoked."
                )
        return said

    def names(self, one: Operation) -> list[str]:
        """Return the result of `names_of`, cached, as the layout needs it often."""
        if id(one) not in self._names:
            self._names[id(one)] = names_of(one)
        return self._names[id(one)]

    def name(self, client) -> str:
        """Return the name of a client's lane."""
        return f"client {literal(client, 20)}"

    def lane_words(self, client) -> str:
        """Return a client's operations and their times, in words."""
        own = [one for one in self.operations if one.client == client]
        described = [f"{names_of(one)[0]} ({_when(one)})" for one in own]
        return f"{self.name(client).capitalize()}: {listed(described, 16)}."


def names_of(one: Operation) -> list[str]:
    """Return texts for an operation and its result, the longest first."""
    op, value = literal(one.op, 20), _short(one.value)
    about = "" if one.key is None else f" {literal(one.key, _VALUE)}"
    answer = {"ok": _short(one.result), "failed": "refused", "unknown": "?"}
    result = answer.get(one.outcome, "?")
    if op == "read":
        words, brief = f"read{about} → {result}", f"r → {result}"
    elif op == "cas":
        pair = one.value if isinstance(one.value, tuple | list) else (one.value,)
        mark = {"True": " ✓", "False": " ✗"}.get(result, f" {result}")
        change = "→".join(map(_short, pair)) + mark
        words, brief = f"cas{about} {change}", change
    else:
        asked = "" if one.value is None else f" {value}"
        described = one.outcome != "ok" or one.result is not None
        ending = f" → {result}" if described and one.outcome == "ok" else ""
        ending = f" {result}" if one.outcome != "ok" else ending
        words = f"{op}{about}{asked}{ending}"
        brief = f"{op[0]}{asked}{ending}"
    short = words.replace(about, "", 1) if about else words
    return list(dict.fromkeys([words, short, brief]))


def answered_before(operations: Iterable) -> list[tuple]:
    """Return the pairs of which one responded before the other was invoked.

    Left out: pairs of one client, and pairs implied by two others (transitivity).
    """
    found, some = [], list(operations)
    for one in some:
        for other in some:
            if not _before(one, other) or one.client == other.client:
                continue
            if not any(_before(one, o) and _before(o, other) for o in some):
                found.append((one, other))
    return found


def _before(one, other):
    return one.end is not None and one.end < other.start


def effects(witness, last_s: float) -> list[float] | None:
    """Return a linearization point of each operation in seconds, in that order.

    Each lies between its operation's invocation and response, and they ascend; None if
    there are none, as in a model that ignores real-time order.
    """
    latest, limits = last_s, []
    for one in reversed(witness):
        latest = min(latest, last_s if one.end is None else one.end)
        limits.append(latest)
    limits.reverse()
    at_s, moments = float("-inf"), []
    for number, (one, limit) in enumerate(zip(witness, limits, strict=True)):
        low = max(at_s, one.start)
        if low > limit:
            return None
        later = sum(other.start < limit for other in witness[number + 1 : number + 8])
        at_s = low + (limit - low) / (later + 2)
        moments.append(at_s)
    return moments


def _parted(thing):
    """Return the verdict as `Judged`, and the operations."""
    judged = Judged()
    if all(hasattr(thing, how) for how in ("ok", "violated", "inconclusive")):
        judged = _judged(thing)
    for _ in range(2):
        inside = getattr(thing, "operations", getattr(thing, "history", None))
        thing = thing if inside is None else inside
    if isinstance(thing, Iterable):
        found = list(thing)
        if all(isinstance(one, Operation) for one in found):
            return judged, found
    raise InvalidArgument(
        "show.history draws a History, a verdict on one, an outcome, or operations; "
        f"this is {type(thing).__name__}. For example: show.history(outcome.history)"
    )


def _judged(verdict):
    how = next(how for how in ("violated", "inconclusive", "ok") if _is(verdict, how))
    model = literal(getattr(verdict, "model", "") or "", 60)
    why = literal(getattr(verdict, "why", "") or "", 400)
    witness, smallest = (
        tuple(getattr(verdict, part, None) or ()) for part in ("witness", "smallest")
    )
    real_time = not model or "linearizab" in model
    orders = dict(getattr(verdict, "orders", None) or {}).values()
    orders = tuple(map(tuple, orders))
    alone = len({id(one) for some in orders for one in some}) == sum(map(len, orders))
    orders = orders if alone else ()
    return Judged(how, model, why, witness, orders, smallest, real_time)


def _is(verdict, how):
    value = getattr(verdict, how)
    return bool(value() if callable(value) else value)


def _when(one):
    start = readable_seconds(one.start)
    if one.end is None:
        return f"from {start} on"
    return f"{start} to {readable_seconds(one.end)}"


def _key_of(one):
    return _key_of_value(one.key)


def _key_of_value(key):
    return "no key" if key is None else literal(key, 40)


def _by_number(client):
    return (0, client, "") if isinstance(client, int) else (1, 0, str(client))


def _short(value):
    words = value if isinstance(value, str) else repr(value)
    return literal(words, _VALUE)
