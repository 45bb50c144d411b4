"""Worlds that the tests of one module share."""

from contextlib import ExitStack

import pytest

from distlab import World


@pytest.fixture(scope="module")
def worlds(request):
    """Return the worlds of a module's `SIZES`, by size.

    All start before the first test does, which would else be the one that leaves them.
    """
    with ExitStack() as stack:
        yield {n: stack.enter_context(World(n)) for n in request.module.SIZES}
