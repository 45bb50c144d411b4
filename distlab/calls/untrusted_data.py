"""Deserialization of bytes from untrusted code: plain data, or an error."""

import contextlib
import functools
import gc
import io
import pickle
import sys

from distlab.errors import NotSerializable

__all__ = ["read_untrusted"]

_MOST_THINGS, _DEEPEST, _MOST_DIGITS_BITS = 10_000_000, 40, 2**12
_LEAVES = {type(None), bool, float, complex, str, bytes, bytearray}
_MANY = {list, tuple, set, frozenset}
_MADE = {"set": set, "frozenset": frozenset, "complex": complex}


def read_untrusted(data: bytes | memoryview) -> object:
    """Return the object that `pack` packed, if it is plain data; make nothing else.

    Plain are None, bool, int, float, complex, str, bytes, bytearray, and lists, tuples,
    sets and dicts of these, and exceptions of Python's and distlab's own. A pickle gets
    no class, which it could change, but only a function that makes an instance of one.

    Raises: NotSerializable naming its type, as "a Tensor, which is not plain data".
    """
    try:
        with _without_collecting():
            thing = _PlainUnpickler(io.BytesIO(data)).load()
            _check_plain(thing)
    except NotSerializable:
        raise
    except Exception as error:
        why = type(error).__name__
        raise NotSerializable(f"what is no data at all ({why})") from None
    return thing


@contextlib.contextmanager
def _without_collecting():
    """Disable garbage collection, which would scan millions of new objects again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that finds the constructors of plain data, and nothing else."""

    def find_class(self, module, name):
        """Return a function that makes instances of the named class.

        Raises: NotSerializable if those are no plain data.
        """
        if module in ("builtins", "distlab.errors"):
            kind = _MADE.get(name) or getattr(sys.modules[module], name, None)
            if kind in _MADE.values():
                return functools.partial(kind)
            if isinstance(kind, type) and issubclass(kind, BaseException):
                return functools.partial(kind.__new__, kind)
        raise _not_plain(name.rpartition(".")[2])


_MADE_BY = {"_rebuild_tensor_v2": "Tensor", "_rebuild_parameter": "Parameter"}
_MADE_BY |= {"_reconstruct": "ndarray", "scalar": "number of numpy"}


def _not_plain(name):
    name = _MADE_BY.get(name, name)
    name = str(name)[:80].encode(errors="replace").decode()
    vowel = "n" * (name[:1] in tuple("aeiouAEIOU"))
    return NotSerializable(f"a{vowel} {name}, which is not plain data")


def _check_plain(thing):
    """Check every object, each as often as it occurs: so often it would be read."""
    left, looked = [(thing, 0)], 0
    while left:
        (thing, level), looked = left.pop(), looked + 1
        kind = type(thing)
        short = kind is int and thing.bit_length() <= _MOST_DIGITS_BITS
        leaf = kind in _LEAVES or short
        flat = kind in _MANY and _LEAVES.issuperset(map(type, thing))
        looked += len(thing) if flat else 0
        if looked >= _MOST_THINGS or (level > _DEEPEST and not leaf):
            raise NotSerializable("more, or deeper, than anybody could read")
        if leaf or flat:
            continue
        if kind in _MANY:
            left += [(each, level + 1) for each in thing]
        elif kind is dict:
            left += [(each, level + 1) for pair in thing.items() for each in pair]
        elif isinstance(thing, BaseException):
            left += [(each, level + 1) for each in (*thing.args, vars(thing))]
        else:
            raise _not_plain(kind.__name__)
