"""The engine on which a learner's driver program is tried, out of the program's reach.

    check ── task: functions, scene, case ──▶ this process: Context ──▶ workers, twins
          ◀── what was seen ─────────────────        ▲
                                                     ▼ methods of RDDs, functions
                                              the learner's program, in a guard

A scene gives the learner's functions something to work on, runs what they made, and
tells what the engine counted. What is right is not known here.
"""

import os
import signal
from collections.abc import Callable

from distlab.calls.places import source_lines
from distlab.calls.raised import Told, described
from distlab.dataflow import RDD, Context
from distlab.dataflow.rdd.levels import StorageLevel
from distlab.dataflow.rdd.shared import Accumulator, Broadcast
from distlab.dataflow.trial import rdd_program, rdd_scenes
from distlab.dataflow.trial.beside import FRAME_BYTES, Ended, beside
from distlab.dataflow.trial.rdd_twin import Theirs
from distlab.dataflow.trial.sealed import Reader, opening, resolved
from distlab.dataflow.trial.watched import Watched
from distlab.errors import (
    CannotTravel,
    InvalidArgument,
    NestedRDD,
    TaskFailed,
    WorkdirError,
)
from distlab.processes.guard import SideEffect
from distlab.processes.wire import Disconnected, receive_frame, send_frame

__all__ = ["Program", "main"]

_OF_CONTEXT = "parallelize range emptyRDD union runJob setCheckpointDir"
_OF_CONTEXT += " broadcast accumulator"
_OFFERED = {Context: set(_OF_CONTEXT.split()), RDD: set(dir(RDD))}
_OFFERED[RDD] -= {name for name in _OFFERED[RDD] if name.startswith(("_", "saveAs"))}
_OFFERED[RDD] -= {"pipe", "pack", "program", "seal", "step"}
_ATTRIBUTES = {
    Context: {"defaultParallelism", "defaultMinPartitions", "jobs", "lastJob"},
    RDD: {"partitioner", "is_cached", "number", "operation", "context", "ctx"},
}
_OF_PACKING = (CannotTravel, InvalidArgument, NestedRDD)  # the program may raise them
_OF_SHARED = {Broadcast: {"unpersist", "destroy"}, Accumulator: {"value", "add"}}


def main(task: dict) -> dict:
    """Play the scene of a task; return what was seen."""
    scene = getattr(rdd_scenes, task["scene"])
    seen, failed = None, None
    with Watched(workers=2) as context:
        try:
            seen = scene(Program(context, task["packed"]), task["case"])
        except Exception as error:
            failed = _failure(error)
    return {"seen": seen, "failed": failed}


def _failure(error):
    """Return how a scene ended, in words."""
    cause = error.cause if isinstance(error, TaskFailed) else error
    facts = described(cause) if isinstance(cause, BaseException) else {}
    story = str(error)
    if not isinstance(error, TaskFailed):
        said = f"{facts['type']}: {facts['message']}"
        story = "\n".join([said, "", *source_lines(facts["frames"])]).rstrip()
    kind, said = facts.get("type", ""), facts.get("message", str(cause))
    disk = isinstance(error, WorkdirError)
    return {"story": story, "kind": kind, "said": said, "disk": disk}


class StandIn:
    """Stands for a function of the program's: there it is called by the driver.

    To workers it travels as the bytes that the program makes of it at that time.
    """

    def __init__(self, program: "Program", number: int):
        self._program, self.number = program, number

    def __call__(self, *args):
        return self._program.call(self, *args)

    def __eq__(self, other):
        return type(other) is StandIn and other.number == self.number

    __hash__ = None

    def __reduce__(self):
        data, used = self._program.say("pack", (self.number,))
        shared = {key: self._program.context.shared(*key) for key in used}
        return Theirs, (bytes(data), shared)


class Program:
    """The learner's driver program, in a process of its own, and what it asks for.

    function: the first of those that were packed.
    """

    def __init__(self, context: Watched, packed: bytes):
        self.context = context
        self.function = StandIn(self, 0)
        self._rdds = {}
        self._failed = self._lost = None  # the latest of all failures; of the tasks'
        hidden = os.path.dirname(context.cluster.folder), "/proc"
        self._socket, self._pid = beside(rdd_program.live, hidden)
        self._names = {
            "rdd": self._rdds.__getitem__,
            "context": lambda: context,
            "level": lambda *places: StorageLevel(*places),
            "function": lambda number: StandIn(self, int(number)),
        }
        self.say("unpack", (packed,))

    def call(self, function: Callable, *args) -> object:
        """Return what a function of the program's, or one for it, returns there.

        Raises: Told, or what the engine raised meanwhile; Ended.
        """
        return self.say("call", (function, args))

    def say(self, kind: str, said: tuple) -> object:
        """Return what the program answers; do what it asks for in the meantime."""
        try:
            self._send(kind, said)
            while True:
                kind, said = self._receive()
                if kind != "asked":
                    break
                self._send(*self._answer(*said))
        except Disconnected:
            raise Ended(os.waitpid(self._pid, 0)[1]) from None
        if kind == "raised":
            raise self._raised(said)
        if self._lost:  # and not told of; but the program has read its words
            raise self._lost
        return said

    def _send(self, kind, said):
        send_frame(self._socket, opening((kind, said), self._refer))

    def _receive(self):
        frame = receive_frame(self._socket, FRAME_BYTES)
        try:
            kind, said = resolved(Reader(frame).load(), self._names)
        except Exception:  # it is not our own side that speaks there
            os.kill(self._pid, signal.SIGKILL)
            raise Disconnected from None
        return kind, said

    def _refer(self, thing):
        """Return what stands in the program for something of the engine's."""
        if type(thing) is RDD:
            self._rdds[thing.number] = thing
            return rdd_program.stand_in, (thing.number,)
        if thing is self.context:
            return rdd_program.stand_in, ()
        if type(thing) is Broadcast:
            return rdd_program.a_broadcast, (thing._number,)
        if type(thing) is Accumulator:
            return rdd_program.an_accumulator, (thing.aid,)
        if type(thing) is StandIn:
            return rdd_program.function, (thing.number,)
        return None

    def _answer(self, what, *args):
        try:
            return "answer", _ANSWERS[what](self, *args)
        except Exception as error:
            facts = described(error)
            self._failed = error
            self._lost = error if type(error) is TaskFailed else self._lost
            return "failed", (facts["type"], facts["message"])

    def _raised(self, facts):
        """Return what the program raised; the engine's own exception if it is that."""
        failed = self._failed and described(self._failed)
        if failed and all(failed[part] == facts[part] for part in ("type", "message")):
            return self._failed
        known = [kind for kind in _OF_PACKING if kind.__name__ == facts["type"]]
        return known[0](facts["message"]) if known else Told(facts)

    def _method(self, thing, name, args, kwargs):
        kind = RDD if type(thing) is RDD else Context
        if str(name).startswith(("saveAs", "pipe")):
            raise SideEffect(f"it uses {kind.__name__}.{name} (a side effect)")
        if name not in _OFFERED[kind] or not callable(getattr(kind, name)):
            raise _not_offered(kind, name)
        result = getattr(thing, name)(*args, **kwargs)
        return list(result) if hasattr(result, "__next__") else result

    def _attribute(self, thing, name):
        kind = RDD if type(thing) is RDD else Context
        if name == "__repr__":
            return repr(thing)
        if name not in _ATTRIBUTES[kind] and name in dir(thing):
            raise _not_offered(kind, name)
        return getattr(thing, name)

    def _shared(self, kind, number, how, *args):
        thing = self.context.shared(kind, number)
        if how not in _OF_SHARED[type(thing)]:
            raise _not_offered(type(thing), how)
        if how != "value":
            return getattr(thing, how)(*args)
        if args:
            thing.value = args[0]
        return thing.value


def _not_offered(kind, name):
    said = f"{kind.__name__}.{name} is the engine's, and not for a program"
    return AttributeError(f"{said}. Take what your function is given.")


_ANSWERS = {
    "method": Program._method,
    "attribute": Program._attribute,
    "shared": Program._shared,
}
