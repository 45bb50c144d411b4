"""A block cut by tensor parallelism beside torch's parallelize_module, step by step.

    python tests/bench/tensor_parallel.py

Both train the same `Block` on two ranks, in turn; theirs has the fused weight ordered
by ranks, so that each side sends two all-reduces each way.
"""

import time
from statistics import median

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import parallel
from torch.nn import functional

from distlab import run
from distlab.train.models import Block
from distlab.train.tensor_parallel import ParallelBlock

STEPS, RANKS = 20, 2


class LocalBlock(Block):
    """A `Block` that computes with the heads of one rank."""

    def forward(self, x):
        """Return x with what attention and network add to it."""
        size = x.shape[-1] // self.heads
        qkv = self.queries_keys_values(self.before_attention(x))
        q, k, v = qkv.unflatten(-1, (3, -1, size)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.after_attention(seen.transpose(1, 2).flatten(2))
        return x + self.network(self.before_network(x))


def both(comm, width, length):
    torch.manual_seed(0)
    mesh, columns = init_device_mesh("cpu", (RANKS,)), parallel.ColwiseParallel()
    plan = {"queries_keys_values": columns, "network.0": columns}
    rows = parallel.RowwiseParallel()
    plan |= {"after_attention": rows, "network.2": rows}
    theirs = parallel.parallelize_module(LocalBlock(width, 8), mesh, plan)
    ours = ParallelBlock(comm, Block(width, 8))
    pieces = ParallelBlock(comm, Block(width, 8), sequence=True)
    x = torch.rand(4, length, width, requires_grad=True)
    piece = x.detach().chunk(RANKS, 1)[comm.rank].clone().requires_grad_()
    steps = {
        "ours": lambda: ours(x).sum().backward(),
        "sequence": lambda: pieces(piece, length).sum().backward(),
        "torch": lambda: theirs(x).sum().backward(),
    }
    taken = {name: [] for name in steps}
    for _ in range(STEPS):
        for name, step in steps.items():
            comm.barrier()
            start = time.perf_counter()
            step()
            comm.barrier()
            taken[name].append(time.perf_counter() - start)
    return {name: median(each[3:]) for name, each in taken.items()}


def main():
    print(f"a block's forward and backward on {RANKS} ranks, 4 sequences, in ms")
    print(
        f"{'width':>6}{'length':>7}{'ours':>8}{'torch':>8}{'ratio':>7}{'sequence':>10}"
    )
    for width, length in ((64, 64), (256, 128), (512, 256)):
        found = run(both, RANKS, args=(width, length), quiet=True).results[0]
        ours, theirs, pieces = (1e3 * found[n] for n in ("ours", "torch", "sequence"))
        print(
            f"{width:6}{length:7}{ours:8.2f}{theirs:8.2f}{ours / theirs:7.2f}"
            f"{pieces:10.2f}"
        )


if __name__ == "__main__":
    main()
