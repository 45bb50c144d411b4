"""What tests of real stores start from."""

import os
import tempfile

import pytest


@pytest.fixture
def folder():
    """Return a folder with a short path that every user can come to."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="stores-") as folder:
        os.chmod(folder, 0o711)
        yield folder
