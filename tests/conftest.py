"""What holds for every test: it leaves nothing behind, and it cannot hang for ever."""

import os
import pickle
import threading
import time

import cloudpickle
import psutil
import pytest

from distlab import run
from distlab.processes.values import plain_data
from distlab.show.lettering import width_of


def pytest_collection_modifyitems(items):
    """Send the tests' functions to ranks by value: ranks cannot import test modules."""
    for module in {item.module for item in items if hasattr(item, "module")}:
        cloudpickle.register_pickle_by_value(module)


@pytest.fixture(scope="session", autouse=True)
def process_server():
    """Start the process servers before the first test counts what is running.

    And have matplotlib open its fonts, which stay open.
    """
    run(lambda comm: None, 1)
    width_of("words", 10)
    plain_data(pickle.dumps((None,)))


@pytest.fixture(autouse=True)
def nothing_left(process_server):
    """Fail a test that leaves a process, descriptor, thread or shared memory behind."""
    before = _what_there_is()
    yield
    deadline = time.monotonic() + 3
    while (left := _more_than(before)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"left behind: {left}"


def _what_there_is():
    me = psutil.Process()
    return {
        "processes": {p.pid for p in me.children(recursive=True)},
        "descriptors": {
            (number, os.readlink(f"/proc/self/fd/{number}"))
            for number in os.listdir("/proc/self/fd")
            if int(number) > 2 and os.path.lexists(f"/proc/self/fd/{number}")
        },
        "threads": {thread.ident for thread in threading.enumerate()},
        "shared memory": set(os.listdir("/dev/shm")),
    }


def _more_than(before):
    now = _what_there_is()
    return {what: now[what] - before[what] for what in now if now[what] - before[what]}
