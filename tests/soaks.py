"""Which cases run when: always, with `pytest -m nightly`, or with `pytest -m soak`."""

import pytest

__all__ = ["nightly", "repeats"]


def nightly(*values):
    """Return a case of a parametrized test that runs with the nightly ones."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def repeats(some: int, many: int):
    """Parametrize a test by `count`: how often it repeats what it does."""
    soak = pytest.param(many, marks=pytest.mark.soak)
    return pytest.mark.parametrize("count", [some, soak], ids=["some", "many"])
