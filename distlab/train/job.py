"""Common parts of the training jobs of lessons 11, 12 and 14: settings, data, log.

    for step, text in job.batches(rank, world_size):
        ...                                            # forward, backward, step
        log.after(step, loss, norm)                    # every few steps, one line

A script made of such a job has an option for each setting.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist

from distlab.errors import InvalidArgument
from distlab.train.data import library_text, windows
from distlab.train.models import GPT

__all__ = ["Job", "Log"]

# FLOP/s of matrix products in bfloat16, without sparsity, from NVIDIA's data sheets.
# Of names that fit, the first one counts.
PEAK_FLOPS = {
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "B200": 2250e12,
    "A100": 312e12,
    "L40S": 362e12,
}


@dataclass(frozen=True)
class Job:
    """The settings of a job that trains a GPT on the source of Python's library."""

    layers: int = 4
    width: int = 64
    heads: int = 4
    sequence: int = 64  # bytes of a window
    batch: int = 32  # windows of a step, on all ranks together
    steps: int = 200
    lr: float = 3e-3  # learning rate after the warm-up
    warmup: int = 20  # steps in which the rate rises
    clip: float = 1.0  # the largest norm of the gradients
    bf16: bool = False  # matrix products in bfloat16; weights stay float32
    compile: bool = False  # torch.compile for each block
    every: int = 10  # steps from one line of the log to the next
    seed: int = 0
    peak_flops: float = 0.0  # of one device, for MFU; 0 looks it up

    @property
    def device(self) -> torch.device:
        """This rank's device: its GPU under NCCL, else the CPU."""
        if dist.get_backend() == "nccl":
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")

    def gpt(self) -> GPT:
        """Return the model, with the same values on every rank, still on the CPU."""
        torch.manual_seed(self.seed)
        sizes = {"width": self.width, "layers": self.layers, "heads": self.heads}
        gpt = GPT(**sizes, length=self.sequence)
        if self.compile:
            for block in gpt.blocks:
                block.forward = torch.compile(block.forward)
        return gpt

    def autocast(self) -> torch.autocast:
        """Return the context of forward passes: bfloat16 if `bf16` is set."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    def rate(self, step: int) -> float:
        """Return a step's learning rate: a line up, then half a cosine to a tenth."""
        decayed = max(0, step - self.warmup) / max(1, self.steps - self.warmup)
        risen = min(1.0, step / max(1, self.warmup))
        return self.lr * risen * (0.55 + 0.45 * math.cos(math.pi * decayed))

    def batches(
        self, share: int, shares: int, *, pieces: int = 1, done: int = 0
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield each step's number, from 1, and a share of its windows of the text.

        The order is drawn anew in each epoch, the same on every rank.
        pieces: equal parts into which a share will be cut. done: steps to leave out.

        Raises: InvalidArgument if the batch does not divide.
        """
        if self.batch % (shares * pieces):
            raise InvalidArgument(
                f"batch {self.batch} does not divide into {shares} equal shares of "
                f"{pieces} equal pieces: choose a multiple of {shares * pieces}."
            )
        text, draw = library_text(), torch.Generator()
        starts = torch.arange(0, len(text) - self.sequence, self.sequence)
        for step in range(done, self.steps):
            epoch, place = divmod(step, len(starts) // self.batch)
            draw.manual_seed(self.seed + epoch)
            order = starts[torch.randperm(len(starts), generator=draw)]
            chosen = order[place * self.batch :][: self.batch][share::shares]
            yield step + 1, windows(text, chosen, self.sequence).to(self.device)

    @property
    def flops_per_token(self) -> int:
        """Operations of forward and backward: 6 for each weight, and attention's.

        Source: Chowdhery et al., "PaLM" (2022), appendix B; tables are not multiplied.
        """
        weights = 12 * self.layers * self.width**2 + 256 * self.width
        return 6 * weights + 12 * self.layers * self.width * self.sequence


class Log:
    """A log, printed by rank 0 every few steps; between them no rank waits for a GPU.

    done: the number of steps done before. loss: that of the last line.
    """

    def __init__(self, job: Job, done: int = 0):
        self.job, self.loss = job, math.nan
        self._step, self._start = done, time.perf_counter()
        name = torch.cuda.get_device_name() if job.device.type == "cuda" else ""
        known = (flops for part, flops in PEAK_FLOPS.items() if part in name)
        self._peak = job.peak_flops or next(known, 0.0)

    def after(self, step: int, loss: torch.Tensor, norm: torch.Tensor) -> None:
        """Print the line of a step if it is due; every rank calls it after each step.

        loss: this rank's part of the batch's mean loss, which is the sum over ranks.
        norm: that of all gradients.
        """
        job = self.job
        if step % job.every and step != job.steps:
            return
        total = loss.detach().clone()
        dist.all_reduce(total)
        self.loss = total.item()  # waits until the device has done the step
        now = time.perf_counter()
        tokens = (step - self._step) * job.batch * job.sequence / (now - self._start)
        self._step, self._start = step, now
        peak = self._peak * dist.get_world_size()
        mfu = f"{tokens * job.flops_per_token / peak:.1%}" if peak else "n/a"
        if dist.get_rank() == 0:
            print(
                f"step {step:6}  loss {self.loss:.4f}  lr {job.rate(step):.2e}  "
                f"grad norm {norm:.3f}  {tokens:,.0f} tokens/s  MFU {mfu}",
                flush=True,
            )
