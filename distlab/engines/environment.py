"""Environment variables, changed for the duration of a block."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["environment"]


@contextmanager
def environment(names: Mapping[str, str]) -> Iterator[None]:
    """Add `names` to the environment for a block; restore all of it at the end."""
    before = dict(os.environ)
    os.environ.update(names)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
