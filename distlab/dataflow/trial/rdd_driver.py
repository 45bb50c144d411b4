"""The Python in which a learner's driver code runs, beside the engine it is given.

    check ── task: functions, scene, cases ──▶ a new Python: Context ──▶ workers
          ◀── what was seen of each case ─────   learner's function, in a guard

A scene gives the learner's functions something to work on, runs what they made, and
tells what the engine counted. What is right is not known here.
"""

import _thread
import gc
import inspect
import os
import sys
import threading
from collections.abc import Callable

import cloudpickle

from distlab.calls.places import learners_frames, source_lines
from distlab.calls.raised import described
from distlab.calls.travel import unpack
from distlab.dataflow import RDD, Context
from distlab.dataflow.rdd.shared import Broadcast
from distlab.dataflow.trial import rdd_scenes
from distlab.dataflow.trial.engine_mark import engine_mark, names_of_ours
from distlab.errors import TaskFailed
from distlab.processes.guard import WRITES, SideEffect, forget, locks
from distlab.processes.server_handle import ServerHandle

__all__ = ["Stage", "Watched", "main"]

_LOOKING = "sys._getframe sys._current_frames sys.settrace sys.setprofile "
_LOOKING += "gc.get_objects gc.get_referrers gc.get_referents"
_STARTING = "subprocess.Popen os.fork os.forkpty os.posix_spawn os.system os.exec "
_STARTING += "os.kill os.killpg"
_LOCKED = ("distlab.grading",)
_SIGNALS = ServerHandle.signal.__code__


def main(task: dict) -> dict:
    """Play the scene of a task; return what was seen."""
    scene = getattr(rdd_scenes, task["scene"])
    seen, failed = None, None
    with Watched(workers=2) as context:
        stage = Stage(context)
        look, tampered = stage.look, stage.tampered  # while they are our own
        try:
            functions = stage.call(unpack, task["packed"])
            seen = scene(stage, functions, task["case"])
        except (Exception, SystemExit) as error:
            failed = _failure(error)
        # what ends is not to do anything any more: all of it stays
        _kept.extend((stage, dict(vars(context)), seen, failed, gc.disable()))
        tampered = look() or tampered()
    return {"seen": seen, "failed": failed, "tampered": look() or tampered}


def _failure(error):
    """Return how a scene ended, in words."""
    cause = error.cause if isinstance(error, TaskFailed) else error
    story = str(error)
    if not isinstance(error, TaskFailed):
        facts = described(error)
        said = f"{facts['type']}: {facts['message']}"
        lines = [said, "", *source_lines(facts["frames"])]
        story = "\n".join(lines).rstrip()
    kind = type(cause).__name__
    return {"story": story, "kind": kind, "said": str(cause)}


_ALREADY = frozenset(sys.modules)  # others may be imported meanwhile
_kept = []


class Watched(Context):
    """A Context that notes of every job what the driver got, and kills when told to.

    seen: (report, bytes of the results) of each job. broadcasts: how many were made.
    kill_after: the number of jobs after which a worker is killed. lost: the
    (RDD, partition) that it kept.
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
    """The context, and how the learner's functions are called beside it.

    From the moment that there is a stage, this process is guarded for good.
    """

    def __init__(self, context: Watched):
        self.context = context
        self._before = engine_mark()
        _guard(context.cluster.folder)
        self.look = _look_of(names_of_ours(_ALREADY))

    def call(self, function: Callable, *args) -> object:
        """Return what a learner's function returns, in a thread of its own.

        The frames below it are none of ours, so that it finds nothing in them.
        """
        came, threads, look = [], _thread._count(), self.look
        one = threading.Thread(target=_run, args=(came, function, args), daemon=True)
        one.start()
        one.join()
        if _thread._count() > threads:
            raise SideEffect(
                "it leaves a thread behind that still runs (a side effect)"
            )
        if look():
            raise SideEffect("it puts something in the place of the engine's (locked)")
        result, error = came
        if error is not None:
            raise error
        return result

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


def _look_of(names_now):
    """Return what tells whether a name of ours stands for something else by now."""
    before = names_now()
    return lambda: "in the driver" if names_now() != before else ""


def _marks(records):
    return [engine_mark()]


def _run(came, function, args):
    try:
        came[:] = function(*args), None
    except BaseException as error:
        came[:] = None, error


def _guard(folder):
    """Refuse to look at the check, and to do outside of the engine what it counts."""
    is_locked = locks(_LOCKED)
    looking, starting = set(_LOOKING.split()), set(_STARTING.split())
    inside = False

    def asked(event, args):
        nonlocal inside
        if inside:
            return
        if is_locked(event, args) or (event == "import" and _ours(args[0])):
            raise ImportError("this exercise asks for your own; the checks are locked")
        writes = event == "open" and args[2] & WRITES
        if writes and not str(args[0]).startswith(folder):
            raise SideEffect(f"it opens {args[0]!r} to write (a side effect)")
        if event in looking or event == "os.kill" or event.startswith("ctypes."):
            inside = True  # to look at frames is itself an event
            try:
                caller = sys._getframe(1)
                learners, ours = _by_learner(caller), caller.f_code is _SIGNALS
            finally:
                inside = False
            if event == "os.kill" and ours:  # the Context kills one of its workers
                return
            if learners and event not in starting:
                raise SideEffect(f"it uses {event}, to look behind the engine (locked)")
        if (event == "compile" and _pretends(args[1])) or event == "code.__new__":
            inside = True
            try:
                learners = _by_learner(sys._getframe(1))
            finally:
                inside = False
            if learners:
                raise SideEffect("it makes code that is another's by name (locked)")
        if event == "object.__setattr__" and _of_engine(*args):
            raise SideEffect(f"it changes {args[0]!r}, which is given (locked)")
        if event in starting:
            raise SideEffect(f"it uses {event} (a side effect)")

    sys.dont_write_bytecode = True
    forget(_LOCKED)
    sys.addaudithook(asked)


def _pretends(filename):
    """Whether code that is compiled says that it is from a file that is there."""
    return isinstance(filename, str) and os.path.exists(filename)


def _ours(name):
    return name.startswith("distlab.dataflow.trial")


def _by_learner(frame):
    """Whether code of the learner's asks, and not a library that it uses."""
    if frame.f_code.co_filename == inspect.__file__:
        frame = frame.f_back
    code = frame.f_code
    return bool(learners_frames([(code.co_filename, frame.f_lineno, code.co_name)]))


def _of_engine(thing, name, _):
    """Whether a function or an object of distlab is to become another one."""
    if name not in ("__code__", "__class__", "__defaults__", "__kwdefaults__"):
        return False
    return any(
        str(getattr(each, "__module__", "")).startswith("distlab")
        for each in (thing, type(thing))
    )
