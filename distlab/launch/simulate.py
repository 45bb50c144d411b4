"""`run` on a fabric: the ranks are simulated, the report and the story are the same."""

import copy
from collections.abc import Callable, Sequence

from distlab.faults import Fault
from distlab.launch.call import Failure, Outcome
from distlab.launch.raised import described
from distlab.launch.report import Report
from distlab.launch.story import tell
from distlab.launch.waits import stuck_ranks
from distlab.simulated import Engine, Fabric, SimulatedBoard, SimulatedComm

__all__ = ["run_simulated"]


def run_simulated(
    fn: Callable,
    world_size: int,
    *,
    args: Sequence,
    fabric: Fabric,
    faults: Sequence[Fault],
    timeout_s: float,
) -> Report:
    """Call `fn(comm, *args)` on simulated ranks; return their report.

    Each rank gets its own copy of the arguments, as a process would. A world that only
    waits for a rank that hangs has waited `timeout_s` as soon as nobody else can go on.

    Raises: WorldFailed as `run` does, with the same story.
    """
    engine = Engine(world_size, fabric, faults)
    engine.run([_body(engine, rank, fn, args) for rank in range(world_size)])
    board = SimulatedBoard(engine)
    failure = _failure(engine, board, timeout_s)
    if failure is not None:
        raise tell(failure, board, faults, [""] * world_size) from None
    return Report(
        results=engine.values,
        trace=board.trace(),
        output=[""] * world_size,
        elapsed_s=engine.clock.now,
        backend="a simulated fabric",
    )


def _body(engine, rank, fn, args):
    comm, own = SimulatedComm(engine, rank), copy.deepcopy(args)
    return lambda: fn(comm, *own)


def _failure(engine, board, timeout_s):
    """Return why the run could not finish, or None."""
    outcomes = {
        rank: _outcome(engine, rank, state)
        for rank, state in enumerate(engine.states)
        if state in ("done", "raised", "died")
    }
    failed = [o for o in outcomes.values() if o.how != "returned"]
    facts = {"outcomes": outcomes, "stacks": engine.stacks}
    if failed:
        return Failure(failed[0].how, failed[0], **facts)
    if "hung" in engine.states:
        return Failure("timeout", timeout_s=timeout_s, **facts)
    if len(outcomes) < engine.world_size:
        return Failure("stuck", stuck=stuck_ranks(board, set(outcomes)), **facts)
    return None


def _outcome(engine, rank, state):
    how = {"done": "returned", "raised": "raised", "died": "died"}[state]
    value, details = engine.values[rank], {}
    if state == "died":
        value = -9
    if state == "raised":
        details = described(value)
    return Outcome(rank, how, engine.clock.now, value, details)
