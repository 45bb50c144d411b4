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

The manager is torchft's, and so is all that is called on it. A replica group here is
one process, and not a rank of `run`, which ends all when one dies. Before each step the
lighthouse forms a **quorum** of the groups whose heartbeats arrive. A group that is
behind fetches the state of one that is not; in that step it adds nothing to the
average, and is not counted. In step 0 all but one fetch their state, and are counted.
All are on this machine. A manager listens on all addresses, and logs to stderr.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec

from distlab.errors import EngineFailed, EngineMissing
from distlab.processes import Child, FrameReceived, Processes

__all__ = ["is_installed", "lighthouse", "manager", "serve"]

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


def _require():
    if not is_installed():
        raise EngineMissing.of("engines.torchft", ["torchft"], "torchft")
