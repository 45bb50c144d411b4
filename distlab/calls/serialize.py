"""Serialization of functions, arguments and results between the kernel and processes.

Functions of a notebook or script are serialized by value, with the globals they use. In
a rank those globals become the rank's `__main__`, which makes state persist in a
`World`: a global that the learner has not changed since the last call keeps the
value that the rank gave it.
"""

import functools
import importlib
import inspect
import io
import pickle
import reprlib
import sys
import types
from collections.abc import Callable, Sequence

import cloudpickle

from distlab.errors import InvalidArgument, NotSerializable

__all__ = [
    "Arrivals",
    "Pickler",
    "check_function",
    "pack",
    "pack_functions",
    "pack_task",
    "unpack",
]


def check_function(fn: Callable, args: Sequence, first: str = "comm") -> None:
    """Refuse a function that cannot be called as `fn(comm, *args)`.

    first: the name of its first argument.

    Raises: InvalidArgument.
    """
    if not callable(fn):
        raise InvalidArgument(
            f"run needs a function that each rank calls, and got {_a(fn)}. "
            "If you wrote run(hello(...)), leave the brackets away: run(hello)."
        )
    if not isinstance(args, tuple | list):
        raise InvalidArgument(
            f"args is a tuple of further arguments, and got {_a(args)}. "
            "For one argument write args=(value,)."
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return  # some built-ins have no signature; the call itself will fail
    try:
        signature.bind(object(), *args)
    except TypeError as error:
        name = getattr(fn, "__name__", "the function")
        extra = f" and then the {len(args)} of args" if args else ""
        raise InvalidArgument(
            f"each rank calls {name}({first}{', *args' if args else ''}), but "
            f"{name}{signature} does not take that: {error}. "
            f"Its first argument is the rank's {first}{extra}: "
            f"def {name}({first}, ...)."
        ) from None


def pack_task(fn: Callable, args: Sequence, faults: tuple) -> bytes:
    """Return a call as bytes.

    Raises: NotSerializable naming the argument or global that does not pickle.
    """
    try:
        return _dump((fn, tuple(args), faults))
    except Exception as error:
        raise NotSerializable(_blame(fn, args, error)) from None


def pack_functions(functions: Sequence[Callable | None], to: str) -> bytes:
    """Return functions as bytes, for the receiver named `to`, such as "a worker".

    Raises: NotSerializable naming the function, and the global that does not pickle.
    """
    try:
        return _dump(functions)
    except Exception:
        for fn in functions:
            try:
                _dump(fn)
            except Exception as error:
                raise NotSerializable(_blame(fn, (), error, to)) from None
        raise


def pack(thing: object, sender: str = "a rank") -> bytes:
    """Return a result of a rank, or of another `sender`, as bytes.

    Raises: NotSerializable naming the part that does not pickle.
    """
    try:
        return _dump(thing)
    except Exception as error:
        where, part = _culprit(thing, "the result")
        raise NotSerializable(
            f"{where} is {_a(part)}, which cannot be sent from {sender} to the "
            f"notebook ({_why(error)}). Return numbers, tensors, lists or dicts."
        ) from None


def unpack(data: bytes | memoryview) -> object:
    """Return the object that `pack` packed."""
    return pickle.loads(data)


class Arrivals:
    """A rank's receiver of calls, which keeps the globals that the rank changed."""

    def __init__(self, persistent: bool):
        self._persistent = persistent
        self._shipped = {}

    def unpack_task(self, data: bytes | memoryview) -> tuple[Callable, tuple, tuple]:
        """Return (fn, args, faults).

        Invariant: a global of `__main__` is replaced only if the notebook's value has
        changed since it was last sent, so `counter += 1` in a rank goes on counting
        while `learning_rate = 0.1` in a cell takes effect.
        """
        if not self._persistent:
            return pickle.loads(data)
        namespace = _main_globals()
        kept = {name: namespace.pop(name) for name in _own_names(namespace)}
        try:
            task = pickle.loads(data)
            for name in _own_names(namespace):
                value = namespace[name]
                if isinstance(value, types.FunctionType | types.ModuleType | type):
                    continue
                digest = _digest(value)
                unchanged = digest is not None and self._shipped.get(name) == digest
                if name in kept and unchanged:
                    namespace[name] = kept[name]
                self._shipped[name] = digest
        finally:
            for name, value in kept.items():
                namespace.setdefault(name, value)
        return task


def _own_names(namespace):
    """Return the names that a learner gave, without those that every module has."""
    return [name for name in namespace if not name.startswith("__")]


def _digest(value):
    try:
        return hash(cloudpickle.dumps(value))
    except Exception:
        return None  # it arrived, but does not pickle again: take it as changed


class _MainGlobals(dict):
    """A stub for the sender's `__main__` globals; unpickles as the receiver's own."""

    def __reduce__(self):
        return _main_globals, ()


def _main_globals():
    return sys.modules["__main__"].__dict__


class Pickler(cloudpickle.CloudPickler):
    """cloudpickle's pickler, which keeps files of code, two decorators, our modules.

    cloudpickle 3.1.3 drops the file that code is from, so failures have no lines;
    and it looks the decorators up by name.
    """

    def reducer_override(self, obj):
        """Return the reduction of `obj`, if it differs from cloudpickle's."""
        if isinstance(obj, types.CodeType):
            _, arguments = self.dispatch_table[types.CodeType](obj)
            return _code, (arguments, obj.co_filename)
        if isinstance(obj, functools._lru_cache_wrapper) and _is_own(obj):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        if isinstance(obj, functools.cached_property):  # has a lock before Python 3.12
            return _cached_property, (obj.func, obj.attrname)
        if isinstance(obj, types.ModuleType) and obj.__name__.startswith("distlab."):
            return importlib.import_module, (obj.__name__,)  # also one sent by value
        return super().reducer_override(obj)


def _is_own(thing):
    """Return True if it was defined in a notebook, or in a file beside it."""
    module = getattr(thing, "__module__", None)
    return module == "__main__" or module in cloudpickle.list_registry_pickle_by_value()


def _code(arguments, file):
    return types.CodeType(*arguments).replace(co_filename=file)


def _cached(fn, parameters):
    return functools.lru_cache(**parameters)(fn)


def _cached_property(fn, name):
    again = functools.cached_property(fn)
    again.attrname = name
    return again


def _dump(thing):
    file = io.BytesIO()
    pickler = Pickler(file)
    # cloudpickle gives functions that shared their globals one new dict on arrival,
    # and finds them in this table; it must not be empty, or it would be filled.
    pickler.globals_ref[id(_main_globals())] = _MainGlobals(__name__="__main__")
    pickler.dump(thing)
    return file.getvalue()


def _blame(fn, args, error, to="a rank"):
    """Return a sentence on the argument or global of `fn` that does not pickle."""
    name = getattr(fn, "__name__", "the function")
    for number, value in enumerate(args):
        where, part = _culprit(value, f"args[{number}]")
        if part is not _FINE:
            return (
                f"{where} is {_a(part)}, which cannot be sent to {to} ({_why(error)})."
            )
    seen = inspect.getclosurevars(fn) if isinstance(fn, types.FunctionType) else None
    named = {**seen.globals, **seen.nonlocals} if seen else {}
    for variable, value in named.items():
        where, part = _culprit(value, variable)
        if part is not _FINE:
            return (
                f"the variable `{where}`, used by `{name}`, is {_a(part)}, which "
                f"cannot be sent to {to} ({_why(error)}). Make it inside `{name}` "
                f"instead, so that each {to.split()[-1]} has its own."
            )
    return f"{name} cannot be sent to {to}: {_why(error)}."


_FINE = object()


def _culprit(thing, where, above=()):
    """Return the path and the smallest part that does not pickle, else `_FINE`."""
    if any(thing is one for one in above) or _is_serializable(thing):
        return where, _FINE
    if isinstance(thing, dict):
        parts = [(f"{where}[{key!r}]", value) for key, value in thing.items()]
    elif isinstance(thing, list | tuple):
        parts = [(f"{where}[{index}]", value) for index, value in enumerate(thing)]
    elif _has_attributes(thing):
        parts = [(f"{where}.{key}", value) for key, value in vars(thing).items()]
    else:
        parts = []
    for place, part in parts:
        found = _culprit(part, place, (*above, thing))
        if found[1] is not _FINE:
            return found
    return where, thing


def _has_attributes(thing):
    kinds = type | types.FunctionType  # these are sent by name, or as code
    return hasattr(thing, "__dict__") and not isinstance(thing, kinds)


def _is_serializable(thing):
    try:
        _dump(thing)
    except Exception:
        return False
    return True


def _a(thing):
    kind = type(thing).__name__
    shown = reprlib.repr(thing)
    shown = "" if shown[0] == "<" else f" ({shown})"  # an address is no help
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}{shown}"


def _why(error):
    return str(error).strip().rstrip(".") or type(error).__name__
