"""Temporary folders named after their process, so that orphaned ones can be removed.

distlab-4026531836-1234-567890-k2x9    pid namespace, pid, start time in clock ticks
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

__all__ = ["new_folder", "remove_orphaned"]

_MEMORY = "/dev/shm"
_NAME = re.compile(r"distlab-(\d+)-(\d+)-(\d+)-\w+")


def new_folder(*, in_memory: bool) -> str:
    """Make a folder owned by this process, in memory if the system has such folders."""
    memory = in_memory and os.access(_MEMORY, os.W_OK)
    whose = "-".join(map(str, _this_process()))
    return tempfile.mkdtemp(prefix=f"distlab-{whose}-", dir=_MEMORY if memory else None)


def remove_orphaned() -> None:
    """Remove the folders of processes that were killed before they could do so."""
    here = _this_process()
    if not here:
        return
    for place in {_MEMORY, tempfile.gettempdir()}:
        names = os.listdir(place) if os.path.isdir(place) else ()
        for name in names:
            if match := _NAME.fullmatch(name):
                system, pid, began = map(int, match.groups())
                if system == here[0] and _beginning(pid) != began:
                    shutil.rmtree(os.path.join(place, name), ignore_errors=True)


def _this_process():
    """Return (pid namespace, pid in it, start time), or () where there is no /proc."""
    try:
        system = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # no Linux
        return ()
    pid = int(os.readlink("/proc/self"))  # as /proc numbers it, also in a sandbox
    return system, pid, _beginning(pid)


def _beginning(pid):
    """Return a process's start time in clock ticks; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
