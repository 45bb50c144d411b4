"""How often a test repeats what it does: some times, or many with `pytest -m soak`."""

import pytest

__all__ = ["repeats"]


def repeats(some: int, many: int):
    """Parametrize a test by `count`."""
    soak = pytest.param(many, marks=pytest.mark.soak)
    return pytest.mark.parametrize("count", [some, soak], ids=["some", "many"])
