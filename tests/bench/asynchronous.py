"""A parameter server beside a synchronous all-reduce, with one slow worker of four.

    python tests/bench/asynchronous.py [seconds]

Samples per second that ended up in the parameters, "asynchronous / all-reduce": on real
processes, where rank 4's processor is slowed four times, and on the virtual clock. Then
how long 10,000 updates of 256 simulated workers take, with the age of each gradient.
"""

import random
import sys
import time

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from distlab import Slow, run
from distlab.links import LINKS
from distlab.simulated import Uniform
from distlab.train.asynchronous import Asynchronous, Worker, gradients_of, serve
from distlab.train.data_parallel import OverlappedDataParallel
from distlab.train.models import GPT

SAMPLES, STEP_S, FABRIC = 8, 0.1, Uniform(LINKS["Ethernet 25G TCP"])


def sgd(parameters):
    """Return the server's optimizer."""
    return torch.optim.SGD(parameters, lr=0.01)


def gpt():
    """Return a model of 0.3 MB, and a function that leaves a batch's gradients."""
    torch.manual_seed(0)
    model = GPT(width=64, layers=2, heads=4, length=64)
    text = torch.randint(256, (SAMPLES, 65))
    return model, lambda loss_of: loss_of(text).backward()


class Loss(torch.nn.Module):
    """A model's loss as its output, as DDP needs it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, text):
        """Return the loss."""
        return self.model.loss(text)


def all_reduced(comm, seconds):
    """Train for so long; return this rank's steps per second."""
    model, backward = gpt()
    parallel = OverlappedDataParallel(comm, Loss(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps, over, began = 0, torch.zeros(1), time.monotonic()
    while not over.item():
        model.zero_grad()
        backward(parallel)
        parallel.average_gradients()
        optimizer.step()
        steps += 1
        if comm.rank == 0:
            over.fill_(time.monotonic() - began > seconds)
        torch.distributed.broadcast(over, 0)
    return steps / (time.monotonic() - began)


def served(comm, updates):
    """Train for so many updates; return how many a second there were."""
    model, backward = gpt()
    parameters = list(model.parameters())
    flat, began = parameters_to_vector(parameters).detach(), time.monotonic()
    if comm.rank == 0:
        serve(comm, Asynchronous(flat, sgd), updates)
        return updates / (time.monotonic() - began)
    worker = Worker(comm, flat)
    while (values := worker.pull()) is not None:
        vector_to_parameters(values, parameters)
        model.zero_grad()
        backward(model.loss)
        worker.push(torch.cat([p.grad.view(-1) for p in parameters]))
    return None


def on_processes(seconds):
    """Return samples per second of both ways."""
    report = run(all_reduced, 4, args=(seconds,), faults=Slow(3, 4))
    steps = report.results[0]
    updates = run(served, 5, args=(int(seconds * steps * 8),), faults=Slow(4, 4))
    return SAMPLES * 4 * steps, SAMPLES * updates.results[0]


def timed(comm, updates, slow):
    """Exchange parameters with a server; `slow` ranks take 4 times as long."""
    if comm.rank == 0:
        serve(comm, Asynchronous(torch.zeros(8), sgd), updates)
        return
    worker, draw = Worker(comm, torch.zeros(8)), random.Random(comm.rank)
    usual = STEP_S * (4 if comm.rank in slow else 1)
    while (values := worker.pull()) is not None:
        with comm.work("gradient", seconds=usual * draw.uniform(0.8, 1.2)):
            pass
        worker.push(values)


def on_the_clock():
    """Return gradients per second with a server, and with a step for the slowest."""
    report = run(timed, 5, args=(400, {4}), fabric=FABRIC)
    return 4 / (4 * STEP_S), 400 / report.trace.of(0, "mark")[-1].end


def main(seconds=8.0):
    """Print the table."""
    waiting, not_waiting = on_processes(seconds)
    print(f"{'on':28} {'all-reduce':>11} {'server':>9} {'ratio':>6}   samples/s")
    print(
        f"{'4 workers, two cores':28} {waiting:11.1f} {not_waiting:9.1f} "
        f"{not_waiting / waiting:6.2f}"
    )
    waiting, not_waiting = on_the_clock()
    print(
        f"{'4 workers, virtual clock':28} {waiting:11.1f} {not_waiting:9.1f} "
        f"{not_waiting / waiting:6.2f}"
    )
    start, busy = time.perf_counter(), time.process_time()
    slow = range(1, 257, 16)
    report = run(timed, 257, args=(10_000, slow), fabric=FABRIC)
    ages = [gradient.age for gradient in gradients_of(report.trace)]
    took, busy = time.perf_counter() - start, time.process_time() - busy
    print(
        f"256 workers, 10,000 updates: {took:.1f} s, {busy:.1f} s of processor time; "
        f"ages up to {max(ages)}, mean {sum(ages) / len(ages):.0f}"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
