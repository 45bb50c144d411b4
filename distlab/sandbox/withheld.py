"""Modules that an exercise asks for, and the stubs that replace them.

Where submissions are graded, the files themselves are not in the sandbox: `STUB` is
mounted over them. In a learner's own notebook, `withhold` replaces them by the stub.
"""

import glob
import importlib.util
import os
import pkgutil
import sys
import types
from collections.abc import Iterable
from functools import cache

from distlab.errors import InvalidArgument

__all__ = ["STUB", "files_of", "modules_of", "withhold"]

STUB = '''
"""What this exercise asks for is not here while it is checked."""

__all__ = []


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    class Missing:  # a class, since some stand in annotations
        def __new__(cls, *args, **kwargs):
            raise NotImplementedError(
                f"this exercise asks for your own; distlab's {name} is not here"
            )

    return Missing
'''


_withheld = set()


def modules_of(package: str, *, but: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a package and its modules, except those whose last names are in `but`."""
    folders = _spec(package).submodule_search_locations or ()
    found = [module.name for module in pkgutil.iter_modules(folders)]
    names = [name for name in found if name not in set(but)]
    return package, *(f"{package}.{name}" for name in names)


def withhold(modules: Iterable[str]) -> None:
    """Replace modules in this process by stubs whose functions raise an error."""
    for name in sorted({*modules} - _withheld):  # a package before its modules
        _withheld.add(name)
        stub = types.ModuleType(name)
        exec(STUB, stub.__dict__)
        stub.__spec__ = _spec(name)
        if path := stub.__spec__.submodule_search_locations:
            stub.__path__ = list(path)  # the rest of a package stays
        sys.modules[name] = stub
        package, _, inner = name.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], inner, stub)


def files_of(modules: Iterable[str]) -> list[str]:
    """Return the files of modules, with compiled ones; a package's `__init__.py`."""
    files = [_spec(name).origin for name in modules]
    for file in list(files):
        folder, name = os.path.split(file)
        stem = glob.escape(os.path.join(folder, "__pycache__", name.removesuffix("py")))
        files += glob.glob(f"{stem}*.pyc")
    return files


@cache
def _spec(name):
    """Return the spec of a module.

    Raises: InvalidArgument if there is no such module.
    """
    try:
        if spec := importlib.util.find_spec(name):
            return spec
    except ModuleNotFoundError:
        pass
    raise InvalidArgument(f"there is no module {name} that a check could withhold.")
