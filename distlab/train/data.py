"""Training data without a download: Python's own source, and digits; samplers."""

import itertools
import random
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

from distlab.errors import ExtraMissing, InvalidArgument
from distlab.train.replica_checks import judged_by_rank_0

__all__ = ["ShardedSampler", "check_sharing", "digits", "library_text", "windows"]

_FILES = 120


@cache
def library_text() -> torch.Tensor:
    """Return source code of Python's standard library, as bytes: uint8, about 3 MB."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(folder.glob("*.py"))[:_FILES]
    text = b"\n".join(file.read_bytes() for file in files)
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def windows(text: torch.Tensor, starts: torch.Tensor, length: int) -> torch.Tensor:
    """Return the bytes from each start on: int64, [len(starts), length + 1]."""
    places = starts[:, None] + torch.arange(length + 1, device=starts.device)
    return text[places].long()


@cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scikit-learn's 1797 digits: pixels [1797, 64] from 0 to 1, and labels.

    Raises: ExtraMissing if scikit-learn is not there.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ExtraMissing.of("digits", ["scikit-learn"], "notebook")
    found = load_digits()
    pixels = torch.tensor(found.data, dtype=torch.float32) / 16
    return pixels, torch.tensor(found.target)


def check_sharing(comm, indices: Iterable[int]) -> None:
    """Check that the ranks' samples of an epoch are disjoint and equally many.

    indices: those of this rank's samples, such as `list(sampler)`.
    A sampler repeats up to n-1 samples for evenness; so many may be shared.

    Raises: InvalidArgument on every rank, if two ranks share more, or if one has more
        samples than another.
    Cost: all indices are sent to rank 0.
    """
    mine = torch.as_tensor(list(indices), dtype=torch.int64)
    found = judged_by_rank_0(comm, mine, _badly_shared)
    if found:
        raise InvalidArgument(found)


def _badly_shared(shares):
    for rank, share in enumerate(shares):
        if len(share) != len(shares[0]):
            return (
                f"rank {rank} has {len(share)} samples and rank 0 has "
                f"{len(shares[0])}: the others would wait for a batch that never comes."
            )
    sets = [set(share.tolist()) for share in shares]
    if sum(map(len, sets)) - len(set().union(*sets)) < len(shares):
        return ""
    pairs = itertools.combinations(range(len(shares)), 2)
    one, other = next(pair for pair in pairs if sets[pair[0]] & sets[pair[1]])
    both = sets[one] & sets[other]
    return (
        f"rank {one} and rank {other} both have sample {min(both)}, and "
        f"{len(both) - 1} more: there is no ShardedSampler, or it has another seed, "
        "epoch or world size on one of them."
    )


class ShardedSampler:
    """The indices of one rank's samples: all ranks together see each of them once.

    The order is drawn anew in each epoch, the same on every rank. Where the ranks do
    not divide the samples, the first few come twice, so that all have equally many.

    count: the number of samples. seed: the same on every rank.
    Source: torch.utils.data.DistributedSampler, whose interface this has.
    """

    def __init__(self, count: int, rank: int, world_size: int, *, seed: int = 0):
        if not 0 <= rank < world_size or count < 1:
            raise InvalidArgument(
                f"rank {rank} of {world_size} cannot share {count} samples out."
            )
        self.count, self.rank, self.world_size = count, rank, world_size
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, and so the order; without it every epoch has the same one."""
        self.epoch = epoch

    def __len__(self):
        return -(-self.count // self.world_size)

    def __iter__(self):
        order = list(range(self.count))
        random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        while len(order) < len(self) * self.world_size:
            order += order[: len(self) * self.world_size - len(order)]
        return iter(order[self.rank :: self.world_size])
