"""`run` on a fabric: simulated ranks, with the same report and diagnosis."""

import copy
import gc
from collections.abc import Callable, Sequence
from typing import NamedTuple

from distlab.calls.failure_location import described
from distlab.diagnosis import Failure, RankOutcome, stuck_ranks, tell
from distlab.faults import Fault
from distlab.launch.report import Report
from distlab.peers import Disagreement
from distlab.processes.memory import resident_bytes, return_free_memory
from distlab.simulated import Engine, Fabric, SimulatedBoard, SimulatedComm
from distlab.simulated.per_rank_globals import one_thread
from distlab.units import MB

__all__ = ["FinishedSimulation", "simulate"]

_KEPT_BYTES = 16 * MB  # growth of memory by a run below which nothing is freed


class FinishedSimulation(NamedTuple):
    """A finished simulated run; it can be serialized.

    values: rank -> its result. failure: why the run could not finish, or None.
    """

    values: list
    elapsed_s: float
    board: SimulatedBoard
    failure: Failure | None

    def report(self, faults: Sequence[Fault] = ()) -> Report:
        """Return the report that `run` returns.

        Raises: WorldFailed as `run` does, with the same diagnosis.
        """
        if self.failure is not None:
            silent = [""] * self.board.world_size
            raise tell(self.failure, self.board, faults, silent) from None
        return Report(
            results=self.values,
            trace=self.board.trace(),
            output=[""] * self.board.world_size,
            elapsed_s=self.elapsed_s,
            backend="a simulated fabric",
        )


def simulate(
    fn: Callable,
    world_size: int,
    *,
    args: Sequence,
    fabric: Fabric,
    faults: Sequence[Fault] = (),
    timeout_s: float = 60,
) -> FinishedSimulation:
    """Call `fn(comm, *args)` on simulated ranks; return the run, or its failure.

    Each rank gets its own copy of the arguments, as a process would. A world counts as
    timed out after `timeout_s` as soon as all others wait for a rank that hangs; only
    Ctrl-C ends a rank that computes forever.

    Raises: KeyboardInterrupt, with the same diagnosis.
    """
    before_bytes = resident_bytes()
    engine = Engine(world_size, fabric, faults)
    with one_thread():
        engine.run([_body(engine, rank, fn, args) for rank in range(world_size)])
    board = SimulatedBoard(engine)
    failure = _failure(engine, board, timeout_s)
    for free in (return_free_memory, gc.collect, return_free_memory):
        if resident_bytes() > before_bytes + _KEPT_BYTES:
            free()  # as the end of a process would
    if engine.interrupted:
        raise tell(failure, board, faults, [""] * world_size)
    return FinishedSimulation(engine.values, engine.ended_s, board, failure)


def _body(engine, rank, fn, args):
    comm, own = SimulatedComm(engine, rank), copy.deepcopy(args)

    def body():
        result = fn(comm, *own)
        comm.finish()
        return result

    return body


def _failure(engine, board, timeout_s):
    """Return the Failure of a run that could not finish, or None."""
    outcomes = {
        rank: _outcome(engine, rank, state)
        for rank, state in enumerate(engine.states)
        if state in ("done", "raised", "died")
    }
    failed = [o for o in outcomes.values() if o.how != "returned"]
    if len(outcomes) < engine.world_size and not failed:
        failed = [_raised(engine, *each) for each in engine.unraised[:1]]
    facts = {"outcomes": outcomes, "stacks": engine.stacks}
    if engine.interrupted:
        return Failure("interrupted", **facts)
    if failed:
        disagreed = isinstance(failed[0].value, Disagreement)
        how = "disagreement" if disagreed else failed[0].how
        return Failure(how, failed[0], **facts)
    if "hung" in engine.states:
        return Failure("timeout", timeout_s=timeout_s, **facts)
    if len(outcomes) < engine.world_size:
        return Failure("stuck", stuck=stuck_ranks(board, set(outcomes)), **facts)
    return None


def _outcome(engine, rank, state):
    value = engine.values[rank]
    if state == "raised":
        return _raised(engine, rank, value)
    how, value = ("died", -9) if state == "died" else ("returned", value)
    return RankOutcome(rank, how, engine.clock.now, value, {})


def _raised(engine, rank, error):
    details = described(error) | {"disagreement": isinstance(error, Disagreement)}
    return RankOutcome(rank, "raised", engine.clock.now, error, details)
