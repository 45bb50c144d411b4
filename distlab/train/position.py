"""Position in the data (`Samples`): the next samples, for any number of ranks.

epoch 0   [ 7 2 9 | 4 0 5 | 1 8 3 6 ...      a permutation by seed and epoch
                    ▲ position: after trained samples, not after prefetched ones
"""

from collections.abc import Iterator

import torch

__all__ = ["Samples"]


class Samples:
    """The order of all samples, and the position in it; the same on every rank.

    A position counts samples of global batches, so that another number of ranks can
    continue from it: each sample once per epoch.

    n: samples of the data set. batch_size: of the global batch, over all ranks; the
    last batch of an epoch may be smaller.
    """

    def __init__(self, n: int, batch_size: int, seed: int = 0, shuffle: bool = True):
        self.n, self.batch_size, self.seed, self.shuffle = n, batch_size, seed, shuffle
        self.epoch = self.position = 0

    def batch(self) -> torch.Tensor:
        """Return the indices of the present global batch."""
        return self._order()[self.position : self.position + self.batch_size]

    def advance(self) -> None:
        """Move to the next global batch; call it once the present one is trained."""
        self.position += self.batch_size
        if self.position >= self.n:
            self.epoch, self.position = self.epoch + 1, 0

    def rest_of_epoch(self, rank: int, world_size: int) -> Iterator[list]:
        """Yield this rank's share of each batch that is left; the position stays.

        For a DataLoader's `batch_sampler`. A share is a list of (index, seed): a data
        set that augments samples draws from a generator with that seed, since the
        random numbers of a loader's workers depend on their earlier samples. And pass
        the loader a `generator`: without one it draws a number from the global one
        whenever it begins, also when it begins again in the middle of an epoch.
        """
        order = self._order().tolist()
        for begin in range(self.position, self.n, self.batch_size):
            batch = order[begin : begin + self.batch_size]
            mine = batch[rank::world_size]
            yield [(i, hash((self.seed, self.epoch, i)) & 0x7FFFFFFF) for i in mine]

    def _order(self):
        if not self.shuffle:
            return torch.arange(self.n)
        draw = torch.Generator().manual_seed(hash((self.seed, self.epoch)) & 0x7FFFFFFF)
        return torch.randperm(self.n, generator=draw)

    def state_dict(self) -> dict[str, int]:
        """Return the position, as plain numbers."""
        return {"epoch": self.epoch, "position": self.position, "seed": self.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Load a position."""
        for name in ("epoch", "position", "seed"):
            setattr(self, name, state[name])
