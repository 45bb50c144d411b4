# Each rank decides alone to save: https://github.com/pytorch/pytorch/issues/77562
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = fully_shard(torch.nn.Linear(12, 12), mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
best = 1.0
for loss in (0.9, 0.8 if dist.get_rank() == 0 else 0.95):
    if loss < best:  # this rank's loss, not that of all
        best = loss
        get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    model(torch.rand(4, 12)).sum().backward()
