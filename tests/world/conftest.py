"""Worlds that the tests of one process share."""

from contextlib import ExitStack

import pytest

from distlab import World


@pytest.fixture(scope="session")
def opened():
    """Return the worlds there are, by size, and what closes them."""
    with ExitStack() as stack:
        yield {}, stack


@pytest.fixture(scope="module")
def worlds(opened, request):
    """Return worlds, by size, among them those of a module's `SIZES`.

    All start before the first test does, which would else be the one that leaves them;
    again, if a test of another module has ended the process server.
    For calls that end well, and that change nothing in the modules of the ranks.
    """
    by_size, stack = opened
    for n in request.module.SIZES:
        if n not in by_size:
            by_size[n] = stack.enter_context(World(n))
        by_size[n].run(_start)
    return by_size


def _start(comm):
    """Have the ranks that a world without any starts for a call."""
