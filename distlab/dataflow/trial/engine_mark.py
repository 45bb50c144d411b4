"""Whether the engine is still its own: digests and names of its functions."""

import builtins
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import FunctionType

__all__ = ["engine_mark", "names_of_ours"]

_METHODS = (FunctionType, classmethod, staticmethod, property)
_OURS = ("distlab.", "json", "cloudpickle", "pickle", "builtins", "threading")
_ENGINE = ("distlab.dataflow.rdd", "distlab.dataflow.worker", "distlab.trace.lineage")


def engine_mark() -> str:
    """Return a digest of the engine's functions, to see whether they are still its own.

    Workers and driver have the same, as long as nobody puts something in their place.
    """
    digest = hashlib.sha256()
    for name in sorted(sys.modules):
        if name.startswith(_ENGINE):
            for where, function in _functions(sys.modules[name]):
                code = function.__code__
                digest.update(f"{name} {where} {code.co_filename}".encode())
                digest.update(f"{code.co_firstlineno} {code.co_names}".encode())
                digest.update(code.co_code)
    return digest.hexdigest()


def names_of_ours(modules: frozenset[str]) -> Callable[[], dict]:
    """Return what tells (module, name) -> what it stands for, if that can be called.

    It uses nothing that others can put something in the place of.
    """
    there = modules & set(sys.modules)
    ours = {name: sys.modules[name] for name in there if name.startswith(_OURS)}
    private = {"ours": ours, "METHODS": _METHODS, "__builtins__": dict(vars(builtins))}
    return FunctionType(_names_now.__code__, private)


def _names_now():
    found = {}
    for name, module in ours.items():  # noqa: F821
        for own, thing in vars(module).items():
            if callable(thing):
                found[name, own] = id(thing)
            if isinstance(thing, type) and thing.__module__ == name:
                for more, member in vars(thing).items():
                    if isinstance(member, METHODS):  # noqa: F821
                        found[name, own, more] = id(member)
    return found


def _functions(module) -> Iterator[tuple[str, FunctionType]]:
    """Yield (name, function) of all functions and methods that a module has."""
    for name, thing in sorted(vars(module).items()):
        if isinstance(thing, FunctionType):
            yield name, thing
        elif isinstance(thing, type) and thing.__module__ == module.__name__:
            for own, member in sorted(vars(thing).items()):
                member = getattr(member, "__func__", member)
                member = getattr(member, "fget", None) or member
                if isinstance(member, FunctionType):
                    yield f"{name}.{own}", member
