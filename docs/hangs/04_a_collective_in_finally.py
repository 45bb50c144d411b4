# An exception, and a collective in `finally`: https://github.com/pytorch/torchtitan/pull/1342
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
try:
    for step in range(6):
        if rank == 1 and step == 3:
            raise ValueError("bad sample 17 in shard 1")
        dist.all_reduce(torch.ones(4))
finally:
    dist.barrier()
    dist.destroy_process_group()
