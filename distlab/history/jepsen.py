"""Histories of Jepsen: maps in EDN, or the lines of its log.

    [{:process 0, :type :invoke, :f :write, :value 1}
     {:process 0, :type :ok, :f :write, :value 1}]

    INFO  jepsen.util - 4	:invoke	:cas	[1 3]

Events count in the order in which they are written, as in Knossos; their times are
moved where they contradict it.

Source: Knossos, `knossos.history` and `knossos.model`; `jepsen.independent`.
"""

import math
import re
from bisect import bisect_right
from itertools import accumulate
from typing import Any, NamedTuple

from distlab.history.edn import NotEdn, read_edn
from distlab.history.pairing import LogLine, Pairing
from distlab.trace import Call, Operation

__all__ = ["from_jepsen"]

_LOGGED = re.compile(
    r"(?:^|\s)(\d+|:nemesis)\s+:(invoke|ok|fail|info)[ \t]+:(\S+)(.*)$", re.MULTILINE
)
_EDN = re.compile(r"(?:[\s,]|;[^\n]*)*[\[({#]")
_FIELDS = ("process", "type", "f", "value", "error", "key", "time")
_OPS = {"get": "read", "put": "write"}
_OUTCOMES = {"invoke": "", "ok": "ok", "fail": "failed", "info": "unknown"}
_RETURNING = ("read", "dequeue")
_REFUSED = ("cas", "acquire", "release")  # their result may be False
_WITHOUT_VALUE = (*_RETURNING, "acquire", "release")
_NANO = 1e-9


class _Event(NamedTuple):
    line: LogLine
    client: Any
    kind: str
    op: str
    value: Any
    error: Any = None
    key: Any = None
    time: float | None = None


def from_jepsen(
    text: str,
    source: str,
    fail_observed: bool = False,
    nil_unknown: bool = False,
    independent: bool | None = None,
) -> list[tuple[Operation, str]]:
    """Return the operations of a history, each with the line in `source` of its call.

    `:info` is "unknown", `:fail` is "failed", and the nemesis is left out. The options
    are those of `History.read_jepsen`.
    """
    logged = _LOGGED.search(text) or not _EDN.match(text)
    events = list((_of_log if logged else _of_edn)(text, source))
    events = [event for event in events if event.client != "nemesis"]
    if not events:
        raise LogLine(source, 1, text.split("\n", 1)[0]).wrong(
            "neither this line nor any other is an event of Jepsen.",
            "Its events look like `jepsen.util - 4 :invoke :write 3`, or like "
            "`{:process 4, :type :invoke, :f :write, :value 3}`.",
        )
    if independent or (independent is None and _are_tuples(events)):
        events = [_of_tuple(event) for event in events]
    pairing, calls = Pairing(), {}
    for event, time in zip(_completed(events), _times(events), strict=True):
        line, client, kind, op, value, *_ = event
        if kind == "invoke":
            asked = None if op in _WITHOUT_VALUE else value
            pairing.invoke(line, client, Call(op, event.key, asked), time)
            calls[client] = event
        elif client in calls or kind != "info":  # else it ends no call
            outcome, call = _OUTCOMES[kind], calls.pop(client, None)
            result = value if op in _RETURNING and kind == "ok" else None
            plain = call and value == call.value and event.error is None
            if kind == "ok" and op == "read" and nil_unknown and result is None:
                outcome = "unknown"
            elif kind == "ok" and op == "cas":
                result = True
            elif kind == "fail" and op in _REFUSED and fail_observed and plain:
                outcome, result = "ok", False
            pairing.answer(line, client, outcome, result, time)
    return pairing.operations()


def _completed(events):
    """Return the events, each call with the value of its response, if that has one."""
    events, calls = list(events), {}
    for number, event in enumerate(events):
        if event.kind == "invoke":
            calls[event.client] = number
        elif event.kind == "ok" and event.value is not None and event.client in calls:
            call = calls[event.client]
            events[call] = events[call]._replace(value=event.value)
    return events


def _times(events):
    """Yield each event's time in seconds, later than those before; or None for all."""
    timed = all(isinstance(event.time, int | float) for event in events)
    last = -math.inf
    for event in events:
        if timed:
            last = max(event.time * _NANO, math.nextafter(last, math.inf))
        yield last if timed else None


def _are_tuples(events):
    """Return True if the values are tuples of `jepsen.independent`, [key value].

    Every call is made with a pair, a read's with nil in it and a cas's with a pair in
    it; and there is a read or a cas.
    """
    calls = [event for event in events if event.kind == "invoke"]
    if not all(event.key is None and _is_pair(event.value) for event in calls):
        return False
    telling = [_is_pair(event.value[1]) for event in calls if event.op == "cas"]
    telling += [e.value[1] is None for e in calls if e.op in _WITHOUT_VALUE]
    return bool(telling) and all(telling)


def _is_pair(value):
    return isinstance(value, tuple) and len(value) == 2


def _of_tuple(event):
    if event.kind == "invoke" and not _is_pair(event.value):
        raise event.line.wrong(
            "its value is no [key value].", "Read it with independent=False."
        )
    key, value = event.value if _is_pair(event.value) else (None, None)
    return event._replace(key=key, value=value)


def _of_log(text, source):
    for number, said in enumerate(text.split("\n"), start=1):
        if found := _LOGGED.search(said):
            line = LogLine(source, number, said.rstrip("\r"))
            client, kind, op, rest = found.groups()
            try:
                values = read_edn(rest)
            except NotEdn as error:
                raise _unreadable(line, error) from None
            if rest.lstrip().startswith(":"):  # an error, such as :timed-out
                values = [None, *values]
            client = int(client) if client.isdigit() else "nemesis"
            yield _event(line, (client, kind, op, *values))


def _of_edn(text, source):
    lines, places = text.split("\n"), {}
    begins = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def line_at(offset):
        number = bisect_right(begins, offset)
        return LogLine(source, number, lines[number - 1].rstrip("\r"))

    try:
        values = read_edn(text, places)
    except NotEdn as error:
        raise _unreadable(line_at(error.at), error) from None
    for value in values:
        events = value if isinstance(value, tuple) else ()
        if not isinstance(next(iter(events), None), dict | tuple):
            events = [value]
        for event in events:
            if event and isinstance(event, dict | tuple):
                yield _event(line_at(places[id(event)]), event)


def _event(line, event):
    """Return the event of a map, or of a tuple (process, type, f, value, error)."""
    if isinstance(event, tuple):
        event = dict(zip(_FIELDS, event, strict=False))
    if missing := [name for name in _FIELDS[:3] if name not in event]:
        raise line.wrong(
            f":{missing[0]} is missing.", "An event has :process, :type and :f."
        )
    client, kind, op, *_ = fields = [event.get(name) for name in _FIELDS]
    if kind not in _OUTCOMES:
        raise line.wrong(
            f"the type :{kind} is unknown.", "It is :invoke, :ok, :fail or :info."
        )
    return _Event(line, client, kind, _OPS.get(op, op), *fields[3:])


def _unreadable(line, error):
    return line.wrong(
        f"it cannot be read: {error}.", "Take the log as Jepsen wrote it."
    )
