"""Values between processes of which one is not trusted: plain data, or sealed bytes.

    not trusted ── seal ─────▶ bytes ── Reader ───▶ plain data, Sealed     trusted
                ◀─ pickle.loads ─ bytes ◀─ opening ──

What is no plain data becomes bytes that only the other side ever opens: a trusted
process reads without running anything, moves what it has been given, and gives it back.
"""

import io
import pickle
import reprlib
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import NamedTuple

import cloudpickle

__all__ = ["Named", "Reader", "Sealed", "SealedTuple", "opening", "resolved", "seal"]

_PROTOCOL, _WORDS = 5, 200


class Sealed:
    """Something of the learner's, as bytes; equal to what has the same bytes.

    kind, shown: the name of its type, and what it looks like, as the other side says.
    """

    __slots__ = "data", "kind", "shown"

    def __init__(self, data: bytes, kind: str, shown: str):
        put = object.__setattr__
        put(self, "data", bytes(data))
        put(self, "kind", str(kind)[:_WORDS])
        put(self, "shown", str(shown)[:_WORDS])

    def __setattr__(self, name, value):
        raise AttributeError(f"{name} stays as it is")

    def __eq__(self, other):
        return type(other) is Sealed and other.data == self.data

    def __hash__(self):
        return int.from_bytes(blake2b(self.data, digest_size=7).digest(), "big")

    def __repr__(self):
        return self.shown

    def __reduce__(self):
        return Sealed, (self.data, self.kind, self.shown)


class SealedTuple(tuple):
    """A named tuple or the like: a tuple here, and there again what it was."""

    def __new__(cls, parts: tuple, sealed: Sealed):
        """Return the tuple of these parts, which was sealed as a whole, too."""
        made = super().__new__(cls, parts)
        made.sealed = sealed
        return made

    def __reduce__(self):
        return SealedTuple, (tuple(self), self.sealed)


class Named(NamedTuple):
    """What the side that is not trusted means, by a name that the other one knows."""

    name: str
    args: tuple


def seal(thing: object, refer: Callable = lambda thing: None) -> bytes:
    """Return plain data as bytes, with everything else in it sealed.

    refer: returns for some things the `Named` that stands for them.
    """
    file = io.BytesIO()
    _Sealer(file, refer).dump(thing)
    return file.getvalue()


class _Sealer(pickle.Pickler):
    def __init__(self, file, refer):
        super().__init__(file, _PROTOCOL)
        self._refer = refer

    def reducer_override(self, thing):
        if isinstance(thing, type) and thing.__name__ in _NAMES:
            return NotImplemented
        if type(thing) is _Leaf:
            return Sealed, thing.of
        if known := self._refer(thing):
            return Named, tuple(known)
        try:
            shown = " ".join(reprlib.repr(thing).split())
        except Exception:
            shown = "something"
        leaf = _Leaf((cloudpickle.dumps(thing), type(thing).__name__, shown))
        if isinstance(thing, tuple):
            return SealedTuple, (tuple(thing), leaf)
        return Sealed, leaf.of


class _Leaf(NamedTuple):
    """What becomes a `Sealed` where it is read. of: its arguments."""

    of: tuple


class Reader(pickle.Unpickler):
    """Reads what was sealed. Nothing is called and nothing is changed meanwhile."""

    def __init__(self, data: bytes | memoryview):
        super().__init__(io.BytesIO(data))

    def find_class(self, module: str, name: str) -> Callable:
        """Return what makes something of ours; the module does not matter.

        Raises: UnpicklingError.
        """
        if name not in _NAMES:
            raise pickle.UnpicklingError(f"{name} is not to be called here")
        return _NAMES[name]


def _sealed(data, kind, shown):
    return Sealed(data, kind, shown)


def _sealed_tuple(parts, sealed):
    if type(parts) is not tuple or type(sealed) is not Sealed:
        raise pickle.UnpicklingError("this is no tuple that was sealed")
    return SealedTuple(parts, sealed)


def _named(name, args):
    return Named(str(name), tuple(args))


# Functions, since what pickled data can do to a class it would do to all of its kind.
_NAMES = {"Sealed": _sealed, "SealedTuple": _sealed_tuple, "Named": _named}


def resolved(thing: object, names: Mapping[str, Callable]) -> object:
    """Return plain data with what each `Named` in it means, by what makes it of args.

    Raises: KeyError for a name that nobody knows.
    """
    kind = type(thing)
    if kind is Named:
        return names[thing.name](*thing.args)
    if kind in (list, tuple):
        return kind(resolved(each, names) for each in thing)
    if kind is dict:
        return {key: resolved(each, names) for key, each in thing.items()}
    return thing


def opening(thing: object, refer: Callable = lambda thing: None) -> bytes:
    """Return bytes that, where they are unpickled, open all that is sealed in a thing.

    refer: says of a thing (function, arguments) that stand for it there, or None.
    """
    file = io.BytesIO()
    _Opening(file, refer).dump(thing)
    return file.getvalue()


class _Opening(cloudpickle.CloudPickler):
    def __init__(self, file, refer):
        super().__init__(file, _PROTOCOL)
        self._refer = refer

    def reducer_override(self, thing):
        if type(thing) is Sealed:
            return pickle.loads, (thing.data,)
        if type(thing) is SealedTuple:
            return pickle.loads, (thing.sealed.data,)
        known = self._refer(thing)
        return super().reducer_override(thing) if known is None else known
