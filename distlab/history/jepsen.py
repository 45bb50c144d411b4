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
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from distlab.history.edn import NotEdn, read_edn
from distlab.history.pairing import LogLine, Pairing
from distlab.trace import Call, Operation

__all__ = ["from_jepsen"]

_LOGGED = re.compile(
    r"(?:^|\s)(\d+|:nemesis)\s+:(invoke|ok|fail|info)[ \t]+:(\S+)(.*)$", re.MULTILINE
)
_EDN = re.compile(r"(?:[\s,]|;[^\n]*)*[\[({#]")
_MAP = re.compile(r"^\s*\{.*:type\b")
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
    key: Any = None
    time: float | None = None
    error: Any = None


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
        line, client, kind, op, value, key, *_ = event
        if kind == "invoke":
            asked = None if op in _WITHOUT_VALUE else value
            pairing.invoke(line, client, Call(op, key, asked), time)
            calls[client] = event
        elif client in calls or kind != "info":  # else it ends no call
            result = value if op in _RETURNING and kind == "ok" else None
            outcome, call = _OUTCOMES[kind], calls.pop(client, None)
            if op == "read" and result is None and nil_unknown and kind == "ok":
                outcome = "unknown"
            elif op == "cas" and kind == "ok":
                result = True
            elif fail_observed and call and _observed(call, event):
                outcome, result = "ok", False
            pairing.answer(line, client, outcome, result, time)
    return pairing.operations()


def _observed(call, event):
    """Return True if a failure can mean that an operation found another state."""
    plain = event.error is None and event.value == call.value
    return plain and event.kind == "fail" and event.op in _REFUSED


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
    inner = [(event.op, event.value[1]) for event in calls]
    telling = [
        _is_pair(value) if op == "cas" else value is None
        for op, value in inner
        if op == "cas" or op in _WITHOUT_VALUE
    ]
    return bool(telling) and all(telling)


def _is_pair(value):
    return isinstance(value, tuple) and len(value) == 2


def _of_tuple(event):
    if _is_pair(event.value):
        key, value = event.value
        return event._replace(key=key, value=value)
    if event.kind == "invoke":
        raise event.line.wrong(
            "its value is no [key value].", "Read it with independent=False."
        )
    return event._replace(value=None)


def _of_log(text: str, source: str) -> Iterator[_Event]:
    for number, said in enumerate(text.split("\n"), start=1):
        line = LogLine(source, number, said.rstrip("\r"))
        if _MAP.match(said):
            yield from _of_forms([(line, form.value) for form in _read(line, said)])
        elif found := _LOGGED.search(said):
            client, kind, op, rest = found.groups()
            value, *error = [form.value for form in _read(line, rest)] or [None]
            if rest.strip().startswith(":"):
                value, error = None, [value]
            client = "nemesis" if client == ":nemesis" else int(client)
            named = error[0] if error else None
            yield _Event(line, client, kind, _OPS.get(op, op), value, error=named)


def _of_edn(text: str, source: str) -> Iterator[_Event]:
    lines = text.split("\n")
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line) + 1)

    def line_at(offset):
        number = bisect_right(begins, offset)
        return LogLine(source, number, lines[number - 1].rstrip("\r"))

    try:
        forms = read_edn(text, items=True)
    except NotEdn as error:
        raise _unreadable(line_at(error.at), error) from None
    return _of_forms((line_at(form.at), form.value) for form in forms)


def _of_forms(forms: Iterable[tuple[LogLine, Any]]) -> Iterator[_Event]:
    """Yield the event of each map, or vector of [process type f value]."""
    for line, event in forms:
        if isinstance(event, tuple) and len(event) in (3, 4):
            event = dict(zip(("process", "type", "f", "value"), event, strict=False))
        if isinstance(event, dict):
            yield _of_map(line, event)


def _of_map(line, event):
    missing = [name for name in ("process", "type", "f") if name not in event]
    if missing:
        raise line.wrong(
            f":{missing[0]} is missing.", "An event has :process, :type and :f."
        )
    client, kind, op = event["process"], event["type"], event["f"]
    if kind not in _OUTCOMES:
        raise line.wrong(
            f"the type :{kind} is unknown.", "It is :invoke, :ok, :fail or :info."
        )
    value, key, time, error = map(event.get, ("value", "key", "time", "error"))
    return _Event(line, client, kind, _OPS.get(op, op), value, key, time, error)


def _read(line, text):
    try:
        return read_edn(text)
    except NotEdn as error:
        raise _unreadable(line, error) from None


def _unreadable(line, error):
    return line.wrong(
        f"it cannot be read: {error}.", "Take the log as Jepsen wrote it."
    )
