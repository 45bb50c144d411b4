"""Restoration of distlab's functions and classes after a submission's cells ran.

A cell may patch modules that it has imported. Later cells then run with the patches;
the forks for a check do not.
"""

import sys
from types import FunctionType

__all__ = ["remember", "restore"]

_modules, _classes, _functions = {}, {}, {}


def remember() -> None:
    """Store every function and class of the distlab modules that are imported now."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "distlab":
            _modules[module] = {
                key: value
                for key, value in vars(module).items()
                if isinstance(value, type | FunctionType)
            }
    for known in _modules.values():
        for value in known.values():
            _note(value)


def _note(value):
    if isinstance(value, FunctionType):
        _functions[value] = value.__code__, value.__defaults__, value.__kwdefaults__
    elif value.__module__.partition(".")[0] == "distlab" and value not in _classes:
        inner = {
            key: part
            for key, part in vars(value).items()
            if isinstance(part, FunctionType | property | classmethod | staticmethod)
        }
        _classes[value] = inner
        for part in inner.values():
            function = getattr(part, "__func__", getattr(part, "fget", part))
            if isinstance(function, FunctionType):
                _note(function)


def restore() -> None:
    """Restore the functions and classes that `remember` has stored."""
    for function, (code, defaults, keywords) in _functions.items():
        function.__code__, function.__defaults__ = code, defaults
        function.__kwdefaults__ = keywords
    for kind, known in _classes.items():
        for key, part in known.items():
            if vars(kind).get(key) is not part:
                setattr(kind, key, part)
    for module, known in _modules.items():
        vars(module).update(known)
