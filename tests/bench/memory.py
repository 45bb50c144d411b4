"""What a world takes: PSS of the whole process tree, and of one more rank.

    python tests/bench/memory.py

PSS counts a page that k processes share as one k-th for each of them. The peer is the
same world made by torch.multiprocessing.spawn.
"""

import psutil
import torch
import torch.multiprocessing as mp

from distlab import World

MB = 10**6


def tree_pss():
    """Return the PSS of this process and all its children, in bytes."""
    me = psutil.Process()
    return sum(
        process.memory_full_info().pss for process in [me, *me.children(recursive=True)]
    )


def with_world(world_size):
    """Return the PSS of everything while a world of this size has done some work."""
    with World(world_size) as world:
        world.run(lambda comm: torch.ones(1000).sum().item())
        return tree_pss()


def spawned_rank(rank, ready, done):
    """Do the same little work in a spawned process, and stay until told."""
    torch.ones(1000).sum().item()
    ready.release()
    done.wait()


def with_spawn(world_size):
    """Return the PSS of everything with as many spawned processes."""
    context = mp.get_context("spawn")
    ready, done = context.Semaphore(0), context.Event()
    ranks = mp.spawn(spawned_rank, (ready, done), nprocs=world_size, join=False)
    for _ in range(world_size):
        ready.acquire()
    taken = tree_pss()
    done.set()
    ranks.join()
    return taken


def main():
    """Print the table."""
    four, eight = with_world(4), with_world(8)
    spawned = with_spawn(4)
    print(f"World(4), with kernel and process server     {four / MB:8.0f} MB")
    print(f"World(8), the same                           {eight / MB:8.0f} MB")
    more = (eight - four) / 4
    print(f"one more rank                                {more / MB:8.0f} MB")
    print(f"four ranks by torch.multiprocessing.spawn    {spawned / MB:8.0f} MB")
    print(f"spawn / World(4)                             {spawned / four:8.2f}")


if __name__ == "__main__":
    main()
