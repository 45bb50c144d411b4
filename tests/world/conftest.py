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

    All start before the first test does, which would else be the one that leaves them.
    For calls that end well, and that change nothing in the modules of the ranks.
    """
    by_size, stack = opened
    for n in request.module.SIZES:
        if n not in by_size:
            by_size[n] = stack.enter_context(World(n))
    return by_size
