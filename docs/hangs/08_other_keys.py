# Metrics whose keys differ: https://github.com/Lightning-AI/pytorch-lightning/issues/19106
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
metrics = {"loss": torch.tensor(0.5)}
if rank != 2:  # no sample of this class on rank 2
    metrics["accuracy of class 3"] = torch.tensor(0.9)
for value in metrics.values():
    dist.all_reduce(value)
dist.broadcast(torch.zeros(100), src=0)
