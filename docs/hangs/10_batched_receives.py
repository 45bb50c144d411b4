# A pipeline with a skip connection: https://github.com/pytorch/PiPPy/issues/969
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, x = dist.get_rank(), torch.zeros(4)
if rank == 0:
    dist.recv(x, 1)  # stage 1's answer, before the skip to stage 2 is sent
    dist.send(x, 2)
elif rank == 1:
    dist.send(x, 2)
    dist.send(x, 0)
elif rank == 2:
    dist.recv(x, 0)
    dist.recv(x, 1)
