"""What distlab may leave behind: processes of this one, and what bears its name."""

import os
import re
import tempfile
from pathlib import Path

import psutil

from distlab.processes.server_handle import ServerHandle

__all__ = ["left_since", "what_there_is"]

OWNED = re.compile(r"distlab-\d+-(\d+)-\d+-\w+")  # processes.folders writes whose it is


def what_there_is() -> set[str]:
    """Return our processes, and the files in memory and temporary folders of ours."""
    me = psutil.Process()
    children = me.children(recursive=True)
    tree = {me.pid} | {child.pid for child in children}
    servers = {server.process.pid for server in ServerHandle._running.values()}
    stays = {me.pid} | servers  # a server is there for the next test, too
    there = {f"process {pid}" for pid in tree - stays}
    for folder in {"/dev/shm", tempfile.gettempdir()}:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith("distlab") and _is_ours(name, tree):
                there.add(str(Path(folder, name)))
    return there


def left_since(before: set[str]) -> dict[str, str]:
    """Return what is there that was not, with the command line of each process."""
    return {what: _told(what) for what in sorted(what_there_is() - before)}


def _is_ours(name, tree):
    """Return whether no living process outside this tree owns what has this name."""
    owner = OWNED.fullmatch(name)
    if not owner:
        return True
    return int(owner[1]) in tree or not psutil.pid_exists(int(owner[1]))


def _told(what):
    if not what.startswith("process "):
        return ""
    try:
        return " ".join(psutil.Process(int(what.split()[1])).cmdline())
    except psutil.Error:
        return "gone by now"
