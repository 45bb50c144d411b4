"""Ring attention: memory per rank and time, beside the same code on one rank.

    python tests/bench/context_parallel.py

Memory is the peak, through forward and backward, of the bytes that torch's allocator
has given out since q, k and v were made, these included: tensors, gradients, buffers
and what operations use inside. It is added up from the profiler's records. Beside it
stands by how much the process grew, from /proc (Linux), after it has attended once to
a few tokens: what libraries take for themselves is not counted.
"""

import time

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

from distlab import run
from distlab.train.context_parallel import contiguous, ring_attention, zigzag

LENGTH, HEADS, HEAD_DIM = 8192, 8, 64
MIB = 2**20


def shards(comm, length=LENGTH):
    """Return q, k and v of this rank, and the gradient of what attention returns."""
    torch.set_num_threads(1)  # as each of four ranks has
    torch.manual_seed(comm.rank)
    shape = (1, HEADS, length // comm.world_size, HEAD_DIM)
    return [torch.randn(shape, requires_grad=each < 3) for each in range(4)]


def by_torch(comm, q, k, v, layout):
    """Return torch's attention, on one rank."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def blockwise(comm, q, k, v, layout):
    """Return ours."""
    return ring_attention(comm, q, k, v, layout=layout)


def process_bytes(name):
    """Return a number of /proc/self/status in bytes, such as VmHWM, the peak."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return int(line.split()[1]) * 1024


def peak(comm, attend, layout):
    """Return the peak by the allocator, and by the process."""
    *few, d_few = shards(comm, 1024)
    attend(comm, *few, layout).backward(d_few)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak counts from here
    before = process_bytes("VmRSS")
    q, k, v, d_output = given = shards(comm)
    attend(comm, q, k, v, layout).backward(d_output)
    grown = process_bytes("VmHWM") - before
    q.grad = k.grad = v.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        attend(comm, q, k, v, layout).backward(d_output)
    records = seen.profiler.kineto_results.events()
    records = sorted(
        (each.start_ns(), each.nbytes()) for each in records if each.nbytes()
    )
    held = most = sum(each.nbytes for each in given)
    for _, change in records:
        held += change
        most = max(most, held)
    return most, grown


def timed(comm, attend, layout):
    """Return seconds of processor time and by the clock, forward and backward."""
    q, k, v, d_output = shards(comm)
    comm.barrier()
    start = time.process_time(), time.perf_counter()
    attend(comm, q, k, v, layout).backward(d_output)
    used = time.process_time() - start[0]
    comm.barrier()
    return used, time.perf_counter() - start[1]


def main():
    """Print the table."""
    print(f"{LENGTH} tokens, {HEADS} heads of {HEAD_DIM}, causal, float32; the most of")
    print("any rank; processor time of each rank, by the clock on these cores")
    print(f"{'':28}{'tensors':>11}{'ratio':>7}{'process':>11}{'clock':>9}  processor")
    one, how = None, {"quiet": True, "timeout_s": 600}
    for name, n, attend, layout in (
        ("torch, 1 rank", 1, by_torch, zigzag),
        ("blockwise, 1 rank", 1, blockwise, zigzag),
        ("ring, 4 ranks, zigzag", 4, blockwise, zigzag),
        ("ring, 4 ranks, contiguous", 4, blockwise, contiguous),
    ):
        times = run(timed, n, args=(attend, layout), **how).results
        peaks = run(peak, n, args=(attend, layout), **how).results
        tensors, process = (max(each) for each in zip(*peaks, strict=True))
        one = tensors if name.startswith("blockwise") else one
        ratio = f"{tensors / one:.2f}" if one else ""
        used = " ".join(f"{each:.1f}" for each, _ in times)
        clock = max(each for _, each in times)
        print(
            f"{name:28}{tensors / MIB:7.1f} MiB{ratio:>7}{process / MIB:7.1f} MiB"
            f"{clock:7.1f} s  {used} s"
        )


if __name__ == "__main__":
    main()
