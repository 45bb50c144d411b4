"""The test run itself: what it takes in, and the second look that .ci/run gives."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
from pathlib import Path

def test_fails_once():
    been = Path("been")
    first = not been.exists()
    been.touch()
    assert not first, "the first time"

def test_fails():
    assert {always}

def test_passes():
    pass
"""


def test_every_folder_of_tests_is_in_the_run():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    listed = options["ini_options"]["testpaths"]
    assert sorted(listed) == sorted(str(each.relative_to(ROOT)) for each in folders)


@pytest.mark.parametrize("always", [True, False])
def test_a_failed_test_that_passes_alone_is_named_as_flaky(always, tmp_path):
    shutil.copy(ROOT / ".ci" / "again.py", tmp_path)
    for name in ("conftest.py", "leaks.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path)
    (tmp_path / "test_these.py").write_text(TESTS.format(always=always))
    options = '[tool.pytest.ini_options]\npythonpath = ["."]'
    (tmp_path / "pyproject.toml").write_text(options)

    def python(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    (tmp_path / "log").write_text(python("-m", "pytest").stdout)
    again = python("again.py", "log")
    _, flaky = again.stdout.split(" flaky ")
    assert "test_these.py::test_fails_once" in flaky and "the first time" in flaky
    assert "test_passes" not in again.stdout and again.returncode == (not always)
    assert "test_these.py::test_fails\n" not in flaky
    failed = "1 failed, 2 passed" if always else "2 failed, 1 passed"
    assert f"first run: {failed} in" in again.stdout
