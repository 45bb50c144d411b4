"""Start the workers' process server before the first test counts what is running."""

import time

import pytest

from distlab.dataflow import Context, MapReduce
from distlab.show import timeline


@pytest.fixture(scope="session", autouse=True)
def workers_server():
    """Run a job that does nothing, and draw it, which opens the fonts."""
    timeline(MapReduce(lambda line: [], lambda key, values: None).run([]))


@pytest.fixture(scope="module")
def sc():
    """A Context that no test of the module breaks, with both its workers at work."""
    with Context(2) as context:
        context.parallelize(range(2), 2).foreach(lambda _: time.sleep(0.1))
        yield context
