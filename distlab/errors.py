"""The exceptions that the library raises. A learner's mistake ends in one of these.

The message of `WorldFailed` and its subclasses is a failure report: the rank that
failed first and its reason, the calls of the other ranks, and the wait-for graph.
`distlab.launch.story` writes it; these classes only carry it.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

__all__ = [
    "CheckpointError",
    "ClusterClosed",
    "CollectiveMismatch",
    "ContextStopped",
    "CorruptLog",
    "CourseUnusable",
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
    "NotSerializable",
    "ProcessServerFailed",
    "ProtocolBroken",
    "RankDied",
    "RankRaised",
    "SandboxExceeded",
    "SandboxFailed",
    "SwitchFailed",
    "TaskFailed",
    "WorkdirError",
    "WorldChanged",
    "WorldClosed",
    "WorldFailed",
    "WorldTimeout",
    "brief_traceback",
    "interrupted",
]


class DistlabError(Exception):
    """Base of everything that distlab raises on purpose."""

    def _render_traceback_(self):
        return brief_traceback(self)


class InvalidArgument(DistlabError, ValueError, TypeError):
    """An argument that no world can be made from; nothing was started."""


class InvalidSchedule(InvalidArgument):
    """A pipeline schedule that cannot be executed; the message names stage and work."""


class NotSerializable(DistlabError, TypeError):
    """An object that cannot be sent to a rank, or back from one."""


class CheckpointError(DistlabError, OSError):
    """A checkpoint that is missing, torn, or of another model; nothing was loaded.

    Or one that could not be written; the one before it is intact.
    """


class NestedWorld(DistlabError, RuntimeError):
    """A world that was requested inside a rank of another world."""


class NestedRDD(DistlabError, RuntimeError):
    """An RDD or Context that was used inside a function that runs on workers."""


class ContextStopped(DistlabError, RuntimeError):
    """A `Context`, or an RDD of one, that was used after its end."""


class CourseUnusable(DistlabError, OSError):
    """A folder that nbgrader cannot grade in, or a gradebook that another run locks."""


class UnknownLesson(DistlabError):
    """A name that matches no lesson; the message lists the lessons."""


class WorldClosed(DistlabError, RuntimeError):
    """A call on a `World` that has been closed."""


class ProcessServerFailed(DistlabError, RuntimeError):
    """A process server, which forks ranks, that could not start, or died."""


class SandboxExceeded(ProcessServerFailed):
    """A sandbox whose code exceeded a limit; all of its processes were ended.

    `why` names the limit, in half a sentence.
    """

    @property
    def why(self) -> str:
        """The limit that was exceeded, in half a sentence."""
        return self.args[0]


class SandboxFailed(DistlabError, RuntimeError):
    """A sandbox that could not be made; nothing was started in it."""


class ExtraMissing(DistlabError, ImportError):
    """Packages that an extra of distlab brings, and that are not installed here."""

    @classmethod
    def of(cls, user: str, packages: list[str], extra: str) -> "ExtraMissing":
        """Return the error that names the packages `user` needs and their extra."""
        needs = " and ".join(packages)
        return cls(f'{user} needs {needs}: pip install "distlab[{extra}]"')

    @classmethod
    @contextmanager
    def named(cls, user: str, extra: str = "notebook") -> Iterator[None]:
        """Import in the body what `user` needs; raise this error if it is not there."""
        try:
            yield
        except ModuleNotFoundError as error:
            raise cls.of(
                user, [(error.name or "a package").partition(".")[0]], extra
            ) from None


class EngineMissing(ExtraMissing):
    """A real system, such as MPI, that is not installed here; nothing was started."""


class EngineFailed(DistlabError, RuntimeError):
    """A real system's own program, such as mpirun, could not start, or ended early."""


class HistoryError(DistlabError, ValueError):
    """A history that is contradictory, or that a checker cannot judge.

    `line` is the number of the invalid line, if it was read from a file or text.
    """

    def __init__(self, story: str, *, line: int | None = None):
        super().__init__(story)
        self.line = line

    def __reduce__(self):
        return _rebuild, (type(self), str(self), self.__dict__.copy())


class MessageMismatch(DistlabError, ValueError):
    """A receive buffer that does not fit the message sent to it."""


class WorkdirError(DistlabError, OSError):
    """A folder for a job's files that cannot be written, or is full."""


class TaskFailed(DistlabError, RuntimeError):
    """A task that workers cannot finish; nothing of the job's output is left.

    `task` names it, such as "map 3", and `worker` is the last that ran it.
    `cause` is the exception of the user's function, else a sentence.
    `trace` holds the events of every worker up to the failure.
    """

    def __init__(
        self, story: str, *, task: str, worker: int, cause: object, trace: object
    ):
        super().__init__(story)
        self.task = task
        self.worker = worker
        self.cause = cause
        self.trace = trace

    def __reduce__(self):
        return _rebuild, (type(self), str(self), self.__dict__.copy())


class NodeFailed(DistlabError, RuntimeError):
    """A node that raised, did not return, or returned something other than effects.

    `node` is its number, and `method` the one that was called, such as "on_message".
    `cause` is the exception of the learner's code if it raised one, else a sentence.
    `trace` holds the events of all nodes and clients up to the failure, if any.
    """

    def __init__(
        self,
        story: str,
        *,
        node: int,
        method: str,
        cause: object,
        trace: object = None,
    ):
        super().__init__(story)
        self.node = node
        self.method = method
        self.cause = cause
        self.trace = trace

    def __reduce__(self):
        return _rebuild, (type(self), str(self), self.__dict__.copy())


class SwitchFailed(DistlabError, RuntimeError):
    """The process that carries the messages between a cluster's nodes is gone."""


class ClusterClosed(DistlabError, RuntimeError):
    """A call on a `Cluster` after its end."""


class CorruptLog(DistlabError, ValueError):
    """A log on a node's disk that no correct node has written; nothing was started."""


class ProtocolBroken(DistlabError, RuntimeError):
    """A message that no correct node sends; the message names the sender."""


class NotDeterministic(DistlabError, RuntimeError):
    """A node that behaved differently in two calls with the same input.

    `node` is its number and `at_s` the time at which the two runs part. `first` and
    `second` describe its effects there, in each run.
    """

    def __init__(self, story: str, *, node: int, at_s: float, first: str, second: str):
        super().__init__(story)
        self.node = node
        self.at_s = at_s
        self.first = first
        self.second = second

    def __reduce__(self):
        return _rebuild, (type(self), str(self), self.__dict__.copy())


class WorldChanged(DistlabError, RuntimeError):
    """The end of an elastic world's generation: a rank has died or joined."""


class WorldFailed(DistlabError):
    """A world that did not finish: the failure that came first, and its report.

    `rank` is the rank that failed first, or the one that the others waited for.
    `cause` is that rank's own exception if it raised one, else a sentence.
    `trace` holds the events of every rank up to the failure.
    `output` holds the output of every rank, one string per rank.
    """

    def __init__(
        self,
        story: str,
        *,
        rank: int,
        cause: object,
        trace: object,
        output: Iterable[str] = (),
    ):
        super().__init__(story)
        self.rank = rank
        self.cause = cause
        self.trace = trace
        self.output = list(output)

    def __reduce__(self):
        return _rebuild, (type(self), str(self), self.__dict__.copy())


class RankRaised(WorldFailed):
    """A rank whose function raised; `cause` is the exception."""


class RankDied(WorldFailed):
    """A rank whose process ended without returning: killed, crashed or left early."""


class Deadlock(WorldFailed):
    """Ranks that wait for each other, while no message in flight can free them.

    `cycle` lists the ranks in the order in which they wait, each for the next and
    the last for the first; it is empty when they wait for a rank that has returned.
    """

    cycle: tuple[int, ...] = ()


class CollectiveMismatch(WorldFailed):
    """Ranks that disagree about a collective: one skipped it, or called another."""


class WorldTimeout(WorldFailed):
    """A world whose time limit passed while at least one rank was still running."""


def _rebuild(kind, story, fields):
    error = kind.__new__(kind, story)
    error.__dict__.update(fields)
    return error


def interrupted(story: str, trace: object) -> KeyboardInterrupt:
    """Return the exception of Ctrl-C, with a report of the ranks or workers.

    It has no class of its own: with one, a script would not end as by the signal.
    `trace` holds their events up to there.
    """
    error = KeyboardInterrupt(story)
    error.trace = trace
    error._render_traceback_ = lambda: brief_traceback(error)
    return error


def brief_traceback(error: BaseException) -> list[str]:
    """Return the lines a notebook shows for `error`: its message, no library frames.

    IPython calls an exception's `_render_traceback_`; the frames between the
    learner's cell and the raise are distlab's own and explain nothing.
    """
    _wrap_between_words()
    bold_red, plain = "\x1b[1;31m", "\x1b[0m"
    first, *rest = str(error).split("\n") or [""]
    return [f"{bold_red}{type(error).__name__}{plain}: {first}", *rest]


_WRAP = (  # JupyterLab breaks the text of an error in the middle of words
    '<style class="distlab-wrapped">.jp-OutputArea:has(.distlab-wrapped) pre '
    "{word-break: normal; overflow-wrap: anywhere}</style>"
)
_wrapped = set()  # numbers of cells: IPython renders an error twice


def _wrap_between_words():
    shell = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
    if hasattr(shell, "kernel") and shell.execution_count not in _wrapped:
        _wrapped.add(shell.execution_count)
        bundle = {"text/html": _WRAP, "text/plain": ""}
        sys.modules["IPython"].display.display(bundle, raw=True)
