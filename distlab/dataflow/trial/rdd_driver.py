"""The Python in which a learner's driver code runs, beside the engine it is given.

    check ── task: functions, scene, cases ──▶ a new Python: Context ──▶ workers
          ◀── what was seen of each case ─────   learner's function, in a guard

A scene gives the learner's functions something to work on, runs what they made, and
tells what the engine counted. What is right is not known here.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType

import cloudpickle

from distlab.calls.places import learners_frames, source_lines
from distlab.calls.raised import described
from distlab.calls.travel import unpack
from distlab.dataflow import RDD, Context
from distlab.dataflow.rdd.shared import Broadcast
from distlab.errors import TaskFailed
from distlab.processes.apart import answer, task_in
from distlab.processes.guard import WRITES, Guard, SideEffect

__all__ = ["Stage", "Watched", "main"]

_LOOKING = "sys._getframe gc.get_objects gc.get_referrers gc.get_referents sys.settrace"
_LOOKING += " sys.setprofile ctypes.dlopen ctypes.addressof"
_STARTING = "subprocess.Popen os.fork os.posix_spawn os.system os.exec"
_LOCKED = ("distlab.grading", "distlab.dataflow.trial")
_ENGINE = ("distlab.dataflow.rdd", "distlab.dataflow.worker", "distlab.trace.lineage")


def main(folder: str) -> None:
    """Play the scene of the task in a folder, case by case; write what was seen."""
    from distlab.dataflow.trial import rdd_scenes

    task = task_in(folder)
    scene = getattr(rdd_scenes, task["scene"])
    seen, failed = [], None
    with Watched(workers=2) as context:
        stage = Stage(context)
        try:
            with stage.guard.around():
                functions = unpack(task["packed"])
            for case in task["cases"]:
                seen.append(scene(stage, functions, case))
        except Exception as error:
            failed = _failure(error)
        tampered = stage.tampered()
    answer(folder, {"seen": seen, "failed": failed, "tampered": tampered})


def _failure(error):
    """Return how a scene ended, in words."""
    cause = error.cause if isinstance(error, TaskFailed) else error
    story = str(error)
    if not isinstance(error, TaskFailed):
        facts = described(error)
        lines = [
            f"{facts['type']}: {facts['message']}",
            "",
            *source_lines(facts["frames"]),
        ]
        story = "\n".join(lines).rstrip()
    kind = type(cause).__name__
    return {"story": story, "kind": kind, "said": str(cause)}


class Watched(Context):
    """A Context that notes of every job what the driver got, and kills when told to.

    seen: (report, bytes of the results) of each job. broadcasts: how many were made.
    kill_after: the number of jobs
    after which a worker is killed. lost: the (RDD, partition) that it kept.
    """

    def __init__(self, workers: int):
        super().__init__(workers)
        self.seen = []
        self.broadcasts = 0
        self.kill_after, self.lost = None, None

    def run(
        self,
        node: RDD,
        operation: str,
        fn: Callable,
        partitions: object = None,
        *,
        fresh: bool = True,
    ) -> list:
        """Run a job, and note it."""
        before, results = len(self.jobs), None
        try:
            results = super().run(node, operation, fn, partitions, fresh=fresh)
        finally:
            self.seen += [(job, _size_bytes(results)) for job in self.jobs[before:]]
        if len(self.seen) == self.kill_after:
            self._kill_one()
        return results

    def broadcast(self, value: object) -> Broadcast:
        """Broadcast a value, and note it."""
        self.broadcasts += 1
        return super().broadcast(value)

    def _kill_one(self):
        """Kill the worker that keeps the least, of those that keep something."""
        kept = {}
        for key, workers in self.cluster.have.kept.items():
            for worker in workers:
                kept.setdefault(worker, []).append(key)
        victim = min(kept, key=lambda worker: (len(kept[worker]), worker), default=1)
        self.kill(victim)
        self.lost = kept.get(victim, [])

    def kills(self) -> int:
        """Return how many deaths the pool has noted."""
        events = self.cluster.pool.trace().events
        return sum(e.kind == "fault" and e.label == "kill" for e in events)


def _size_bytes(results):
    return len(cloudpickle.dumps(results))


class Stage:
    """The context, and the guard in which the learner's functions are called."""

    def __init__(self, context: Watched):
        self.context = context
        self.guard = _DriverGuard(context.cluster.folder)
        self._before = engine_mark()

    def call(self, function: Callable, *args) -> object:
        """Return what a learner's function returns; the guard is up meanwhile."""
        with self.guard.around():
            return function(*args)

    def tampered(self) -> str:
        """Return where the engine is not what it was, in words, or nothing."""
        if engine_mark() != self._before:
            return "in the driver"
        if repr(self.context) == "<Context, stopped>":
            return "the Context has been stopped"
        known = [each.id for job, _ in self.context.seen for each in job.stages]
        if known != list(range(self.context.numbers.stage())):
            return "jobs are missing from its list"
        own = set(vars(self.context)) - {"_checkpoints"}
        if any(
            name in vars(type(self.context)) or name in vars(Context) for name in own
        ):
            return "in the Context"
        count = 2 * self.context.defaultParallelism
        marks = self.context.parallelize(range(count), count).mapPartitions(_marks)
        if set(RDD.collect(marks)) != {self._before}:
            return "on a worker"
        return ""


def _marks(records):
    return [engine_mark()]


class _DriverGuard(Guard):
    """Refuses to look at the check, and to do outside of the engine what it counts."""

    def __init__(self, folder: str):
        self.folder = folder
        super().__init__()

    def _asked(self, event, args):
        if not self.up:
            return
        writes = event == "open" and args[2] & WRITES
        if writes and not str(args[0]).startswith(self.folder):
            raise SideEffect(f"it opens {args[0]!r} to write (a side effect)")
        if event == "import" and args[0].startswith(_LOCKED):
            raise ImportError("this exercise asks for your own; the checks are locked")
        if event in _LOOKING.split() and self._by_learner():
            raise SideEffect(f"it uses {event}, to look behind the engine (locked)")
        if event == "object.__setattr__" and _of_engine(*args):
            raise SideEffect(f"it changes {args[0]!r}, which is given (locked)")
        if event in _STARTING.split():
            raise SideEffect(f"it uses {event} (a side effect)")

    def _by_learner(self):
        """Whether code of the learner's asks, and not a library that it uses."""
        self.up = False  # to look at frames is itself an event
        frame = sys._getframe(2)
        self.up = True
        if frame.f_code.co_filename == inspect.__file__:
            frame = frame.f_back
        code = frame.f_code
        return bool(learners_frames([(code.co_filename, frame.f_lineno, code.co_name)]))


def _of_engine(thing, name, _):
    """Whether a function or an object of distlab is to become another one."""
    if name not in ("__code__", "__class__"):
        return False
    return any(
        str(getattr(each, "__module__", "")).startswith("distlab")
        for each in (thing, type(thing))
    )


def engine_mark() -> str:
    """Return a digest of the engine's functions, to see whether they are still its own.

    Workers and driver have the same, as long as nobody puts something in their place.
    """
    digest = hashlib.sha256()
    for name in sorted(sys.modules):
        if name.startswith(_ENGINE):
            for where, function in _functions(sys.modules[name]):
                code = function.__code__
                digest.update(f"{name} {where} {code.co_filename}".encode())
                digest.update(f"{code.co_firstlineno} {code.co_names}".encode())
                digest.update(code.co_code)
    return digest.hexdigest()


def _functions(module) -> Iterator[tuple[str, FunctionType]]:
    """Yield (name, function) of all functions and methods that a module has."""
    for name, thing in sorted(vars(module).items()):
        if isinstance(thing, FunctionType):
            yield name, thing
        elif isinstance(thing, type) and thing.__module__ == module.__name__:
            for own, member in sorted(vars(thing).items()):
                member = getattr(member, "fget", None) or getattr(
                    member, "__func__", member
                )
                if isinstance(member, FunctionType):
                    yield f"{name}.{own}", member
