# Rank 0 cannot write, the others wait: https://github.com/ai-dynamo/aiconfigurator/pull/1542
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
try:
    if dist.get_rank() == 0:
        open("/no/such/folder/results.csv", "w")
    dist.barrier()
except OSError:
    sys.exit("rank 0 could not write; going on without results")
dist.all_reduce(torch.ones(1))
