"""A reader of the part of EDN, Clojure's notation, that logs of Jepsen use."""

import re
from typing import Any

__all__ = ["read_edn"]

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
