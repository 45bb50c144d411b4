"""Calls of the system that nobody in a jail may make, or who is only to compute.

They are those by which a process looks into another, makes namespaces in which it
would be root, or reaches parts of the kernel that no lesson needs.
"""

import ctypes
import os
import platform
import struct
import sys

__all__ = ["compute_only", "forbid"]

# number of each call on x86_64 and on aarch64
_FORBIDDEN = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "memfd_secret": (447, 447),
}
# What those can do who share no files, and yet see the same ones of the system: they
# could tell each other anything by a lock, a watch, or the room left on the disk. And
# memory that stays while nobody has it mapped.
_ALONE = {
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "inotify_init": (253, 26),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "preadv2": (327, 286),
    "cachestat": (451, 451),
    "io_setup": (206, 0),
    "sysinfo": (99, 179),
    "shmget": (29, 194),
}
# What those can do to others who are only to compute: start something, write, signal.
_EFFECTS = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "creat": (85, None),
    "openat2": (437, 437),
    "open_by_handle_at": (304, 265),
    "truncate": (76, 45),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "socket": (41, 198),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
}
_OPEN, _OPENAT, _TGKILL, _PRLIMIT = (2, None), (257, 56), (234, 131), (302, 261)
_DEADLY = (6, 9, 15)  # SIGABRT, SIGKILL, SIGTERM
_WRITES = 0x643  # to write, create, truncate or append
_THREAD = 0x10000  # what is cloned is a thread
_FLOCK, _FCNTL = (73, 32), (72, 25)
_LOCKS = (5, 6, 7, 36, 37, 38)  # to get or set one, of whichever kind
_LEASES = (1024, 1025, 1026)  # to set or get one, or to be told of changes
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_MACHINE = _MACHINES.get(platform.machine())
_CLONE, _CLONE3 = (56, 220), 435
_NAMESPACES = 0x7E020000  # all CLONE_NEW... flags
_X32 = 0x40000000
_EPERM, _ENOSYS = 1, 38

_LOAD, _EQUAL, _NOT_BELOW, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_THIRD_ARGUMENT = 32
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_SECCOMP, _FILTER, _ALL_THREADS = (317, 277), 1, 1
_NO_NEW_PRIVILEGES = 38


def forbid(*, alone: bool = False) -> bool:
    """Forbid them to this process and all it starts; return whether that is known here.

    alone: whether they may tell others in the jail nothing, either. A lock that they
    ask for is theirs at once, then, since nobody else has one. Whoever is alone is the
    first of its processes, which the system would spare its own signals: it is ended by
    SIGSYS where it kills itself.
    Needs `no_new_privileges`.
    """
    return _install(_IN_JAILS.get(alone))


def compute_only() -> bool:
    """Forbid all threads of this process whatever others could see of it.

    What it has open it can still read and write. Returns whether that is known here.

    Raises: OSError if the system does not have it.
    """
    if sys.platform != "linux":
        return False
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    return _install(_program(lambda n: [*_alone(n), *_effects(n, os.getpid())]))


def _install(code):
    if code is None:
        return False
    steps = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(steps))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SECCOMP[_MACHINE[0]], _FILTER, _ALL_THREADS, program):
        raise OSError(ctypes.get_errno(), "seccomp")
    return True


def _program(more=lambda column: []):
    """Return the filter, a program of four fields a step: what, then, else, with.

    more: column of the tables above -> steps. Returns None for an unknown machine.
    """
    if _MACHINE is None:
        return None
    column, architecture = _MACHINE
    end = [(_RETURN, 0, 0, _ALLOW)]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_NOT_BELOW, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3),  # its flags are not to be seen; C libraries do without
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
    ]
    steps += more(column)
    steps += _refused(_FORBIDDEN, column, _EPERM)
    steps += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NAMESPACES),
        (_RETURN, 0, 0, _ERROR | _EPERM),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps + end)


def _refused(calls, column, error):
    """Return the steps that answer every call of a table by an error."""
    steps = []
    for numbers in calls.values():
        if numbers[column] is not None:
            steps += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERROR | error)]
    return steps


def _alone(column):
    """Return the steps that refuse what tells others something."""
    steps = [*_refused(_ALONE, column, _ENOSYS), *_suicide(column)]
    steps += [(_EQUAL, 0, 1, _FLOCK[column]), (_RETURN, 0, 0, _ERROR)]
    asked = []
    for command in _LOCKS:
        asked += [(_EQUAL, 0, 1, command), (_RETURN, 0, 0, _ERROR)]
    for command in _LEASES:
        asked += [(_EQUAL, 0, 1, command), (_RETURN, 0, 0, _ERROR | _EPERM)]
    asked = [(_LOAD, 0, 0, _SECOND_ARGUMENT), *asked, (_LOAD, 0, 0, _NUMBER)]
    return [*steps, (_EQUAL, 0, len(asked), _FCNTL[column]), *asked]


def _suicide(column):
    """Return the steps that end the first of all processes if it kills itself."""
    steps = []
    for call, place in (
        (_EFFECTS["kill"], _SECOND_ARGUMENT),
        (_EFFECTS["tkill"], _SECOND_ARGUMENT),
        (_TGKILL, _THIRD_ARGUMENT),
    ):
        asked = [(_LOAD, 0, 0, place)]
        for number in _DEADLY:
            asked += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _KILL)]
        asked = [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_EQUAL, 0, len(asked), 1), *asked]
        asked += [(_LOAD, 0, 0, _NUMBER)]
        steps += [(_EQUAL, 0, len(asked), call[column]), *asked]
    return steps


def _effects(column, pid):
    """Return the steps that refuse what changes something outside of a process."""
    steps, refuse = _refused(_EFFECTS, column, _EPERM), (_RETURN, 0, 0, _ERROR | _EPERM)
    for numbers, argument, allowed in (
        (_OPEN, _SECOND_ARGUMENT, [(_ANY_BIT, 0, 1, _WRITES)]),
        (_OPENAT, _THIRD_ARGUMENT, [(_ANY_BIT, 0, 1, _WRITES)]),
        (_CLONE, _FIRST_ARGUMENT, [(_ANY_BIT, 1, 0, _THREAD)]),
        (_TGKILL, _FIRST_ARGUMENT, [(_EQUAL, 1, 0, pid)]),
        (_PRLIMIT, _FIRST_ARGUMENT, [(_EQUAL, 1, 0, 0)]),
    ):
        if numbers[column] is not None:
            asked = [(_LOAD, 0, 0, argument), *allowed, refuse, (_LOAD, 0, 0, _NUMBER)]
            steps += [(_EQUAL, 0, len(asked), numbers[column]), *asked]
    return steps


# Made here, once, and not in each of the forks that need it.
_IN_JAILS = {False: _program(), True: _program(_alone)}
