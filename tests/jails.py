"""Attacks that are played in a jail, and what came of them."""

import json
import os
import time
from pathlib import Path

import cloudpickle

from distlab.processes import Ended, Frame, Lines, Processes


def attacker(child):
    """Be a process of the jail: call the function that it is sent, tell what came."""
    function, args = cloudpickle.loads(child.receive())
    try:
        said = {"did": function(*args)}
    except BaseException as error:
        said = {"refused": f"{type(error).__name__}: {error}"}
    child.send(json.dumps(said, default=repr).encode())


def start(jail, function, *args, count=1, **how):
    """Start processes in the jail that call a function."""
    with jail.inhabit():
        processes = Processes(count, "jails:attacker", **how)
    for index in range(count):
        processes.send(index, cloudpickle.dumps((function, args)))
    return processes


def played(jail, function, *args, timeout_s=20, **how):
    """Return what each process that called a function told, by index."""
    processes, told = start(jail, function, *args, **how), {}
    deadline = time.monotonic() + timeout_s
    try:
        while processes.alive and time.monotonic() < deadline:
            for what in processes.poll(0.2):
                if isinstance(what, Frame):
                    told[what.index] = json.loads(what.payload)
                elif isinstance(what, Ended):
                    told.setdefault(what.index, {"ended": what.status})
                elif isinstance(what, Lines):
                    print(what.text[:2000], end="")
        return told
    finally:
        processes.stop()


def did(jail, function, *args, **how):
    """Return what the function returned in the jail; fail if it raised."""
    told = played(jail, function, *args, **how)[0]
    assert "did" in told, told
    return told["did"]


def refused(jail, function, *args, **how):
    """Return what the function raised in the jail; fail if it did not."""
    told = played(jail, function, *args, **how)[0]
    assert "refused" in told, told
    return told["refused"]


def until_ended(jail, function, *args, timeout_s=10.0, **how):
    """Have a function called that ends the jail; return why it ended, and seconds."""
    from distlab.errors import ProcessServerFailed

    began = time.monotonic()
    processes = start(jail, function, *args, **how)
    try:
        while time.monotonic() - began < timeout_s and processes.alive:
            processes.poll(0.1)
    except ProcessServerFailed:
        pass
    finally:
        processes.stop()
    return jail.exceeded(), time.monotonic() - began


def all_may_read_python():
    """Return whether another user could run this Python."""
    folders = Path(os.__file__).resolve().parents
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders)
