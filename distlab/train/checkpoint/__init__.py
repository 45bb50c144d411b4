"""Checkpoints: training that continues after a failure from the last complete save.

    checkpoints = Checkpoints(comm, "run-7", keep_last=2, background=True)
    state = {"model": model, "optimizer": optimizer, "samples": samples}
    mine = {"random": RandomState()}
    checkpoints.load(state, mine)          # the newest complete save, if there is one
    ...
        if step % 100 == 0 or preemption.asked(comm):
            checkpoints.save(step, state, mine)

A save is a two-phase commit. Every rank writes its file, forces it to the disk, and
votes; with all votes in, rank 0 writes the manifest. Without a manifest a save does not
count, so that it is atomic, at whatever time a rank dies.
"""

from distlab.train.checkpoint.checkpoints import Checkpoints
from distlab.train.checkpoint.peers import PeerMemory
from distlab.train.checkpoint.preemption import Preemption
from distlab.train.checkpoint.random_state import RandomState
from distlab.train.checkpoint.sharded import load_sharded, save_full, save_sharded

__all__ = [
    "Checkpoints",
    "PeerMemory",
    "Preemption",
    "RandomState",
    "load_sharded",
    "save_full",
    "save_sharded",
]
