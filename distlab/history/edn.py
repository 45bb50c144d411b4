"""EDN, Clojure's notation: the values of a text, each with its place in it.

    {:process 0, :f :write, :value [1 2]}  ; a comment   #_ a form that is left out

Not a package of PyPI: edn_format alone is kept up; it gives no lines for messages,
refuses tags that it does not know (`#jepsen.history.Op{...}`), and needs ply.

Source: https://github.com/edn-format/edn
"""

import re
from typing import Any, NamedTuple

__all__ = ["Form", "NotEdn", "read_edn"]

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
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CHARS = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t"}
_WORDS = {"nil": None, "true": True, "false": False}
_WORDS |= {"##NaN": float("nan"), "##Inf": float("inf"), "##-Inf": float("-inf")}
_NUMBER = re.compile(
    r"([-+]?\d+)(?:N|/(\d*[1-9]\d*))?|([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)M?"
)


class Form(NamedTuple):
    """One value of a text, and the offset at which it begins."""

    at: int
    value: Any


class NotEdn(ValueError):
    """A text is not EDN. at: the offset of what is wrong."""

    def __init__(self, what: str, at: int):
        super().__init__(what)
        self.at = at


class _Open(NamedTuple):
    """A bracket or prefix whose forms are being read, and those read before it."""

    token: str
    at: int
    outer: list


def read_edn(text: str, *, items: bool = False) -> list[Form]:
    """Return the values in `text`, one after another.

    Vectors and lists become tuples, sets frozensets, maps dicts, keywords strings
    without their colon, ratios floats. A tag is dropped, and its value kept.

    items: if the text is one vector or list, return its items. Raises: NotEdn.
    """
    forms, stack, at = [], [], 0
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotEdn(f"nothing can be read from {text[at : at + 20]!r} on", at)
        start, at = token.start(token.lastgroup), token.end()
        if token["end"] is not None:
            break
        if opened := token["open"] or token["prefix"]:
            stack.append(_Open(opened, start, forms))
            forms = []
            continue
        if token["close"]:
            if not stack or _CLOSES.get(stack[-1].token) != token["close"]:
                raise NotEdn(f"{token['close']!r} closes nothing", start)
            opened = stack.pop()
            inside = any(outer.token in _CLOSES for outer in stack)
            form = Form(opened.at, _collected(opened, forms, inside))
            forms = opened.outer
        else:
            form = Form(start, _atom(token))
        while stack and stack[-1].token not in _CLOSES:
            prefix, _, forms = stack.pop()
            if prefix in _LEFT_OUT:
                break
        else:
            forms.append(form)
    if stack:
        raise NotEdn(f"a {stack[-1].token!r} is not closed", stack[-1].at)
    if items and len(forms) == 1 and isinstance(forms[0].value, _Items):
        return forms[0].value
    return [Form(form.at, _plain(form.value)) for form in forms]


class _Items(list):
    """The forms of a vector or list that stands in no other one."""


def _plain(value):
    if isinstance(value, _Items):
        return tuple(form.value for form in value)
    return value


def _collected(opened, forms, inside):
    items = [form.value for form in forms]
    if opened.token == "{":
        if len(items) % 2:
            raise NotEdn("a map has a key without a value", opened.at)
        return dict(zip(map(_hashable, items[::2]), items[1::2], strict=True))
    if opened.token == "#{":
        return frozenset(map(_hashable, items))
    return tuple(items) if inside else _Items(forms)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _atom(token):
    if token["text"]:
        return _ESCAPE.sub(_unescaped, token["text"][1:-1])
    if char := token["char"]:
        return _CHARS.get(char[1:]) or _of_code(char) or char[1:]
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


def _unescaped(found):
    letter = found[0][1]
    return _of_code(found[0]) or _ESCAPED.get(letter, letter)


def _of_code(escape):
    return chr(int(escape[2:], 16)) if escape[1] == "u" and len(escape) == 6 else ""
