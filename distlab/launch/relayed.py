"""Untrusted ranks: their messages go through a relay in this process.

    check ── run(fn, 4, relayed=True) ──▶ Relay ◀── stream ──▶ rank: RelayedComm
                 ▲                          │
                 └── plain results ◀────────┴─▶ notes, that no rank can reach

A rank is given its own arguments and nothing else. Its result is read as plain data.
It reports an exception as a type, a message and frames; the exception itself is
constructed here.
"""

import builtins
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from distlab import errors
from distlab.calls.untrusted_data import read_untrusted
from distlab.diagnosis import RankOutcome
from distlab.errors import NotSerializable
from distlab.launch.call import RunningCall
from distlab.launch.clocks import FabricClock, RealClock
from distlab.launch.ranks import Ranks
from distlab.launch.relay import ProtocolViolation, Relay
from distlab.processes import UntrustedProcesses, Violation
from distlab.recorder import Recorder
from distlab.simulated import Fabric

__all__ = ["RelayedRanks", "Relaying", "kept_ranks"]

_MOST_BYTES = 2**30  # that all ranks together may send
_MOST_TEXT, _MOST_FRAMES = 4000, 64


@dataclass(frozen=True)
class Relaying:
    """Options of a relayed world.

    answers: `comm.ask(question)` in a rank returns `answers(rank, question, step)`,
        called in this process; question and answer are plain data, step is the number
        of calls of its Comm that the rank has made, and a ValueError goes to the rank.
    fabric: its model of messages' times; each rank has a virtual clock then.
    modules: of distlab, which the ranks need; they are imported once for all of them.
    without: modules of distlab that the ranks are not to have, see `withheld`.
    most_s: seconds that a call may take while others have the processors; its limit
        does not count these.
    kept: whether they may be the processes of an earlier world; see `kept_ranks`.
    """

    answers: Callable[[int, object, int], object] | None = None
    fabric: Fabric | None = None
    modules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    kept: bool = False
    most_s: float = 0.0


@contextmanager
def kept_ranks() -> Iterator[None]:
    """Reuse the same processes for the body's worlds that allow it (`kept`), in turn.

    A fork costs ten times as much as a small call. Each world has a relay of its own,
    and a rank its arguments; the state that a call leaves in its process persists.
    After a call that failed, or that left threads behind, there are new processes.
    """
    global _kept
    if _kept is not None:  # an outer block keeps them
        yield
        return
    _kept = []
    try:
        yield
    finally:
        idle, _kept = _kept, None
        for crew in idle:
            crew.stop()


_kept = None  # inside of `kept_ranks` a list of idle processes


class RelayedRanks(Ranks):
    """`world_size` processes that share nothing, with a relay between them."""

    def __init__(self, world_size: int, relaying: Relaying, start_method: str):
        self._relaying = relaying
        self._may_stay, self.most_s = False, relaying.most_s
        backend = "a relay on a virtual clock" if relaying.fabric else "a relay"
        super().__init__(
            world_size, backend, persistent=False, start_method=start_method
        )

    def _also(self):
        return (*super()._also(), *self._relaying.modules)

    def _start(self, *, shared, **how):
        crew = self._take_over((how["also"], self._relaying.without))
        if crew is None:
            crew = UntrustedProcesses("distlab.launch.rank:relayed", **how)
            crew.modules = how["also"], self._relaying.without
        try:
            crew.start(self.world_size, _MOST_BYTES // self.world_size)
        except BaseException:
            crew.stop()
            raise
        return crew

    def _take_over(self, modules):
        """Return idle processes that have these modules, or None."""
        if not (self._relaying.kept and _kept):
            return None
        crew = _kept.pop()
        if crew.modules == modules and crew.whole():
            return crew
        crew.stop()
        return None

    def _settings(self, persistent):
        relaying = self._relaying
        own = {"without": relaying.without, "virtual": relaying.fabric is not None}
        return super()._settings(persistent) | own

    def call(self, tasks, **how):
        """Run a call as `Ranks` does; record whether the processes can be reused."""
        outcomes = super().call(tasks, **how)
        self._may_stay = all(one.details.get("threads") == 1 for one in outcomes)
        return outcomes

    def _begin(self, console, faults):
        fabric = self._relaying.fabric
        clock = FabricClock(fabric, self.world_size) if fabric else RealClock()
        recorders = [
            Recorder(rank, self.world_size, beside=self.board)
            for rank in range(self.world_size)
        ]
        for recorder in recorders:
            recorder.begin()
        relay = Relay(
            recorders, self.processes.post, answers=self._relaying.answers, clock=clock
        )
        self.board.begin(clock.latest)
        return _RelayedCall(
            self.processes, self.board, relay, console=console, faults=faults
        )

    def leave(self) -> None:
        """Keep the processes for the next world, if that is allowed."""
        if self._relaying.kept and _kept is not None and self._may_stay:
            _kept.append(self.processes)
            self.processes = None


class _RelayedCall(RunningCall):
    """A call under way whose ranks send their messages to a relay."""

    def __init__(self, processes, board, relay, **how):
        super().__init__(processes, board, **how)
        self._relay = relay

    def _take(self, happened):
        for what in happened:
            if isinstance(what, Violation):
                self._blame(what.index, what.why)
        super()._take(happened)
        self._board.drain()  # the relay cannot wait for room, as a rank does

    def _time(self, rank):
        return self._relay.clock.moment(rank)

    def _hear(self, frame):
        rank, payload = frame.index, frame.payload
        if rank in self.outcomes:
            return  # it has returned, and the rest is ignored
        if payload[:1] == b"?":
            try:
                self._relay.handle(rank, memoryview(payload)[1:])
            except ProtocolViolation as lie:
                self._blame(rank, str(lie))
        elif payload[:1] == b"=":
            self._flush(rank)
            self._end(rank, payload)
        else:
            self._blame(rank, "what is no request of a Comm")

    def _end(self, rank, payload):
        outcome = _read_outcome(rank, payload, self._time(rank))
        refused = self._relay.refused.get(rank)
        if outcome.how == "raised":
            outcome.details["disagreement"] = rank in self._relay.disagreed
        if outcome.how == "returned" and refused:
            outcome = _raised(rank, outcome.time, errors.MessageMismatch(refused))
        self._relay.ended(rank, outcome.how == "returned")
        self.outcomes[rank] = outcome

    def _blame(self, rank, what):
        if rank not in self.outcomes:
            said = f"rank {rank} sent {what}, and is not heard any more"
            error = errors.DistlabError(said)
            self.outcomes[rank] = _raised(rank, self._time(rank), error)


def _read_outcome(rank, payload, when):
    head, _, data = bytes(payload[1:]).partition(b"\n")
    try:
        details = json.loads(head)
        if details["outcome"] == "returned":
            left = {"threads": details.get("threads")}
            return RankOutcome(rank, "returned", when, read_untrusted(data), left)
        kind, message = _text(details["type"]), _text(details["message"])
        described = {
            "type": kind,
            "message": message,
            "frames": [
                (_text(file), int(line), _text(function))
                for file, line, function in details["frames"][-_MOST_FRAMES:]
            ],
            "because": _text(details["because"]),
        }
        return RankOutcome(rank, "raised", when, _error(kind, message), described)
    except NotSerializable as error:
        return _raised(rank, when, NotSerializable(f"rank {rank} returned {error}"))
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        said = f"rank {rank} ended its call in words that no rank says"
        return _raised(rank, when, errors.DistlabError(said))


def _raised(rank, when, error):
    described = {"type": type(error).__name__, "message": str(error)}
    return RankOutcome(rank, "raised", when, error, described)


def _text(value):
    """Return a text, shortened and without lone surrogates."""
    if not isinstance(value, str):
        raise ValueError
    if len(value) > _MOST_TEXT:
        value = value[:_MOST_TEXT] + " …"
    return value.encode(errors="replace").decode()


def _error(kind, message):
    """Return an exception of Python's or distlab's own, else a RuntimeError."""
    found = getattr(builtins, kind, None) or getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        return found.__new__(found, message)
    return RuntimeError(f"{kind}: {message}")
