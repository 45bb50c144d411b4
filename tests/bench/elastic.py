"""How soon training goes on after the death of a rank: ours beside torchrun's restart.

python tests/bench/elastic.py
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from distlab import run_elastic
from distlab.collectives import ring_all_reduce

TIMES = 5
KILLED = 20  # the step in which a rank is killed

SCRIPT = """
import os, signal, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
first = 20 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1" else 0
model = torch.nn.Linear(100, 100)
optimizer = torch.optim.Adam(model.parameters())
for step in range(first, 40):
    model(torch.ones(8, 100)).sum().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    if rank == 2 and step == 20 and not first:
        print("at", time.time(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0 and step == 21 and first:
        print("at", time.time(), flush=True)
dist.destroy_process_group()
"""


def train(comm, kept):
    """Take 40 steps; return when the victim died and when others took their next."""
    kept.setdefault("step", 0)
    if "model" not in kept:
        kept["model"] = torch.nn.Linear(100, 100)
        kept["optimizer"] = torch.optim.Adam(kept["model"].parameters())
    comm.barrier()
    while kept["step"] < 40:
        kept["model"](torch.ones(8, 100)).sum().backward()
        for p in kept["model"].parameters():
            ring_all_reduce(comm, p.grad)
        kept["optimizer"].step()
        kept["step"] += 1
        kept.setdefault((comm.world_size, "went on"), time.time())
        if comm.world_size == 4 and comm.rank == 2 and kept["step"] == KILLED:
            Path(os.environ["DIED"]).write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
    return kept[3, "went on"]


def ours():
    """Return the seconds from SIGKILL to the end of the survivors' next step."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DIED"] = f"{folder}/died"
        report = run_elastic(train, 4, restarts=0, quiet=True)
        died = float(Path(os.environ["DIED"]).read_text())
    return min(filter(None, report.results)) - died


def torchrun():
    """Return the seconds from SIGKILL to the end of the next step after the restart."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(SCRIPT)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node=4", "--max-restarts=1", str(script)]
        # Without it ranks meet in the store of the attempt before, and hang:
        # https://github.com/pytorch/pytorch/issues/135712
        own_store = os.environ | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        how = {"capture_output": True, "text": True, "check": True, "timeout": 60}
        done = subprocess.run(command, env=own_store, **how)
    died, again = (float(line.split()[1]) for line in done.stdout.splitlines())
    return again - died


def main():
    """Print the table."""
    ours()  # the process server starts with the first run
    kept, restarted = ([fn() for _ in range(TIMES)] for fn in (ours, torchrun))
    print("from SIGKILL of one of 4 ranks to the end of the next step, s")
    for name, times in (("run_elastic", kept), ("torchrun's restart", restarted)):
        middle, most = statistics.median(times), max(times)
        print(f"{name:20} median {middle:6.3f}   most {most:6.3f}")
    ratio = statistics.median(restarted) / statistics.median(kept)
    print(f"{ratio:.0f} times faster, survivors kept")


if __name__ == "__main__":
    main()
