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

import cloudpickle

__all__ = ["Reader", "Sealed", "opening", "seal"]

_PROTOCOL, _WORDS = 5, 200


class Sealed:
    """Something of the learner's, as bytes; equal to what has the same bytes.

    kind, shown: the name of its type, and what it looks like, as the other side says.
    """

    __slots__ = "data", "kind", "shown"

    def __init__(self, data: bytes, kind: str, shown: str):
        self.data = bytes(data)
        self.kind, self.shown = str(kind)[:_WORDS], str(shown)[:_WORDS]

    def __eq__(self, other):
        return type(other) is Sealed and other.data == self.data

    def __hash__(self):
        return int.from_bytes(blake2b(self.data, digest_size=7).digest(), "big")

    def __repr__(self):
        return self.shown

    def __reduce__(self):
        return Sealed, (self.data, self.kind, self.shown)


def seal(thing: object, refer: Callable = lambda thing: None) -> bytes:
    """Return plain data as bytes, with everything else in it sealed.

    refer: says of a thing (function, arguments), by which a `Reader` knows it, or None.
    """
    file = io.BytesIO()
    _Sealer(file, refer).dump(thing)
    return file.getvalue()


class _Sealer(pickle.Pickler):
    def __init__(self, file, refer):
        super().__init__(file, _PROTOCOL)
        self._refer = refer
        self._named = {Sealed}

    def reducer_override(self, thing):
        if any(thing is each for each in self._named):
            return NotImplemented
        known = self._refer(thing)
        if known is None:
            try:
                shown = " ".join(reprlib.repr(thing).split())
            except Exception:
                shown = "something"
            known = Sealed, (cloudpickle.dumps(thing), type(thing).__name__, shown)
        self._named.add(known[0])
        return known


class Reader(pickle.Unpickler):
    """Reads what was sealed. names: of what else may be called -> what is called."""

    def __init__(
        self, data: bytes | memoryview, names: Mapping[str, Callable] | None = None
    ):
        super().__init__(io.BytesIO(data))
        self._names = {"Sealed": _sealed} | (names or {})

    def find_class(self, module: str, name: str) -> Callable:
        """Return what stands for a name; the module does not matter.

        Raises: UnpicklingError.
        """
        if name not in self._names:
            raise pickle.UnpicklingError(f"{name} is not to be called here")
        return self._names[name]


def _sealed(data, kind, shown):
    return Sealed(data, kind, shown)


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
        known = self._refer(thing)
        return super().reducer_override(thing) if known is None else known
