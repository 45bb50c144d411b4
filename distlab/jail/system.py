"""What Linux offers to make a jail with, and Python's library does not know."""

import ctypes
import fcntl
import os
import socket
import struct

__all__ = [
    "NEW_IPC",
    "NEW_MOUNTS",
    "NEW_NAMES",
    "NEW_NET",
    "NEW_PIDS",
    "NEW_USERS",
    "READ_ONLY",
    "attach",
    "be_subreaper",
    "detach",
    "drop_bounding",
    "drop_capabilities",
    "enter",
    "loopback_up",
    "mount",
    "no_new_privileges",
    "pivot",
    "private_mounts",
    "set_dumpable",
    "taken",
    "unshare",
]

NEW_MOUNTS, NEW_NAMES, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USERS, NEW_PIDS, NEW_NET = 0x10000000, 0x20000000, 0x40000000

_READ_ONLY, _NO_SETUID, _NO_DEVICES = 1, 2, 4
READ_ONLY = _READ_ONLY
_MS_PRIVATE, _MS_RECURSIVE = 1 << 18, 1 << 14
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_CLONE_TREE, _CLOSE_ON_EXEC = 1, os.O_CLOEXEC
_MOVE_FROM_DESCRIPTOR = 4
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same on all machines
_SET_DUMPABLE, _DROP_BOUNDING, _SUBREAPER, _NO_NEW_PRIVILEGES = 4, 24, 36, 38
_CAPABILITIES_3 = 0x20080522
_SET_FLAGS_OF_INTERFACE, _UP_AND_RUNNING = 0x8914, 0x41

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *arguments):
    """Call the C library.

    Raises: OSError.
    """
    done = getattr(_libc, name)(*arguments)
    if done == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return done


def _path(path):
    return ctypes.c_char_p(os.fsencode(path))


def unshare(kinds: int) -> None:
    """Leave the namespaces of these kinds for new ones."""
    _call("unshare", ctypes.c_int(kinds))


def enter(descriptor: int, kind: int) -> None:
    """Enter the namespace of which this is a descriptor."""
    _call("setns", ctypes.c_int(descriptor), ctypes.c_int(kind))


def private_mounts() -> None:
    """Let nobody outside see what is mounted from now on."""
    _call(
        "mount",
        None,
        _path("/"),
        None,
        ctypes.c_ulong(_MS_PRIVATE | _MS_RECURSIVE),
        None,
    )


def mount(kind: str, where: str, options: str = "") -> None:
    """Mount a new file system, on which nothing sets a user; devices are terminals."""
    devices = 0 if kind == "devpts" else _NO_DEVICES
    flags = ctypes.c_ulong(_NO_SETUID | devices)
    _call("mount", _path(kind), _path(where), _path(kind), flags, _path(options))


class _Attributes(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "users")]


def taken(path: str, attributes: int = 0) -> int:
    """Return a descriptor of what lies at a path, to be attached elsewhere as well."""
    flags = _CLONE_TREE | _CLOSE_ON_EXEC | _AT_RECURSIVE
    tree = _call("syscall", _OPEN_TREE, _AT_FDCWD, _path(path), ctypes.c_uint(flags))
    device = not (os.path.isdir(path) or os.path.isfile(path))
    wanted = _Attributes(attributes | _NO_SETUID | (0 if device else _NO_DEVICES))
    _call(
        "syscall",
        _MOUNT_SETATTR,
        tree,
        _path(""),
        ctypes.c_uint(_AT_EMPTY_PATH | _AT_RECURSIVE),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
    return tree


def attach(tree: int, where: str) -> None:
    """Attach what was taken; the descriptor is closed."""
    from_where = _path("")
    flags = ctypes.c_uint(_MOVE_FROM_DESCRIPTOR)
    _call("syscall", _MOVE_MOUNT, tree, from_where, _AT_FDCWD, _path(where), flags)
    os.close(tree)


def detach(where: str) -> None:
    """Unmount, at once and with all below."""
    _call("umount2", _path(where), _MNT_DETACH)


def pivot(root: str) -> None:
    """Make a mounted folder the root, read-only; forget the old one."""
    os.chdir(root)
    _call(
        "syscall",
        _MOUNT_SETATTR,
        _AT_FDCWD,
        _path("."),
        0,
        ctypes.byref(_Attributes(_READ_ONLY)),
        ctypes.c_size_t(32),
    )
    _call("pivot_root", _path("."), _path("."))
    detach(".")
    os.chdir("/")


def loopback_up() -> None:
    """Let a new network's only interface work."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        wanted = struct.pack("16sH22x", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(sock, _SET_FLAGS_OF_INTERFACE, wanted)


def be_subreaper() -> None:
    """Become the parent of what dead descendants leave behind."""
    _prctl(_SUBREAPER, 1)


def set_dumpable(yes: bool) -> None:
    """Say whether processes of the same user may look into this one."""
    _prctl(_SET_DUMPABLE, int(yes))


def no_new_privileges() -> None:
    """Never get more rights, whatever program is started."""
    _prctl(_NO_NEW_PRIVILEGES, 1)


def drop_bounding() -> None:
    """Let no program that is started from here on have a capability."""
    for capability in range(64):
        try:
            _prctl(_DROP_BOUNDING, capability)
        except OSError:
            break  # there are no more


def drop_capabilities() -> None:
    """Have no capability any more."""
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    none = (ctypes.c_uint32 * 6)()
    _call("capset", ctypes.byref(head), ctypes.byref(none))


def _prctl(what, value):
    _call("prctl", what, *(ctypes.c_ulong(v) for v in (value, 0, 0, 0)))
