"""What holds for every test: it cannot hang for ever, and leaves nothing behind."""

import time

import cloudpickle
import pytest
from leaks import left_since, what_there_is

from distlab import cells

LIGHT = {"house", "unit"}  # folders whose tests start no process of ours


def pytest_collection_modifyitems(items):
    """Send the tests' functions to ranks by value: ranks cannot import test modules."""
    for module in {item.module for item in items if hasattr(item, "module")}:
        cloudpickle.register_pickle_by_value(module)


@pytest.fixture(autouse=True)
def no_cells_of_others(monkeypatch):
    """Forget the cells of a submission that a test graded in this process."""
    monkeypatch.setattr(cells, "_told", {})


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Fail a test that leaves a process, a folder or shared memory of ours behind.

    Tests of the folders in LIGHT do not pay for it.
    """
    if request.path.parent.name in LIGHT or "proofs" in request.fixturenames:
        yield
        return
    before = what_there_is()
    yield
    deadline = time.monotonic() + 3
    while (left := left_since(before)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"left behind: {left}"
