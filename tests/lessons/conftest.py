"""The tables that prove the checks are part of what a run of the tests prints."""

import pytest

TABLES = pytest.StashKey[list]()


@pytest.fixture(scope="session")
def tables(pytestconfig):
    """A list of texts that are printed after the last test, passed or not."""
    return pytestconfig.stash.setdefault(TABLES, [])


def pytest_terminal_summary(terminalreporter, config):
    """Print the tables; the output of a test that passes would not be seen."""
    if not (tables := config.stash.get(TABLES, [])):
        return
    terminalreporter.section("what proves the checks of the exercises")
    terminalreporter.write("\n".join(tables))
