# Gradients averaged by hand, where there are any: https://github.com/OpenTSLM/OpenTSLM/pull/49
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
trunk, audio, text = (torch.nn.Linear(4, width) for width in (4, 2, 3))
head = audio if dist.get_rank() == 0 else text  # what the batch has
head(trunk(torch.rand(8, 4))).sum().backward()
for module in (trunk, audio, text):
    for parameter in module.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
