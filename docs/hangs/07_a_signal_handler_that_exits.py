# SIGTERM to one rank, whose handler exits: https://github.com/ai2cm/ace/pull/1068
import os, signal, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
for step in range(200):
    dist.all_reduce(torch.ones(4))
    if step == 20 and dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGTERM)  # the scheduler preempts this node
