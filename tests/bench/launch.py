"""From a call to the first all-reduce done on four ranks, beside its named peers.

    python tests/bench/launch.py

Each figure is the median of several calls in one run of this script; the peers do the
same work: four processes, a gloo group, one all_reduce, results checked.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from distlab import World, run

RANKS = 4


def all_reduce(comm):
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    return tensor[0].item()


def peer_rank(rank, meeting_place):
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=RANKS
    )
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    assert tensor[0].item() == RANKS
    dist.destroy_process_group()


def spawn():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(peer_rank, (os.path.join(folder, "meet"),), nprocs=RANKS)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def notebook_launcher():
    """accelerate's launcher, which forks a process that has imported torch."""
    code = (
        "import time, torch, torch.distributed as dist\n"
        "from accelerate import notebook_launcher\n"
        "def work():\n"
        "    dist.init_process_group('gloo') if not dist.is_initialized() else None\n"
        "    tensor = torch.ones(10); dist.all_reduce(tensor)\n"
        "began = time.perf_counter()\n"
        f"notebook_launcher(work, num_processes={RANKS}, use_port='{free_port()}')\n"
        "print('seconds', time.perf_counter() - began)\n"
    )
    on_loopback = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            env=on_loopback,
        )
    except subprocess.TimeoutExpired:
        return None
    found = [
        line.split()[1]
        for line in done.stdout.splitlines()
        if line.startswith("seconds")
    ]
    return float(found[0]) if found else None


def first_in_a_fresh_process():
    code = (
        "import time, torch, torch.distributed as dist; from distlab import run\n"
        "def work(comm):\n"
        "    t = torch.ones(10); dist.all_reduce(t); return t[0].item()\n"
        "began = time.perf_counter(); report = run(work, 4)\n"
        "assert report.results == [4] * 4; print(time.perf_counter() - began)\n"
    )
    return float(
        subprocess.run([sys.executable, "-c", code], capture_output=True).stdout
    )


def seconds(call, times):
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main():
    spawned = seconds(spawn, 3)
    fresh = statistics.median(first_in_a_fresh_process() for _ in range(3))
    run(all_reduce, RANKS)
    again = seconds(lambda: run(all_reduce, RANKS), 20)
    with World(RANKS) as world:
        world.run(lambda comm: None)
        trivial = seconds(lambda: world.run(lambda comm: None), 100)
        reduce = seconds(lambda: world.run(all_reduce), 100)
    rows = [
        ("torch.multiprocessing.spawn", spawned),
        ("run, first in a fresh process", fresh),
        ("run, second and later", again),
        ("World.run, an all_reduce", reduce),
        ("World.run, a trivial call", trivial),
    ]
    launched = notebook_launcher()
    if launched is None:
        print(
            "accelerate.notebook_launcher is not installed, or did not finish in 60 s"
        )
    else:
        rows.insert(1, ("accelerate.notebook_launcher, first", launched))
    print(
        f"{'four ranks, call to all-reduce done':40}{'seconds':>10}{'spawn / this':>14}"
    )
    for name, taken in rows:
        print(f"{name:40}{taken:10.4f}{spawned / taken:14.1f}")


if __name__ == "__main__":
    main()
