# A rank has one batch fewer: https://github.com/facebookresearch/vggt/issues/285
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.rand(4 if dist.get_rank() == 1 else 5, 8, 10)
for batch in batches:
    model(batch).square().mean().backward()
    optimizer.step()
dist.barrier()
