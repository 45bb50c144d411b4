"""Start the workers' process server before the first test counts what is running."""

import pytest

from distlab.dataflow import MapReduce
from distlab.show import timeline


@pytest.fixture(scope="session", autouse=True)
def workers_server():
    """Run a job that does nothing, and draw it, which opens the fonts."""
    timeline(MapReduce(lambda line: [], lambda key, values: None).run([]))
