"""How long a save keeps the loop, and how fast a state comes back; beside torch's.

python tests/bench/checkpoint.py [MB]
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

from distlab import World
from distlab.train.checkpoint import Checkpoints, PeerMemory

TIMES = 5


def state_of(mb):
    """Return a state of so many MB, in tensors of 10 MB."""
    return {f"layer {k}": torch.randn(2_500_000) for k in range(mb // 10)}


def stalls(comm, folder, mb, background):
    """Return how long each `save` kept the loop, while the state changes."""
    state, taken = state_of(mb), []
    with Checkpoints(comm, folder, keep_last=1, background=background) as checkpoints:
        for step in range(1, TIMES + 1):
            began = time.perf_counter()
            checkpoints.save(step, {"model": state})
            taken.append(time.perf_counter() - began)
            for tensor in state.values():
                tensor += 1
            checkpoints.wait()
    return taken


def stalls_of_dcp(comm, folder, mb, background):
    """Do the same with torch's distributed checkpoint."""
    state, taken = state_of(mb), []
    for step in range(1, TIMES + 1):
        began, place = time.perf_counter(), folder / str(step)
        if background:
            pending = dcp.async_save({"model": state}, checkpoint_id=place)
        else:
            dcp.save({"model": state}, checkpoint_id=place)
        taken.append(time.perf_counter() - began)
        if background:
            pending.result()
        shutil.rmtree(place)
    return taken


def ways_back(comm, folder, mb):
    """Return the seconds to have a state from a peer, and from the disk twice."""
    state, memory, seconds = state_of(mb), PeerMemory(), {}
    memory.save(comm, 1, state)
    Checkpoints(comm, folder).save(1, {}, {"model": state})
    if comm.rank == 1:
        memory = PeerMemory()
    for way in ("peer", "disk, cold", "disk, cached"):
        if way == "disk, cold":
            for file in folder.glob("step-*/*.pt"):
                descriptor = os.open(file, os.O_RDONLY)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
        comm.barrier()
        began = time.perf_counter()
        if way == "peer":
            memory.load(comm)
        else:
            own = {"model": None}
            Checkpoints(comm, folder).load({}, own)
            assert own["model"]
        seconds[way] = time.perf_counter() - began
    return seconds


def main():
    """Print the tables."""
    mb = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(dir=".") as folder, World(1) as one:
        found, folder = {}, Path(folder)
        for name, fn, background in (
            ("Checkpoints, synchronous", stalls, False),
            ("Checkpoints, background", stalls, True),
            ("dcp.save", stalls_of_dcp, False),
            ("dcp.async_save", stalls_of_dcp, True),
        ):
            place = folder / name.replace(" ", "-")
            found[name] = one.run(fn, place, mb, background).results[0]
        print(f"how long a save of {mb} MB keeps the loop, s (one rank)")
        for name, taken in found.items():
            middle, most = statistics.median(taken), max(taken)
            print(f"{name:26} median {middle:7.3f}  most {most:7.3f}")
        share = statistics.median(found["Checkpoints, background"])
        whole = statistics.median(found["Checkpoints, synchronous"])
        print(f"in the background it is {share / whole:.1%} of synchronous")
        with World(2) as two:
            back = two.run(ways_back, folder / "back", mb).results[1]
        print(f"{mb} MB back on a rank that was replaced, s")
        for way, seconds in back.items():
            print(f"{way:26} {seconds:7.3f}")


if __name__ == "__main__":
    main()
