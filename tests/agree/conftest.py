"""What tests of real stores start from."""

import os
import tempfile

import pytest

from distlab.processes import warm_up


@pytest.fixture(scope="session", autouse=True)
def stores_server(process_server):
    """Start the stores' process server before the first test counts what is running."""
    warm_up(())


@pytest.fixture
def folder():
    """Return a folder with a short path that every user can come to."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="stores-") as folder:
        os.chmod(folder, 0o711)
        yield folder
