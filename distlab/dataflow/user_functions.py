"""The user's functions, as a worker calls them, and the errors when one fails.

An error names the record or the key that the function failed on, beside the line of
code.
"""

import inspect
import numbers
import reprlib
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from distlab.dataflow.worker import AtRecord
from distlab.errors import InvalidArgument

__all__ = [
    "Functions",
    "applied",
    "check_functions",
    "check_mapped",
    "check_pair",
    "described_pairs",
    "noted_keys",
    "stable_hash",
    "stable_hashes",
    "unhashable",
    "unordered",
]

_SHAPES = {
    "mapper": [("line",), ("name", "line")],
    "reducer": [("key", "values")],
    "combiner": [("key", "values")],
    "partitioner": [("key", "reducers")],
}

_LOOP = {
    "distlab.dataflow.mapreduce.map_task",
    "distlab.dataflow.mapreduce.map_output_buffer",
    "collections",
}


class Functions(NamedTuple):
    """The functions of a job; combiner and partitioner may be missing.

    named: whether the mapper is called with the file's name before the line.
    """

    mapper: Callable
    reducer: Callable
    combiner: Callable | None
    partitioner: Callable | None
    named: bool


def check_functions(mapper, reducer, combiner, partitioner) -> Functions:
    """Return the functions, after a check of their signatures.

    Raises: InvalidArgument naming the one that cannot be called as it will be.
    """
    given = locals()
    fits = {name: _shape(name, fn) for name, fn in given.items() if fn is not None}
    for name in ("mapper", "reducer"):
        if name not in fits:
            raise InvalidArgument(f"{name} is missing; MapReduce(mapper, reducer).")
    return Functions(*given.values(), named=len(fits["mapper"]) == 2)


def _shape(what, fn):
    """Return the names of the arguments that `fn` takes, out of `_SHAPES[what]`."""
    calls = " or ".join(f"{what}({', '.join(shape)})" for shape in _SHAPES[what])
    if not callable(fn):
        raise InvalidArgument(
            f"{what} is a function, called as {calls}, and got {reprlib.repr(fn)}."
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return _SHAPES[what][0]  # some built-ins have no signature
    for shape in _SHAPES[what]:
        try:
            signature.bind(*shape)
        except TypeError:
            continue
        return shape
    name = getattr(fn, "__name__", what)
    raise InvalidArgument(
        f"{what} is called as {calls}, but {name}{signature} does not take that."
    )


def applied(fn: Callable, role: str, groups: Iterable) -> Iterator:
    """Yield (key, results) of a reducer or combiner, for every key's values.

    `fn` returns one value, or is a generator of any number of them.

    Raises: AtRecord if it fails.
    """
    for key, values in groups:
        try:
            result = fn(key, iter(values))
        except Exception as error:
            raise _at_key(role, key) from error
        several = hasattr(result, "__next__")
        yield key, _described(result, role, key) if several else [result]


def noted_keys(functions: Functions, note: Callable) -> Functions:
    """Return the functions; those that are called with a key note it first."""

    def noting(role, fn, key, more):
        note(f"The {role} was at the key {reprlib.repr(key)}.")
        return fn(key, more)

    by_key = ("reducer", "combiner", "partitioner")
    given = {role: getattr(functions, role) for role in by_key}
    return functions._replace(
        **{role: fn and partial(noting, role, fn) for role, fn in given.items()}
    )


def _described(results, role, key):
    """Yield the items of a generator; raise AtRecord with the key if it fails."""
    try:
        yield from results
    except Exception as error:
        raise _at_key(role, key) from error


def _at_key(role, key):
    return AtRecord(f"The {role} was at the key {reprlib.repr(key)}.")


def unordered(*keys: object) -> TypeError:
    """Return the exception for keys that cannot be sorted."""
    which = " and ".join(map(reprlib.repr, keys))
    return TypeError(
        f"keys are sorted, and {which} cannot be. "
        "Take keys of one type, such as strings, numbers or tuples."
    )


def check_mapped(result: object) -> Iterable:
    """Return an iterator over a mapper's pairs, after a check of the first of them.

    Raises: TypeError for a dict, a string, or any other result without pairs.
    """
    if isinstance(result, dict):
        raise TypeError(
            f"the mapper returned the dict {reprlib.repr(result)}, which gives its "
            "keys alone. Return its items(), which are pairs."
        )
    if isinstance(result, str | bytes) or not isinstance(result, Iterable):
        raise TypeError(
            f"the mapper returned {reprlib.repr(result)}, and not (key, value) "
            "pairs. Yield them: yield key, value"
        )
    pairs = iter(result)
    first = list(islice(pairs, 1))
    for pair in first:
        check_pair(pair)
    return chain(first, pairs)


def described_pairs(mapper: Callable, line: str, error: Exception) -> Exception:
    """Return the exception to report when the loop over a mapper's pairs failed."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    if not {frame.f_globals["__name__"] for frame in frames} <= _LOOP:
        return error  # raised in the mapper itself, below the loop
    try:
        for pair in check_mapped(mapper(line)):
            check_pair(pair)
    except Exception as other:
        return other
    return error


def check_pair(pair: object) -> None:
    """Check that `pair` is a (key, value) pair with a hashable key.

    Raises: TypeError.
    """
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(
            f"the mapper gave {reprlib.repr(pair)}, which is no (key, value) "
            "pair. Yield pairs: yield key, value"
        )
    _check_hashable(pair[0])


def _check_hashable(key):
    try:
        hash(key)
    except TypeError as error:
        raise unhashable(key, error) from None


def unhashable(key: object, error: TypeError) -> TypeError:
    """Return an exception that names the unhashable key; other errors as they are."""
    if "unhashable" not in str(error):
        return error
    return TypeError(
        f"the key {reprlib.repr(key)} is a {type(key).__name__}, which cannot be "
        "hashed. A tuple can be a key; a list, dict or set cannot."
    )


def stable_hashes(keys: Iterable) -> Iterable[int]:
    """Return the stable hash of each key, with a fast path for strings."""
    if set(map(type, keys)) == {str}:
        return map(zlib.crc32, map(partial(str.encode, errors="surrogatepass"), keys))
    return map(stable_hash, keys)


def stable_hash(key: object) -> int:
    """Return a hash that is the same in every process; equal keys have equal ones.

    Python's own `hash` of a string differs from process to process.

    Raises: TypeError for any other type.
    """
    if isinstance(key, str):
        return zlib.crc32(key.encode(errors="surrogatepass"))
    if isinstance(key, int):
        return hash(key)
    if isinstance(key, bytes):
        return zlib.crc32(key)
    if key is None:
        return 1
    if isinstance(key, numbers.Number):
        if key != key:
            raise unordered(key)
        return hash(key)
    if isinstance(key, tuple):
        mixed = len(key)
        for part in key:
            mixed = (1000003 * mixed ^ stable_hash(part)) & 0xFFFFFFFF
        return mixed
    raise TypeError(
        f"the key {reprlib.repr(key)} is a {type(key).__name__}, whose hash may differ "
        "from process to process. Take strings, bytes, numbers or tuples of them as "
        "keys, or give a partitioner."
    )
