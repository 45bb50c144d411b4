"""The inside of a rank: join the process group, then run the kernel's calls.

    kernel ── settings ──▶ rank: joins the process group ── "ready" ──▶ kernel
           ── call ──────▶       fn(comm, *args)          ── outcome ─▶
           ── (end) ─────▶       leaves the group, ends

The kernel's end of the connection is in `ranks`.
"""

import json
import os
import re
import sys
import threading
import warnings
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from distlab.calls.failure_location import described
from distlab.calls.serialize import Arrivals
from distlab.comm import Comm
from distlab.comm.relayed_comm import RelayedComm, RelayStream
from distlab.launch.collective_hooks import refuse, watch
from distlab.launch.network_store import NetworkStore
from distlab.launch.outcome import outcome_of
from distlab.peers import Disagreement
from distlab.processes import Child
from distlab.recorder import Recorder
from distlab.sandbox.withheld import withhold

__all__ = ["END", "count_gpus", "describe", "join", "main", "relayed"]
__all__ += ["pin_loopback", "torchrun_names"]

END = b"E"

# Messages of gloo and NCCL when the other end is gone, also from a request's wait().
_BROKEN = re.compile(r"gloo|Connection (closed|reset)|Broken pipe|NCCL error")


def main(child: Child) -> None:
    """Run one rank of a world, from its settings to its end."""
    settings = json.loads(child.receive())
    rank, world_size = child.index, settings["world_size"]
    block, meeting_place = child.shared
    names = torchrun_names(rank, world_size, settings.get("nodes"))
    os.environ.update(names)
    torch.set_num_threads(settings["threads"])
    recorder = Recorder(rank, world_size, block)
    device = torch.device("cpu")
    if settings["backend"] == "nccl":
        device = _take_gpu(rank, names)
    place = settings["meeting_place"] or f"/proc/self/fd/{meeting_place}"
    if settings.get("nodes"):
        place = NetworkStore(meeting_place)
    comm = None
    leave = watch(lambda: comm)
    join(rank, world_size, settings["backend"], place)
    comm = Comm(rank, world_size, device=device, recorder=recorder)
    arrivals = Arrivals(settings["persistent"])
    child.send(json.dumps({"outcome": "ready"}).encode())
    while True:
        request = child.receive()
        if request[:1] == END:
            break
        task = memoryview(request)[1:]
        child.send(_outcome(comm, arrivals, task, leave=leave))
    if dist.is_initialized():
        dist.destroy_process_group()


def relayed(child: Child) -> None:
    """Run one rank of relayed worlds, for one call each."""
    comms = []
    refuse(lambda: comms[-1])
    while True:
        settings = json.loads(child.receive())  # or the owner ends this process
        rank, world_size = child.index, settings["world_size"]
        os.environ.update(torchrun_names(rank, world_size))
        torch.set_num_threads(settings["threads"])
        line, sleeps = RelayStream(child.send, child.receive), not settings["virtual"]
        comm = RelayedComm(rank, world_size, line, sleeps=sleeps)
        comms[:] = [comm]
        withhold(settings["without"])
        child.send(json.dumps({"outcome": "ready"}).encode())
        task = memoryview(child.receive())[1:]
        child.send(b"=" + _outcome(comm, Arrivals(persistent=False), task))


def count_gpus(child: Child) -> None:
    """Send the kernel the number of GPUs; a query in the kernel would break forks."""
    child.send(json.dumps(torch.cuda.device_count()).encode())


def torchrun_names(
    rank: int, world_size: int, nodes: Sequence[Sequence[int]] | None = None
) -> dict[str, str]:
    """Return the environment variables that torchrun sets for a rank.

    nodes: the ranks of each node; without it there is one.
    """
    nodes = nodes or [range(world_size)]
    node = next(number for number, ranks in enumerate(nodes) if rank in ranks)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(nodes[node].index(rank)),
        "GROUP_RANK": str(node),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(len(nodes[node])),
    }


def pin_loopback() -> None:
    """Restrict gloo and NCCL to loopback."""
    loopback = "lo" if sys.platform == "linux" else "lo0"
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = loopback


def _take_gpu(rank, names):
    """Return this rank's GPU; ranks that outnumber the GPUs of their node share them.

    NCCL refuses two ranks on one GPU of a machine, so each passes for a machine of its
    own, reached through sockets.
    """
    gpus, here = torch.cuda.device_count(), int(names["LOCAL_WORLD_SIZE"])
    if gpus < here:
        os.environ |= {"NCCL_HOSTID": f"rank{rank}", "NCCL_IB_DISABLE": "1"}
    device = torch.device("cuda", int(names["LOCAL_RANK"]) % max(1, gpus))
    torch.cuda.set_device(device)
    return device


def join(rank: int, world_size: int, backend: str, place: str | dist.Store) -> None:
    """Join the process group: rendezvous in the file `place`, over loopback only.

    Or in a store, over the network interface that the environment names.
    """
    if isinstance(place, str):
        pin_loopback()
        place = dist.FileStore(place, world_size)
    if backend == "gloo":  # FSDP2, DeepSpeed and others would move to a GPU unasked
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.init_process_group(
            backend,
            store=place,
            rank=rank,
            world_size=world_size,
            timeout=timedelta(days=1),  # the kernel detects ranks that wait forever
        )
        if backend == "nccl":
            # Only after a collective of all may some of them batch their messages.
            dist.barrier(device_ids=[torch.cuda.current_device()])


def _outcome(comm, arrivals, data, **how):
    """Run one call; return its outcome."""

    def work():
        fn, args, comm.faults = arrivals.unpack_task(data)
        comm.fail_if_planned()
        result = fn(comm, *args)
        comm.started.finish()
        return result

    def facts():
        threads = threading.active_count()
        return {"group": dist.is_initialized(), "threads": threads}

    return outcome_of(work, comm.recorder, facts=facts, describe=describe, **how)


def describe(error: BaseException) -> dict:
    """Return the facts of `error` that the kernel's diagnosis needs."""
    facts = described(error)
    return facts | {
        "disagreement": isinstance(error, Disagreement),
        "communication": _from_communication(error, facts["frames"]),
    }


def _from_communication(error, frames):
    """Return True if a broken connection, not the learner's code, raised `error`."""
    if not isinstance(error, RuntimeError):
        return False
    last = frames[-1][0] if frames else ""
    in_torch = last.endswith(("distributed_c10d.py", "c10d_logger.py"))
    in_transfer = "/distlab/comm/" in last
    return in_torch or in_transfer or bool(_BROKEN.search(str(error)))
