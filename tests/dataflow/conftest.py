"""The Context that tests of one module share."""

import pytest

from distlab.dataflow import Context


@pytest.fixture(scope="module")
def sc():
    """A Context that no test of the module breaks, with both its workers at work."""
    with Context(2) as context:
        context.parallelize(range(2), 2).foreach(str)
        yield context
