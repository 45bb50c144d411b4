"""distlab: learn distributed systems by running them.

    from distlab import run

    def hello(comm):
        return comm.rank

    run(hello, world_size=4)

Importing distlab is light; torch loads in the ranks, and here only when needed.
"""

import sys
import warnings
from importlib import import_module

# torch says so in every process of a small install, which needs no numpy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

_HOME = {
    "distlab.errors": (
        "NotSerializable",
        "CheckpointError",
        "ClusterClosed",
        "CollectiveMismatch",
        "ContextStopped",
        "Deadlock",
        "DistlabError",
        "EngineFailed",
        "EngineMissing",
        "ExtraMissing",
        "HistoryError",
        "InvalidArgument",
        "InvalidSchedule",
        "MessageMismatch",
        "NestedRDD",
        "NestedWorld",
        "NodeFailed",
        "NotDeterministic",
        "ProcessServerFailed",
        "RankDied",
        "RankRaised",
        "SandboxFailed",
        "SwitchFailed",
        "TaskFailed",
        "WorkdirError",
        "WorldChanged",
        "WorldClosed",
        "WorldFailed",
        "WorldTimeout",
    ),
    "distlab.faults": (
        "ClockDrift",
        "ClockJump",
        "Corrupt",
        "Crash",
        "Cut",
        "Hang",
        "Kill",
        "KillWorker",
        "Pause",
        "Slow",
        "SlowWorker",
        "Split",
        "Storm",
    ),
    "distlab.trace": ("Call", "Event", "Operation", "Trace"),
    "distlab.history": ("History",),
    "distlab.launch": ("Report", "World", "follow", "run", "run_elastic"),
    "distlab.comm": ("Comm",),
    "distlab.mesh": ("Mesh",),
    "distlab.dataflow": ("Context", "MapReduce"),
    "distlab.learner.predictions": ("predict", "stub"),
    "distlab.learner.progress": ("progress",),
    "distlab.learner.interview": ("interview",),
    "distlab.learner.quiz": ("ask", "review"),
    "distlab.links": ("LINKS", "Link"),
    "distlab.simulated": (
        "Computing",
        "Nodes",
        "Overlapped",
        "Payload",
        "Slowed",
        "Uniform",
    ),
    "distlab.units": ("GB", "KB", "MB", "MiB", "readable_bytes", "readable_seconds"),
    "distlab.launch.machine": ("usable_cores",),
    "distlab.commands.doctor": ("doctor",),
}
WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(WHERE)
__version__ = "0.1.0"


def __getattr__(name):
    if name not in WHERE:
        raise AttributeError(f"module 'distlab' has no attribute {name!r}")
    value = getattr(import_module(WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return [*globals(), *__all__]


if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
    # It records the learner's progress; see distlab.learner.progress.
    import_module("distlab.learner.progress.notebook_recording").begin()
