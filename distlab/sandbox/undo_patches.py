"""Restoration of what distlab and builtins define, after a submission's cells ran.

A cell may patch modules that it has imported. Later cells then run with the patches;
the forks for a check do not. Names in capitals are constants: they and their contents
are restored, other variables are state and are not.
"""

import builtins
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

__all__ = ["remember", "restore"]

_DEFINITIONS = type | FunctionType | BuiltinFunctionType | ModuleType
_BUILTIN_NAMES = frozenset(vars(builtins))
_modules, _classes, _functions, _contents = {}, {}, {}, {}


def remember() -> None:
    """Store what the distlab modules that are imported now define, and builtins."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("distlab", "builtins"):
            known = {
                key: value
                for key, value in vars(module).items()
                if isinstance(value, _DEFINITIONS) or _is_constant(key)
            }
            _modules[module] = known, frozenset(vars(module))
    for known, _ in _modules.values():
        for value in known.values():
            _note(value)


def _is_constant(name):
    return name.isupper() and not name.startswith("__")


def _is_ours(kind):
    return kind.__module__.partition(".")[0] == "distlab"


def _note(value):
    if isinstance(value, FunctionType):
        _functions[value] = value.__code__, value.__defaults__, value.__kwdefaults__
    elif not isinstance(value, type):
        _note_contents(value)
    elif _is_ours(value) and value not in _classes:
        inner = {
            key: part
            for key, part in vars(value).items()
            if isinstance(part, FunctionType | property | classmethod | staticmethod)
            or _is_constant(key)
        }
        _classes[value] = inner
        for part in inner.values():
            function = getattr(part, "__func__", getattr(part, "fget", part))
            if isinstance(function, FunctionType):
                _note(function)


def _note_contents(value):
    """Store the contents of a constant, and of the containers and objects in it."""
    if _is_ours(type(value)) and hasattr(value, "__dict__"):
        value = vars(value)
    if isinstance(value, dict | list | set) and id(value) not in _contents:
        _contents[id(value)] = value, value.copy()
        for each in value.values() if isinstance(value, dict) else value:
            _note_contents(each)


def restore() -> None:
    """Restore what `remember` has stored; remove names that would hide builtins."""
    for function, (code, defaults, keywords) in _functions.items():
        function.__code__, function.__defaults__ = code, defaults
        function.__kwdefaults__ = keywords
    for kind, known in _classes.items():
        for key, part in known.items():
            if vars(kind).get(key) is not part:
                setattr(kind, key, part)
    for value, known in _contents.values():
        value.clear()
        value.extend(known) if isinstance(value, list) else value.update(known)
    for module, (known, names) in _modules.items():
        vars(module).update(known)
        for name in (vars(module).keys() - names) & _BUILTIN_NAMES:
            delattr(module, name)
