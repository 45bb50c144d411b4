"""Answers that look nothing like the solution, and do what their exercise says."""

import sys
import types

import pytest

from distlab.calls.travel import Packed, pack
from distlab.grading import (
    AllReduceSums,
    BroadcastInRounds,
    ReduceScatterSums,
    SpeaksInOrder,
)

pytestmark = pytest.mark.timeout(120)

INDEX_OF_NUMPY = """
import numpy as np
import torch

class Lap:
    def __call__(self, c, cs, /):
        n, arrived, step = c.world_size, torch.zeros_like(cs[0]), 0
        while (k := step) < n - 1:
            out, into = (c.rank - k) % n, (c.rank - k - 1) % n
            c.sendrecv(cs[out], arrived, dst=(c.rank + 1) % n, src=(c.rank - 1) % n)
            torch.add(cs[into], arrived, out=cs[into])
            step += 1
        return np.int64((c.rank + 1) % n)

answer = Lap()
"""
INDEX_OF_TORCH = INDEX_OF_NUMPY.replace("np.int64(", "torch.tensor(")

CACHED = """
import functools
import torch

class Ring:
    def __init__(self, kind):
        self.kind = kind

    @functools.lru_cache(maxsize=None)
    def plan(self, n, r):
        return [((r - i) % n, (r - i - 1) % n) for i in range(n - 1)]

    @functools.cached_property
    def laps(self):
        return (0, torch.Tensor.add_), (1, torch.Tensor.copy_)

    def run(self, comm, tensor):
        n, r = comm.world_size, comm.rank
        parts = tensor.tensor_split(n)
        for first, take in self.laps:
            for out, into in self.plan(n, (r + first) % n):
                arrived = torch.empty_like(parts[into])
                to, of = (r + 1) % n, (r - 1) % n
                requests = comm.irecv(arrived, of), comm.isend(parts[out], to)
                [request.wait() for request in requests]
                take(parts[into], arrived)
        return self

answer = Ring("left").run
"""

RECURSIVE = """
import functools

@functools.cache
def depth(n):
    return 0 if n < 2 else 1 + depth((n + 1) // 2)

def answer(*args, **more):
    comm, tensor, *_ = args
    for step in range(depth(comm.world_size)):
        half = comm.world_size >> step + 1
        if comm.rank % (2 * half) == 0:
            comm.send(tensor, comm.rank + half)
        elif comm.rank % half == 0:
            comm.recv(tensor, comm.rank - half)
"""

ASYNCHRONOUS = """
import asyncio
import contextlib

@contextlib.asynccontextmanager
async def turn(comm):
    if comm.rank:
        comm.recv_object(comm.rank - 1)
    yield
    if comm.rank + 1 < comm.world_size:
        comm.send_object({"größe": 1}, comm.rank + 1)

async def main(comm, speak):
    async with turn(comm):
        speak()

def answer(grade_, cases):
    print("my turn" * 1000)
    return asyncio.run(main(grade_, cases))
"""

RIGHT = {
    "an index of numpy": (INDEX_OF_NUMPY, lambda fn: ReduceScatterSums(fn, 4, 8)),
    "an index of torch": (INDEX_OF_TORCH, lambda fn: ReduceScatterSums(fn, 2, 6)),
    "cached methods": (CACHED, lambda fn: AllReduceSums(fn, 3, 10)),
    "a cached recursion": (RECURSIVE, lambda fn: BroadcastInRounds(fn, 8)),
    "a coroutine": (ASYNCHRONOUS, lambda fn: SpeaksInOrder(fn, 3)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_an_unusual_answer_is_right(name, monkeypatch):
    source, check = RIGHT[name]
    notebook = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    exec(source, vars(notebook))
    verdict = check(Packed(pack(notebook.answer), "answer")).judge()
    assert verdict.outcome == "pass", verdict
