"""torchft: fault-tolerant training that continues with the surviving replica groups.

    with torchft.lighthouse(least=2) as address: ...  # one for all groups
    with torchft.manager(address, save, load, least=2) as manager:  # in each group
        while manager.current_step() < steps:
            manager.start_quorum()
            compute_gradients(model)
            for p in model.parameters():
                manager.allreduce(p.grad).wait()
            if manager.should_commit():
                optimizer.step()

    torchft.run_groups(train, 3)  # a process each; one that is killed starts again

The manager is torchft's, and so is all that is called on it. A replica group here is
one process, and not a rank of `run`, which ends all when one dies. Before each step the
lighthouse forms a **quorum** of the groups whose heartbeats arrive. A group that is
behind fetches the state of one that is not; in that step it adds nothing to the
average, and is not counted. In step 0 all but one fetch their state, and are counted.
All are on this machine. A manager listens on all addresses, and logs to stderr.
"""

import os
import pickle
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec

from distlab.calls.serialize import Arrivals, pack, pack_task
from distlab.errors import EngineFailed, EngineMissing
from distlab.patience import patience
from distlab.processes import Child, Ended, FrameReceived, Processes

__all__ = ["be_group", "is_installed", "lighthouse", "manager", "run_groups", "serve"]

_LOOPBACK = "127.0.0.1"


def is_installed() -> bool:
    """Return True if torchft is installed."""
    return find_spec("torchft") is not None


@contextmanager
def lighthouse(least: int = 1, *, suspect_after_s: float = 2.0) -> Iterator[str]:
    """Run torchft's lighthouse for a `with` block; yield its address.

    least: groups that a quorum needs. suspect_after_s: a group without a heartbeat for
        so long is left out; after a death, the next step waits for this.
    Raises: EngineMissing if torchft is not installed; EngineFailed with its output.
    """
    _require()
    from distlab.launch.machine import PRELOAD  # a group needs none of that

    processes = Processes(1, f"{__name__}:serve", preload=PRELOAD)
    try:
        processes.send(0, f"{least} {suspect_after_s}".encode())
        yield f"http://{_LOOPBACK}:{_port(processes)}"
    finally:
        processes.stop()


def _port(processes):
    said = ""
    while processes.alive:
        for event in processes.poll(1.0):
            if isinstance(event, FrameReceived):
                return int(event.payload)
            said += getattr(event, "text", "")
    raise EngineFailed(f"torchft's lighthouse ended at its start.\n\n{said}")


def serve(child: Child) -> None:
    """Run the lighthouse that the owner's one frame describes, until the owner ends."""
    from torchft.coordination import LighthouseServer

    least, suspect_after_s = child.receive().split()
    times = {"heartbeat_timeout_ms": round(float(suspect_after_s) * 1000)}
    times |= {"join_timeout_ms": 60_000, "quorum_tick_ms": 20}
    server = LighthouseServer(f"{_LOOPBACK}:0", int(least), **times)
    child.send(server.address().rpartition(":")[2].encode())
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # its further log is not read
    child.receive()


@contextmanager
def manager(
    address: str, save: Callable, load: Callable, *, least=1, timeout_s=5.0, **settings
) -> Iterator:
    """Make this process a replica group for a `with` block; yield its manager.

    save, load: return and restore the state of model and optimizer. least: groups
        that a step needs. settings: more of the manager's. timeout_s: of a collective,
        in which groups wait for one that loads, and after a death for each other.
    Raises: EngineMissing if torchft is not installed.
    """
    _require()
    import torchft
    from torch.distributed import TCPStore

    store = TCPStore(_LOOPBACK, 0, is_master=True, wait_for_workers=False)
    described = {
        "rank": 0,
        "world_size": 1,
        "hostname": _LOOPBACK,
        "store_addr": _LOOPBACK,
    }
    described |= {"store_port": store.port, "lighthouse_addr": address}
    group = torchft.ProcessGroupGloo(timeout=timedelta(seconds=timeout_s))
    made = torchft.Manager(group, load, save, least, **described | settings)
    try:
        yield made
    finally:
        made.shutdown(wait=False)


def run_groups(
    fn: Callable,
    groups: int = 3,
    *,
    args: Sequence = (),
    restarts: int = 1,
    suspect_after_s: float = 1.0,
    timeout_s: float = 60,
) -> list:
    """Call `fn(address, group, life, *args)` in a process per replica group.

    address: of a lighthouse that needs two groups, for `manager`. life: 0, and then the
    number of times that the group was killed; it starts again up to `restarts` times.
    Returns: each group's result. None leaves before all have returned, so they have to
        agree on the last step, as by what all members of a step have in common.
    Raises: EngineMissing; EngineFailed if a group raises, or is killed with no restart
        left, or time runs out.
    """
    from distlab.launch.machine import PRELOAD

    deadline = time.monotonic() + patience(timeout_s)
    results, lives = {}, [0] * groups
    with lighthouse(2, suspect_after_s=suspect_after_s) as address:

        def instruct(group):
            task = address, group, lives[group], *args
            processes.send(group, pack_task(fn, task, ()))

        processes = Processes(groups, f"{__name__}:be_group", preload=PRELOAD)
        try:
            for group in range(groups):
                instruct(group)
            while len(results) < groups:
                if time.monotonic() > deadline:
                    late = sorted(set(range(groups)) - results.keys())
                    raise EngineFailed(f"replica groups {late} did not return in time.")
                for event in processes.poll(0.1):
                    if isinstance(event, FrameReceived):
                        results[event.index] = _result(event)
                    elif isinstance(event, Ended):
                        if not restarts:
                            raise EngineFailed(f"group {event.index} ended once more.")
                        restarts -= 1
                        lives[event.index] += 1
                        processes.replace(event.index)
                        instruct(event.index)
        finally:
            processes.stop()
    return [results[group] for group in range(groups)]


def _result(frame):
    value, raised = pickle.loads(frame.payload)
    if raised:
        raise EngineFailed(f"replica group {frame.index} raised.\n\n{raised}")
    return value


def be_group(child: Child) -> None:
    """Run one replica group of `run_groups`, until the owner ends it."""
    import torch

    from distlab.launch.rank import pin_loopback

    pin_loopback()
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the manager's log
    fn, args, _ = Arrivals(persistent=False).unpack_task(child.receive())
    value = raised = None
    try:
        value = fn(*args)
    except Exception:
        raised = traceback.format_exc()
    child.send(pack((value, raised)))
    child.receive()


def _require():
    if not is_installed():
        raise EngineMissing.of("engines.torchft", ["torchft"], "torchft")
