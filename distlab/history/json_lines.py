"""Histories as JSON lines: one event a line.

    {"time": 0.1, "client": 0, "event": "invoke", "op": "write", "key": "x", "value": 1}
    {"time": 0.2, "client": 0, "event": "ok"}
    {"time": 0.3, "client": 1, "event": "invoke", "op": "read", "key": "x"}
    {"time": 0.4, "client": 1, "event": "ok", "result": 1}

A response's event is "ok", "failed" or "unknown". Times are in seconds of one clock; if
no line has one, the order of the lines counts. Lines of different clients need not be
in the order of their times. Operations still open at the end are unknown.

JSON's own values stay as they are. Any other value is an object with one name that
begins with a dollar sign: `{"$tuple": [1, 2]}`, `{"$bytes": "00ff"}`,
`{"$set": [...]}`, `{"$frozenset": [...]}`, `{"$float": "inf"}`, and
`{"$dict": [[key, value], ...]}` for a dict with a key that is no string or begins with
a dollar sign itself.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from distlab.errors import HistoryError
from distlab.history.pairing import LogLine, Pairing
from distlab.trace import Call, Operation

__all__ = ["from_lines", "from_plain", "to_lines", "to_plain"]

_PLACES = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}


def to_plain(value: Any) -> Any:
    """Return the JSON value that represents `value`."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is bytes:
        return {"$bytes": value.hex()}
    if kind is list:
        return [to_plain(item) for item in value]
    for name, place in _PLACES.items():
        if kind is place:
            return {name: [to_plain(item) for item in value]}
    if kind is not dict:
        raise HistoryError(
            f"{value!r} is of the type {kind.__name__}, which a history's file cannot "
            "hold. Write None, numbers, strings, bytes, and tuples, lists, sets and "
            "dicts of them."
        )
    if all(type(key) is str and key[:1] != "$" for key in value):
        return {key: to_plain(item) for key, item in value.items()}
    return {"$dict": [[to_plain(key), to_plain(item)] for key, item in value.items()]}


def from_plain(plain: Any) -> Any:
    """Return the value that `plain` represents.

    Raises ValueError for an object whose name with a dollar sign is none of these.
    """
    if isinstance(plain, list):
        return [from_plain(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    names = [name for name in plain if name[:1] == "$"]
    if not names:
        return {name: from_plain(item) for name, item in plain.items()}
    (name, item), *others = plain.items()
    try:
        if name in _PLACES and not others:
            return _PLACES[name](map(from_plain, _listed(item)))
        if name == "$bytes" and not others:
            return bytes.fromhex(item)
        if name == "$float" and not others:
            return float(item)
        if name == "$dict" and not others:
            return {from_plain(key): from_plain(one) for key, one in _listed(item)}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot hold {item!r} ({error})") from None
    raise ValueError(f"{names[0]!r} stands for no kind of value")


def _listed(item):
    if not isinstance(item, list):
        raise ValueError("it takes a list")
    return item


_ANSWERS = ("ok", "failed", "unknown")
_INVOKE = {"client", "event", "op"}, {"time", "key", "value"}
_ANSWER = {"client", "event"}, {"time", "result"}
_UNKNOWN = {"client", "event"}, {"time"}


def from_lines(text: str, source: str) -> list[tuple[Operation, str]]:
    """Return the operations of a text, each with the line in `source` of its call."""
    pairing = Pairing()
    lines = text.split("\n")
    for number, said in enumerate(lines, start=1):
        if not said.strip():
            continue
        line = LogLine(source, number, said.rstrip("\r"))
        event = _event(line, torn=number == len(lines))
        client, time = event["client"], event.get("time")
        if event["event"] == "invoke":
            pairing.invoke(
                line,
                client,
                Call(event["op"], event.get("key"), event.get("value")),
                time,
            )
        else:
            result = event.get("result")
            pairing.answer(line, client, event["event"], result, time)
    return pairing.operations()


def to_lines(operations: Iterable[Operation]) -> Iterator[str]:
    """Yield the lines of a history, in the order of their times.

    An "unknown" event is written directly before its client's next call.
    """
    events, given_up = [], {}
    for number, operation in enumerate(operations):
        client, start = operation.client, operation.start
        if client in given_up:
            said = {"time": start, "client": client, "event": "unknown"}
            events.append((start, number, 0, said))
            del given_up[client]
        events.append((start, number, 1, _invocation(operation)))
        if operation.end is None:
            given_up[client] = number
        else:
            events.append((operation.end, number, 2, _answer(operation)))
    for *_, event in sorted(events, key=lambda event: event[:3]):
        yield json.dumps(event)


def _invocation(operation):
    client, op, key, value, start, *_ = operation
    event = {"time": start, "client": client, "event": "invoke", "op": op}
    if key is not None:
        event["key"] = to_plain(key)
    if value is not None:
        event["value"] = to_plain(value)
    return event


def _answer(operation):
    event = {"time": operation.end, "client": operation.client}
    event["event"] = operation.outcome
    if operation.result is not None:
        event["result"] = to_plain(operation.result)
    return event


def _event(line, torn):
    """Return the event of a line as a dict, after a check of every field."""
    try:
        event = json.loads(
            line.text, object_pairs_hook=_no_field_twice, parse_constant=_no_constant
        )
    except RecursionError:
        raise line.wrong("it is nested too deeply.", "Write flatter values.") from None
    except json.JSONDecodeError as error:
        if torn:
            raise line.wrong(
                "the last line is torn: it ends in the middle of an event.",
                "Take the line out: what it was about then counts as unknown.",
            ) from None
        raise line.wrong(
            f"it is no JSON ({error.msg} at column {error.colno}).",
            'Every line is one event, such as {"client": 0, "event": "ok"}.',
        ) from None
    except ValueError as error:
        raise line.wrong(
            f"{error}.", "Write each field once, as JSON has it."
        ) from None
    if not isinstance(event, dict):
        raise line.wrong(
            "it is no object.",
            'Every line is one event, such as {"client": 0, "event": "ok"}.',
        )
    _check_fields(line, event)
    for name in ("key", "value", "result"):
        if name in event:
            try:
                event[name] = from_plain(event[name])
            except ValueError as error:
                raise line.wrong(
                    f'its "{name}" stands for nothing: {error}.',
                    "The docstring of distlab/history/json_lines.py lists what can.",
                ) from None
    return event


def _check_fields(line, event):
    known = ("invoke", *_ANSWERS)
    kind = event.get("event")
    if kind not in known:
        said = f"the event {kind!r} is unknown" if "event" in event else "no event"
        raise line.wrong(
            f"{said}.", f"An event is one of {', '.join(map(repr, known))}."
        )
    needed, allowed = {"invoke": _INVOKE, "unknown": _UNKNOWN}.get(kind, _ANSWER)
    missing = sorted(needed - set(event))
    if missing:
        raise line.wrong(f'"{missing[0]}" is missing.', f'"{kind}" needs it.')
    extra = [name for name in event if name not in needed | allowed]
    if extra:
        names = ", ".join(sorted(needed | allowed))
        raise line.wrong(
            f'"{extra[0]}" is no field of "{kind}".', f"Its fields are {names}."
        )
    if type(event["client"]) not in (int, str):
        raise line.wrong("the client is no number or name.", 'Write "client": 0.')
    if kind == "invoke" and type(event["op"]) is not str:
        raise line.wrong("the op is no word.", 'Write "op": "read".')
    time = event.get("time", 0)
    if type(time) not in (int, float) or not math.isfinite(time):
        raise line.wrong("the time is no number.", "Write seconds, such as 0.0123.")


def _no_field_twice(pairs):
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'"{twice}" is there twice')
    return fields


def _no_constant(word):
    raise ValueError(f"{word} is no JSON")
