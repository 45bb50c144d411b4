"""What holds for every test: it cannot hang for ever, and leaves nothing behind."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import cloudpickle
import pytest
import setuptools  # noqa: F401 - for nbgrader: it fails once something has sought pip
from leaks import left_since, what_there_is

from distlab import cell_sources
from distlab.optional_imports import leave_out_grammars

leave_out_grammars()
# Beside other tests, and on a machine that does something else, all takes longer.
os.environ.setdefault("DISTLAB_PATIENCE", "3")
# What a shell starts in the background may ignore Ctrl-C, and so would what it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

KEEP = {"proofs", "ray_nodes"}  # fixtures whose processes outlive a test
LIGHT = {"house", "unit"}  # folders whose tests start no process of ours


def pytest_collection_modifyitems(items):
    """Send the tests' functions to ranks by value: ranks cannot import test modules."""
    for module in {item.module for item in items if hasattr(item, "module")}:
        cloudpickle.register_pickle_by_value(module)


@pytest.fixture(autouse=True)
def no_cells_of_others(monkeypatch):
    """Forget the cells of a submission that a test graded in this process."""
    monkeypatch.setattr(cell_sources, "_described", {})


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Fail a test that leaves a process, a folder or shared memory of ours behind.

    Tests of the folders in LIGHT do not pay for it.
    """
    if request.path.parent.name in LIGHT or KEEP & set(request.fixturenames):
        yield
        return
    before = what_there_is()
    yield
    deadline = time.monotonic() + 3
    while (left := left_since(before)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"left behind: {left}"


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    """Keep what failed, and how: `.ci/again.py` runs it once more."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    cache = getattr(session.config, "cache", None)  # none with -p no:cacheprovider
    if reporter and cache and not hasattr(session.config, "workerinput"):
        bad = reporter.stats.get("failed", []) + reporter.stats.get("error", [])
        first = {each.nodeid: each.longreprtext for each in reversed(bad)}
        cache.set("distlab/failed", first)
    return (yield)


def pytest_terminal_summary(terminalreporter):
    """Print the seconds of each folder, so that a rise is seen when it comes."""
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for each in reports:
            if isinstance(each, pytest.TestReport):
                folder = Path(each.nodeid.partition("::")[0]).parent
                seconds[str(folder)] += each.duration
    terminalreporter.section("seconds of each folder")
    for folder, took in seconds.most_common():
        terminalreporter.line(f"{took:7.0f} {folder}")
