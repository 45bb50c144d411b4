"""EDN, Clojure's notation: the values of a text, with their places in it.

    {:process 0, :f :write, :value [1 2]}  ; a comment   #_ a form that is left out

edn_format of PyPI needs ply, refuses tags that it does not know, such as
`#jepsen.history.Op{...}`, and gives no places, which error messages name.

Source: https://github.com/edn-format/edn
"""

import re
from typing import Any

__all__ = ["NotEdn", "read_edn"]

_TOKEN = re.compile(
    r"""(?:[\s,]|;[^\n]*)*
    (?:(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<open>\#\{|[\[({])
    |(?P<close>[\])}])
    |(?P<char>\\(?:u[0-9A-Fa-f]{4}|[a-z]+|.))
    |(?P<prefix>\#_|\^|\#(?!\#)[^\s,"\[\](){};\\]*)
    |(?P<word>[^\s,"\[\](){};\\]+)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_LEFT_OUT = ("#_", "^")  # the next form is; after ^ it is metadata of the one after it
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_CHARS = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t"}
_WORDS = {"nil": None, "true": True, "false": False}
_WORDS |= {"##NaN": float("nan"), "##Inf": float("inf"), "##-Inf": float("-inf")}
_NUMBER = re.compile(
    r"([-+]?\d+)(?:N|/(\d*[1-9]\d*))?|([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)M?"
)


class NotEdn(ValueError):
    """A text is not EDN. at: the offset of what is wrong."""

    def __init__(self, what: str, at: int):
        super().__init__(what)
        self.at = at


def read_edn(text: str, places: dict[int, int] | None = None) -> list[Any]:
    """Return the values in `text`, one after another.

    Vectors and lists become tuples, sets frozensets, maps dicts, keywords strings
    without their colon, ratios floats. A tag is dropped, and its value kept.

    places: filled with the id of each collection -> its offset. Raises: NotEdn.
    """
    items, stack, at = [], [], 0
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotEdn(f"nothing can be read from {text[at : at + 20]!r} on", at)
        start, at = token.start(token.lastgroup), token.end()
        if token["end"] is not None:
            break
        if opened := token["open"] or token["prefix"]:
            stack.append((opened, start, items))
            items = []
            continue
        if token["close"]:
            if not stack or _CLOSES.get(stack[-1][0]) != token["close"]:
                raise NotEdn(f"{token['close']!r} closes nothing", start)
            bracket, start, outer = stack.pop()
            value, items = _collected(bracket, items, start), outer
            if places is not None:
                places[id(value)] = start
        else:
            value = _atom(token)
        while stack and stack[-1][0] not in _CLOSES:
            prefix, _, items = stack.pop()
            if prefix in _LEFT_OUT:
                break
        else:
            items.append(value)
    if stack:
        raise NotEdn(f"a {stack[-1][0]!r} is not closed", stack[-1][1])
    return items


def _collected(bracket, items, at):
    if bracket == "{":
        if len(items) % 2:
            raise NotEdn("a map has a key without a value", at)
        return dict(zip(map(_hashable, items[::2]), items[1::2], strict=True))
    return frozenset(map(_hashable, items)) if bracket == "#{" else tuple(items)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _atom(token):
    if token["text"]:
        return _ESCAPE.sub(lambda found: _unescaped(found[1]), token["text"][1:-1])
    if char := token["char"]:
        coded = len(char) == 6 and char[1] == "u"
        return _unescaped(char[1:]) if coded else _CHARS.get(char[1:], char[1:])
    word = token["word"]
    if word in _WORDS:
        return _WORDS[word]
    if word[0] == ":":
        return word[1:]
    if number := _NUMBER.fullmatch(word):
        whole, divisor, decimal = number.groups()
        if decimal:
            return float(decimal)
        return int(whole) / int(divisor) if divisor else int(whole)
    return word


def _unescaped(code):
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)
