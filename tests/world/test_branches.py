"""Servers that begin as a fork of another one, and servers that are lent."""

import json
import os
import signal

import psutil
import pytest
from stores import is_gone, wait_until

from distlab.processes import Processes, borrow, branch, lend, warm_up
from distlab.processes.child import on_its_own
from distlab.processes.server_handle import ServerHandle

TRUNK, BRANCH = ("wave",), ("wave", "colorsys")


def tells(child):
    """Tell which modules are there, and who the parents are."""
    import sys

    there = [name for name in ("wave", "colorsys") if name in sys.modules]
    child.send(json.dumps([there, os.getppid()]).encode())


def told_by(preload, entry=f"{__name__}:tells", **how):
    processes = Processes(1, entry, preload=preload, **how)
    try:
        while True:
            for what in processes.poll(1):
                if hasattr(what, "payload"):
                    return json.loads(what.payload)
    finally:
        processes.stop()


@pytest.fixture
def servers():
    """Have the servers of this module end with each test, a branch before its trunk."""
    before = dict(ServerHandle._running)
    warm_up(TRUNK)
    branch(BRANCH, TRUNK)
    yield
    for key in reversed([key for key in ServerHandle._running if key not in before]):
        ServerHandle._running.pop(key).close()


def test_a_branch_has_what_its_trunk_has_and_is_its_fork(servers):
    (there, trunk), (more, pid) = told_by(TRUNK), told_by(BRANCH)
    assert there == ["wave"] and more == ["wave", "colorsys"]
    assert psutil.Process(pid).ppid() == trunk


def test_it_is_started_once(servers):
    _, first = told_by(BRANCH)
    branch(BRANCH, TRUNK)
    assert told_by(BRANCH)[1] == first


def test_one_that_was_killed_is_replaced(servers):
    _, first = told_by(BRANCH)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not ServerHandle._running[BRANCH, "fork"].usable())
    there, second = told_by(BRANCH)
    assert second != first and there == ["wave", "colorsys"]


def test_who_borrows_a_server_has_processes_of_it_and_then_of_its_own(servers):
    _, lent = told_by(BRANCH)
    borrowed, own = told_by((), f"{__name__}:borrows", shared=[lend(BRANCH)])
    assert borrowed == [["wave", "colorsys"], lent]
    assert own[0] == ["wave", "colorsys"] and own[1] != lent


def borrows(child):
    """Borrow a server, and tell what its processes tell, before and after its end."""
    on_its_own()
    borrow(BRANCH, child.shared[0])
    before = told_by(BRANCH)
    os.kill(before[1], signal.SIGKILL)
    wait_until(lambda: is_gone(psutil.Process(before[1])))
    child.send(json.dumps([before, told_by(BRANCH)]).encode())
    ServerHandle.close_all()
