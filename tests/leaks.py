"""What distlab may leave behind: processes of this one, and folders with its name.

A folder's name says which process made it (`distlab.processes.folders`), so that what
runs beside the tests is not taken for theirs.
"""

import os
import re
import tempfile
from pathlib import Path

import psutil

from distlab.processes.server_handle import ServerHandle

__all__ = ["left_since", "what_there_is"]

OWNED = re.compile(r"distlab-\d+-(\d+)-\d+-\w+")


def what_there_is() -> set[str]:
    """Return our processes, and our folders in memory and among temporary files."""
    me = psutil.Process()
    children = me.children(recursive=True)
    tree = {me.pid} | {child.pid for child in children}
    servers = {server.process.pid for server in ServerHandle._running.values()}
    stays = {me.pid} | servers  # a server is there for the next test, too
    there = {f"process {pid}" for pid in tree - stays}
    for folder in {"/dev/shm", tempfile.gettempdir()}:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if (owner := OWNED.fullmatch(name)) and _is_ours(int(owner[1]), tree):
                there.add(str(Path(folder, name)))
    return there


def left_since(before: set[str]) -> dict[str, str]:
    """Return what is there that was not, with the command line of each process."""
    return {what: _described(what) for what in sorted(what_there_is() - before)}


def _is_ours(owner, tree):
    """Return whether this is one of our processes, or is gone."""
    return owner in tree or not psutil.pid_exists(owner)


def _described(what):
    if not what.startswith("process "):
        return ""
    try:
        return " ".join(psutil.Process(int(what.split()[1])).cmdline())
    except psutil.Error:
        return "gone by now"
