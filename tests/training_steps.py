"""A few steps of every kind of training from scratch, and of torch's own."""

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from distlab.train.data_parallel import OverlappedDataParallel
from distlab.train.fsdp import FullySharded
from distlab.train.models import GPT, Block
from distlab.train.zero import ZeroOptimizer

__all__ = ["ALL", "KINDS", "small_gpt", "trained"]


def small_gpt(device, dtype=torch.float64):
    torch.manual_seed(0)
    return GPT(width=16, layers=3, heads=2, length=12).to(device, dtype)


def overlapped(comm, gpt):
    model = OverlappedDataParallel(comm, gpt, first_bytes=999, bucket_bytes=9999)
    optimizer = torch.optim.AdamW(gpt.parameters(), 0.01)

    def step(text):
        optimizer.zero_grad()
        gpt.loss(text).backward()
        model.average_gradients()
        optimizer.step()

    return step, list(gpt.parameters())


def zero(stage):
    def made(comm, gpt):
        optimizer = ZeroOptimizer(
            comm, gpt, lambda p: torch.optim.AdamW(p, 0.01), stage=stage
        )

        def step(text):
            gpt.loss(text).backward()
            optimizer.step()

        return step, list(gpt.parameters())

    return made


def fully_sharded(comm, gpt):
    sharded = FullySharded(comm, gpt, Block)
    optimizer = torch.optim.AdamW(sharded.shards, 0.01)

    def step(text):
        optimizer.zero_grad()
        gpt.loss(text).backward()
        optimizer.step()

    return step, sharded.shards


def recomputed(comm, gpt):
    for place, block in enumerate(gpt.blocks):
        gpt.blocks[place] = checkpoint_wrapper(nn.Sequential(block, nn.Dropout(0.0)))
    return overlapped(comm, gpt)


KINDS = {"overlapped": overlapped, "recomputed": recomputed, "sharded": fully_sharded}
KINDS |= {"ZeRO 1": zero(1), "ZeRO 2": zero(2)}


def with_ddp(comm, gpt):
    model = DistributedDataParallel(gpt, bucket_cap_mb=0.02)
    optimizer = torch.optim.AdamW(gpt.parameters(), 0.01)

    def step(text):
        optimizer.zero_grad()
        logits = model(text[:, :-1]).flatten(0, 1)
        nn.functional.cross_entropy(logits, text[:, 1:].flatten()).backward()
        optimizer.step()

    return step, list(gpt.parameters())


def with_fsdp(comm, gpt):
    mesh = init_device_mesh(comm.device.type, (comm.world_size,))
    for module in (*gpt.blocks, gpt):
        fully_shard(module, mesh=mesh)
    optimizer = torch.optim.AdamW(gpt.parameters(), 0.01)

    def step(text):
        optimizer.zero_grad()
        gpt.loss(text).backward()
        optimizer.step()

    return step, [parameter.to_local() for parameter in gpt.parameters()]


ALL = {**KINDS, "DDP": with_ddp, "FSDP2": with_fsdp}


def trained(comm, kind, steps):
    step, tensors = ALL[kind](comm, small_gpt(comm.device))
    draw = torch.Generator().manual_seed(comm.rank)
    for _ in range(steps):
        text = torch.randint(0, 256, (3, 13), generator=draw)
        step(text.to(comm.device))
    return [tensor.detach().cpu() for tensor in tensors]
