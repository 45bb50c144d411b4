"""Courses that are graded once for many tests."""

import pytest
from courses import SmallCourse, commands


@pytest.fixture(scope="session", autouse=True)
def forks():
    """Start it before any test, which would else be the one that leaves it."""
    commands()


@pytest.fixture
def course(tmp_path):
    """A course without submissions."""
    return SmallCourse(tmp_path)


@pytest.fixture(scope="module")
def module_course(tmp_path_factory):
    """A course that the tests of a module share."""
    return SmallCourse(tmp_path_factory.mktemp("course"))
