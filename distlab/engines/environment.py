"""Environment variables for the time of a start, and as they were afterwards."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["environment"]


@contextmanager
def environment(names: Mapping[str, str]) -> Iterator[None]:
    """Add `names` to the environment; in the end all of it is what it was."""
    before = dict(os.environ)
    os.environ.update(names)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
