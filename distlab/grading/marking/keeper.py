"""Keeps one submission's kernel: opens its jail, starts it there, tells how it goes.

nbgrader ── {"signal": 2}, {"end": true} ──▶ keeper ── fork ──▶ jail ── kernel
         ◀── {"isolation", "connection"}          ◀── sockets in the jail's folder
         ◀── {"ended": -9, "why": "..."}
"""

import json
import secrets
import select
import signal

from distlab.jail import Jail
from distlab.preloads import KERNEL
from distlab.processes import Child, Ended, Frame, Lines, Processes
from distlab.processes.child import on_its_own
from distlab.processes.memory import resident_bytes

__all__ = ["main"]

_CHANNELS = ("shell", "iopub", "stdin", "hb", "control")
_MOST_SAID = 2000
_LOOKS_S, _MOST_GROWTH_BYTES = 0.1, 2**30


def main(child: Child) -> None:
    """Keep a kernel until the owner has heard enough of it."""
    on_its_own()
    told = json.loads(child.receive())
    with Jail(isolation=told["isolation"], files=told["files"]) as desk:
        with desk.inhabit():
            kernel = Processes(1, "distlab.grading.marking.kernel:main", preload=KERNEL)
        try:
            connection = {f"{name}_port": n for n, name in enumerate(_CHANNELS, 1)}
            connection |= {"transport": "ipc", "ip": f"{desk.folder}/kernel"}
            told |= {"connection": connection, "key": secrets.token_hex()}
            kernel.send(0, json.dumps(told).encode())
            _keep(child, kernel, desk, told)
        finally:
            kernel.stop()
    child.send(b'{"gone": true}')


def _keep(child, kernel, desk, told):
    """Pass signals on, and tell when the kernel is ready, and when it has ended."""
    hello = {"isolation": desk.isolation, "connection": told["connection"]}
    hello |= {"key": told["key"]}
    said, most = "", resident_bytes(told["owner"]) + _MOST_GROWTH_BYTES
    while True:
        readable, _, _ = select.select([child, kernel], [], [], _LOOKS_S)
        if resident_bytes(told["owner"]) > most:  # by messages that have no end
            why = "It sent more than can be kept."
            child.send(json.dumps({"ended": -signal.SIGKILL, "why": why}).encode())
            return
        for event in kernel.poll(0):
            if isinstance(event, Frame) and hello:
                child.send(json.dumps(hello).encode())
                hello, said = None, ""  # what it says from now on is nobody's business
            elif isinstance(event, Lines) and hello:
                said = (said + event.text)[-_MOST_SAID:]
            elif isinstance(event, Ended):
                why = desk.exceeded() or said
                child.send(json.dumps({"ended": event.status, "why": why}).encode())
        if child in readable:
            for frame in child.received():
                request = json.loads(frame)
                if "end" in request:
                    return
                kernel.signal(0, request["signal"])
