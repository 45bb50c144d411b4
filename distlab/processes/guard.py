"""A guard around functions that are not ours, in the process in which they run.

Python asks an audit hook before it opens a file, starts a program, or imports. What the
hook needs it has in its closure, where nothing can be put in its place. It has the
words for what is refused; the system, where it can, refuses what goes around it.
"""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from socket import AF_INET, AF_INET6
from stat import S_IFDIR, S_IFMT
from types import FunctionType

from distlab.processes.seccomp import compute_only

__all__ = ["SideEffect", "guard_for_good"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TOLD = "os.remove os.rename os.mkdir os.rmdir os.link os.symlink os.truncate os.system"
_TOLD += " os.exec os.fork os.forkpty os.posix_spawn os.spawn pty.spawn os.kill"
_TOLD += " subprocess.Popen socket.connect socket.bind socket.sendto sqlite3.connect"
_TOLD += " gc.get_objects gc.get_referrers gc.get_referents sys._current_frames"
_ROOT = Path(__file__).resolve().parents[2]


class SideEffect(RuntimeError):
    """The learner's function does something that a second attempt would do again."""


def guard_for_good(
    locked: tuple[str, ...] = ("distlab.grading",), *, hidden: Iterable[str] = ()
) -> None:
    """Refuse from now on whatever others could see of a function but its value.

    locked: modules that cannot be imported, nor read if they are distlab's.
    hidden: folders of which nothing can be opened.
    """
    sys.dont_write_bytecode = True
    with suppress(OSError):  # where the system cannot, the hook is all there is
        compute_only()
    _forget(locked)
    refused, writes, side_effect = frozenset(_TOLD.split()), _WRITES, SideEffect
    networks = AF_INET, AF_INET6
    is_locked, is_hidden = _locks(locked), _hides(hidden)

    def asked(event, args):
        if is_locked(event, args):
            raise ImportError("this exercise asks for your own; the checks are locked")
        if event == "open" and args[2] & writes:
            raise side_effect(f"it opens {args[0]!r} to write (a side effect)")
        if event == "open" and is_hidden(args[0]):
            raise side_effect(f"it opens {args[0]!r}, which is the engine's (locked)")
        outward = event == "socket.__new__" and args[1] in networks
        if event in refused or outward or event[:7] == "ctypes.":
            raise side_effect(f"it uses {event} (a side effect)")

    sys.addaudithook(asked)


def _locks(names: Iterable[str]) -> Callable:
    """Return what tells whether an event and its arguments ask for a locked module.

    A file is known by its number on its disk, by whatever path somebody comes to it.
    """
    names, stat, kind = tuple(names), os.stat, type
    folders = [_ROOT.joinpath(*name.split(".")) for name in names]
    found = [stat(path) for folder in folders for path in folder.rglob("*.py*")]
    files = frozenset((one.st_dev, one.st_ino) for one in found)
    plain, errors = (str, bytes), (OSError, ValueError)
    format_of, folder = S_IFMT, S_IFDIR

    def is_locked(event, args):
        if event == "import":
            return args[0].startswith(names)
        if event != "open" or kind(args[0]) is int:
            return False
        if kind(args[0]) not in plain:
            return True  # it may be another path when it is asked again
        try:
            one = stat(args[0])
        except errors:
            return False
        # by an open folder its files have other names
        opens_folder = args[1] is None and format_of(one.st_mode) == folder
        return opens_folder or (one.st_dev, one.st_ino) in files

    return is_locked


def _hides(folders):
    """Return what tells whether a path, that is no locked one, is below a folder."""
    stat, kind, errors = os.stat, type, (OSError, ValueError)
    found = map(stat, filter(os.path.exists, folders))
    numbers = frozenset((one.st_dev, one.st_ino) for one in found)

    def is_hidden(path):
        if not numbers or kind(path) is int:
            return False
        path = path if kind(path) is str else path.decode(errors="surrogateescape")
        at = f"{path.rpartition('/')[0]}/." if "/" in path else "."
        above = None
        while True:
            try:
                one = stat(at)
            except errors:
                return False
            here = one.st_dev, one.st_ino
            if here in numbers or here == above:
                return here in numbers
            at, above = f"{at}/..", here

    return is_hidden


def _forget(locked: tuple[str, ...]) -> None:
    """Empty every function of locked modules that this process has imported.

    A fork has what its server has imported, and no hook is asked for what is there.
    """
    names = [name for name in sys.modules if name.startswith(locked)]
    empty, seen = (lambda: None).__code__, set()
    for name in names:
        waiting = [*vars(sys.modules.pop(name)).values()]
        while waiting:
            thing = waiting.pop()
            thing = getattr(thing, "__func__", thing)
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            if isinstance(thing, property):
                waiting += [thing.fget]
            elif isinstance(thing, dict | list | tuple):
                waiting += thing.values() if isinstance(thing, dict) else thing
            elif not str(getattr(thing, "__module__", "")).startswith(locked):
                continue
            elif isinstance(thing, type):
                waiting += vars(thing).values()
            elif isinstance(thing, FunctionType):
                waiting += _inside(thing)
                thing.__code__ = thing.__code__.replace(
                    co_code=empty.co_code, co_consts=(None,), co_names=()
                )
            elif hasattr(thing, "__wrapped__"):
                waiting.append(thing.__wrapped__)


def _inside(function):
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it may be empty
            yield cell.cell_contents
