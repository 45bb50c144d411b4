# A rank skips a batch: https://github.com/NVIDIA-NeMo/Automodel/pull/2468
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 1))
valid = torch.zeros(1)
for step in range(5):
    batch = torch.rand(8, 10)
    if dist.get_rank() == 1 and step == 2:
        continue  # no valid sample in it
    model(batch).square().mean().backward()
    valid += len(batch)
dist.all_reduce(valid)
