"""`distlab launch --cpu`: scripts for CUDA and NCCL, and their hangs, on a CPU."""

import pytest
from soaks import nightly

from distlab.launch import script
from distlab.launch.script import Script, launch_script

INIT = """
import os, sys, threading, torch, torch.nn as nn, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
local = int(os.environ["LOCAL_RANK"]); device = torch.device(f"cuda:{local}")
torch.cuda.set_device(local); assert torch.cuda.current_device() == local
assert torch.cuda.is_available() and torch.cuda.device_count() == 2
odd = lambda step: local == 1 and step == 2 and sys.argv[1:] == ["odd"]
def layers(*n): return nn.Sequential(*[nn.Linear(*ab) for ab in zip(n, n[1:])])
dist.init_process_group("nccl", device_id=device)
"""
DDP_AMP = (
    INIT
    + """
model = torch.compile(layers(8, 16, 4).to(local))
model = DDP(model, device_ids=[local], output_device=local)
opt = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,)))
how = {"sampler": DistributedSampler(data), "pin_memory": True}
loader = DataLoader(data, 8, num_workers=1, **how)
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)); start.record()
for step, (x, y) in enumerate(loader):
    x, y = x.to(device, non_blocking=True), y.cuda(local, non_blocking=True)
    if odd(step): continue
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
end.record(); torch.cuda.synchronize(); assert start.elapsed_time(end) > 0
if local == 0: torch.save(model.state_dict(), sys.argv[0] + ".pt")
dist.barrier(device_ids=[local])
kept = torch.load(sys.argv[0] + ".pt", map_location={"cuda:0": f"cuda:{local}"})
model.load_state_dict(kept); dist.barrier()
"""
)
FSDP2 = (
    INIT
    + """
from torch.distributed.fsdp import fully_shard
mesh = init_device_mesh("cuda", (2,), mesh_dim_names=("dp",))
with torch.device("meta"): model = layers(8, 16, 4)
for layer in model: fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh).to_empty(device="cuda")
opt = torch.optim.SGD(model.parameters(), 0.1)
for step in range(4):
    if odd(step): continue
    model(torch.ones(2, 8, device=device)).sum().backward()
    opt.step(); opt.zero_grad()
dist.barrier()
"""
)
TENSOR_PARALLEL = (
    INIT
    + """
import torch.distributed.tensor.parallel as tp
plan = {"0": tp.ColwiseParallel(), "1": tp.RowwiseParallel()}
mesh = init_device_mesh("cuda", (2,))
model = tp.parallelize_module(layers(8, 16, 4).cuda(), mesh, plan)
for step in range(4):
    if odd(step): continue
    model(torch.ones(2, 8, device="cuda")).sum().backward()
dist.barrier()
"""
)
TRAININGS = {  # a script, the call that hangs if one rank skips a step, and its line
    "DDP": (DDP_AMP, "called DDP's all_reduce(", "scaler.scale(loss).backward()"),
    "FSDP2": (FSDP2, "FSDP's all_gather_into_tensor(", "model(torch.ones"),
    "tensor parallel": (TENSOR_PARALLEL, "DTensor's all_reduce(", "model(torch.ones"),
}


@pytest.fixture
def on_cpu(tmp_path, capsys):
    """Run text with a CPU for two GPUs; return its failure in words, and its output."""

    def launch(text, *args, ranks=2):
        (tmp_path / "job.py").write_text(text)
        run = launch_script(Script(str(tmp_path / "job.py"), args), ranks, cpu=True)
        shown = capsys.readouterr()
        return f"{run.failure or ''}", shown.out + shown.err

    return launch


@pytest.mark.parametrize("how", ["even", "odd"])
@pytest.mark.parametrize("name", ["FSDP2", nightly("DDP"), nightly("tensor parallel")])
def test_a_training_for_gpus_runs_and_its_hang_is_named(on_cpu, name, how):
    text, called, line = TRAININGS[name]
    failure, shown = on_cpu(text, how)
    assert bool(failure) == (how == "odd"), failure + shown
    if how == "odd":
        assert called in failure and f": {line}" in failure, failure
    if name == "DDP":
        assert shown.count("--cpu: torch.compile is left out, it runs as written") == 1


PARTS = (
    INIT
    + """
torch.cuda.manual_seed_all(1); torch.backends.cuda.matmul.allow_tf32 = True
stream = torch.cuda.Stream(); stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream): b = torch.zeros(4, device=local) + 1
b.record_stream(stream); b = b.pin_memory().type("torch.cuda.FloatTensor")
with torch.device("cuda"), torch.cuda.device(local): b += torch.zeros(4)
with torch.cuda.amp.autocast(): assert layers(4, 4).cuda()(b).dtype == torch.float16
torch.cuda.nvtx.range_push("part"); torch.cuda.reset_peak_memory_stats(local)
assert torch.cuda.memory_allocated() < torch.cuda.mem_get_info()[1]
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
generator = torch.Generator(device="cuda").manual_seed(1)
assert torch.rand(2, device="cuda", generator=generator).shape == (2,)
dist.all_reduce(b, group=dist.new_group([0, 1], backend="nccl"))
dist.all_reduce(b, op=dist.ReduceOp.AVG); assert b.tolist() == [2.0] * 4
half = torch.empty(2, device="cuda")
dist.reduce_scatter_tensor(half, b * (local + 1), op=dist.ReduceOp.AVG)
assert half[0] == 3
made = lambda: print("on", torch.ones(2, device="cuda").device)
thread = threading.Thread(target=made)
thread.start(); thread.join()
print("is_cuda", b.is_cuda)
torch.cuda.cudart()
"""
)


SYNC_BATCH_NORM = (
    INIT
    + """
torch.manual_seed(1); whole = torch.randn(6, 3, 5); own = whole[:2], whole[2:]
alone = nn.BatchNorm1d(3); alone(whole).square().sum().backward()
norm = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3)).cuda()
out = DDP(norm, device_ids=[local])(own[local].cuda())
torch.testing.assert_close(out, alone(whole)[local * 2 : 2 + local * 4])
out.square().sum().backward()
grads = [each.grad * 2 for each in norm.parameters()]  # DDP averages
torch.testing.assert_close(grads, [each.grad for each in alone.parameters()])
alone.reset_running_stats(); alone(whole)
torch.testing.assert_close(dict(norm.named_buffers()), dict(alone.named_buffers()))
if local == 0: norm(own[0])
dist.barrier()
"""
)


def test_batches_are_normalized_over_ranks_and_a_lone_call_is_named(on_cpu):
    failure, _ = on_cpu(SYNC_BATCH_NORM)
    assert "rank 0 called all_reduce(float64[7], SUM), rank 1 called" in failure


def test_what_torch_cuda_does_and_what_has_no_stand_in(on_cpu):
    failure, shown = on_cpu(PARTS)
    assert shown.count("] on cpu") == 2
    assert (
        shown.count("--cpu: x.is_cuda is False, as x is on the CPU, job.py, line ") == 1
    )
    assert (
        "nothing in the place of torch.cuda's cudart, job.py, line 33: torch" in failure
    )


SPAWNED = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, world):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", sys.argv[1]
    device = torch.accelerator.current_accelerator()
    torch.accelerator.set_device_index(rank)
    backend = dist.get_default_backend_for_device(device)
    dist.init_process_group(backend, rank=rank, world_size=world)
    total = torch.ones(1).to(rank); dist.all_reduce(total); assert total == 2
    if rank: dist.barrier()
    dist.all_reduce(total.to(f"{device}:{rank}"))
if __name__ == "__main__":
    mp.spawn(work, args=(torch.accelerator.device_count(),), nprocs=2)
"""


@pytest.mark.nightly
def test_the_tutorials_ranks_have_two_gpus(on_cpu):
    failure, _ = on_cpu(SPAWNED, str(script._free_port()), ranks=1)
    assert (
        "rank 0 called all_reduce(float32[1], SUM), rank 1 called barrier()" in failure
    )
