"""Logs of Jepsen, in the two formats of checkers' test data.

INFO  jepsen.util - 4	:invoke	:cas	[1 3]
{:process 0, :type :invoke, :f :put, :key "0", :value "x"}

The reader knows the part of EDN, Clojure's notation, that these logs use.
"""

import re
from typing import Any

from distlab.history.pairing import LogLine, Pairing
from distlab.trace import Call, Operation

__all__ = ["from_jepsen", "read_edn"]

_TOKEN = re.compile(
    r'[\s,]*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<open>#\{|[\[({])|(?P<close>[\])}])'
    r'|(?P<word>[^\s,\[\](){}"]+))'
)
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_CONSTANTS = {"nil": None, "true": True, "false": False}


def read_edn(text: str) -> list[Any]:
    """Return the values in `text`, one after another.

    Vectors and lists become tuples, sets frozensets, maps dicts, and keywords strings
    without their colon. Raises ValueError for other syntax, or a torn text.
    """
    items, stack, at = [], [], 0
    text = text.rstrip(" \t\r\n,")
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"nothing can be read from {text[at : at + 20]!r} on")
        at = token.end()
        if token["open"]:
            stack.append((token["open"], items))
            items = []
            continue
        if token["close"]:
            if not stack or _CLOSES[stack[-1][0]] != token["close"]:
                raise ValueError(f"{token['close']!r} closes nothing")
            bracket, outer = stack.pop()
            items = [*outer, _collected(bracket, items)]
        elif token["text"]:
            unescaped = re.sub(
                r"\\(.)", lambda c: _ESCAPED.get(c[1], c[1]), token["text"][1:-1]
            )
            items.append(unescaped)
        else:
            items.append(_word(token["word"]))
    if stack:
        raise ValueError(f"a {stack[-1][0]!r} is not closed")
    return items


def _collected(bracket, items):
    if bracket == "{":
        if len(items) % 2:
            raise ValueError("a map has a key without a value")
        return dict(zip(items[::2], items[1::2], strict=True))
    return frozenset(items) if bracket == "#{" else tuple(items)


def _word(word):
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word[0] == ":":
        return word[1:]
    for number in (int, float):
        try:
            return number(word.removesuffix("N").removesuffix("M"))
        except ValueError:
            continue
    return word


_EVENT = re.compile(r"(?:^|\s)(\d+|:nemesis)\s+:(invoke|ok|fail|info)\s+:(\S+)(.*)$")
_MAP = re.compile(r"^\s*\{.*:type\b")
_OPS = {"get": "read", "put": "write"}
_NANO = 1e-9


def from_jepsen(text: str, source: str) -> list[tuple[Operation, str]]:
    """Return the operations of a log, each with the line in `source` of its call.

    `:info` is "unknown", `:fail` is "failed". A failed compare-and-set that names no
    error was carried out and found another value: it is "ok" with the result False.
    The nemesis and lines about anything else are left out.
    """
    pairing, values = Pairing(), {}
    for number, said in enumerate(text.split("\n"), start=1):
        line = LogLine(source, number, said.rstrip("\r"))
        event = _of_map(line) if _MAP.match(said) else _of_log(line)
        if event is None:
            continue
        client, kind, op, key, value, time, error = event
        if kind == "invoke":
            asked = None if op == "read" else value
            pairing.invoke(line, client, Call(op, key, asked), time)
            values[client] = asked
            continue
        outcome = {"ok": "ok", "fail": "failed", "info": "unknown"}[kind]
        result = value if op == "read" and kind == "ok" else None
        if op == "cas" and kind == "ok":
            result = True
        elif (
            op == "cas" and kind == "fail" and value == values.get(client) and not error
        ):
            outcome, result = "ok", False
        pairing.answer(line, client, outcome, result, time)
    operations = pairing.operations()
    if not operations:
        raise LogLine(source, 1, text.split("\n", 1)[0]).wrong(
            "neither this line nor any other is an event of Jepsen.",
            "Its events look like `jepsen.util - 4 :invoke :write 3`, or like "
            "`{:process 4, :type :invoke, :f :write, :value 3}`.",
        )
    return operations


def _of_log(line):
    found = _EVENT.search(line.text)
    if found is None or found[1] == ":nemesis":
        return None
    value, *error = _read(line, found[4]) or [None]
    if found[4].strip().startswith(":"):
        value, error = None, [value]
    client, kind, op = int(found[1]), found[2], _OPS.get(found[3], found[3])
    return client, kind, op, None, value, None, error


def _of_map(line):
    (event, *_) = _read(line, line.text)
    missing = [name for name in ("process", "type", "f") if name not in event]
    if missing:
        raise line.wrong(
            f":{missing[0]} is missing.", "An event has :process, :type and :f."
        )
    client, kind, op = event["process"], event["type"], event["f"]
    if client == "nemesis":
        return None
    if kind not in ("invoke", "ok", "fail", "info"):
        raise line.wrong(
            f"the type :{kind} is unknown.", "It is :invoke, :ok, :fail or :info."
        )
    time = event["time"] * _NANO if "time" in event else None
    key, value, error = map(event.get, ("key", "value", "error"))
    return client, kind, _OPS.get(op, op), key, value, time, error


def _read(line, text):
    try:
        return read_edn(text)
    except (ValueError, TypeError) as error:
        raise line.wrong(
            f"it cannot be read: {error}.", "Take the log as Jepsen wrote it."
        ) from None
