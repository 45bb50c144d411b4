"""PowerSGD: a gradient matrix as the product of two thin ones, which a ring can add.

       m                r       m
    ┌─────┐            ┌─┐   ┌─────┐ r      P = M Q, summed over ranks, made orthonormal
    │  M  │ n    ≈   n │P│ × └─────┘        Q = Mᵀ P, averaged over ranks
    └─────┘            └─┘      Qᵀ          (n + m) r elements are sent, not n m

Both steps are linear in M, so the result is the mean of all ranks' products, by an
all-reduce. Each step begins with the Q of the step before: over many steps that is the
power iteration, which turns Q towards the largest singular vectors.

Source: Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient
compression for distributed optimization" (2019), algorithm 1.
"""

import functools
import operator

import numpy as np
import torch

from distlab.collectives import AVERAGE, SUM, ring_all_reduce
from distlab.cost import ring_all_reduce as cost_of_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.compression.compressor import Compressor, elements_of

__all__ = ["PowerSGD"]


class PowerSGD(Compressor):
    """A compressor of each gradient of two or more dimensions to a low-rank matrix.

    rank: r. A gradient that this does not make `least_ratio` times smaller is sent as
        it is, as every vector is.
    seed: of the first Q, drawn as in PyTorch's powerSGD_hook.
    """

    def __init__(self, rank: int = 1, *, least_ratio: float = 2.0, seed: int = 0):
        super().__init__(seed)
        if type(rank) is not int or rank < 1:
            raise InvalidArgument(f"a rank is 1 or more, and got {rank!r}.")
        self.rank, self.least_ratio = rank, least_ratio
        self._q = {}  # of each parameter: [m, r], the same on every rank
        self._draw = np.random.RandomState(seed)

    def average(self, comm, flat, parameters):
        """Return the mean over ranks, and this rank's decompressed part of it."""
        sent, mean = flat.clone(), torch.empty_like(flat)
        counts = [parameter.numel() for parameter in parameters]
        pieces = [each.split(counts) for each in (flat, sent, mean)]
        places = list(zip(parameters, *pieces, strict=True))
        low = [place for place in places if self.factors(place[0].shape)]
        plain = [place for place in places if not self.factors(place[0].shape)]
        low = _by_shape(low)
        matrices = [each.view(len(p), -1).float() for p, each, *_ in low]
        self._draw_missing([p for p, *_ in low], flat.device)
        qs = [torch.linalg.qr(self._q[p]).Q for p, *_ in low]

        products = [m @ q for m, q in zip(matrices, qs, strict=True)]
        *ps, summed = _all_reduced(comm, [*products, _joined(plain, flat)], SUM)
        ps = [torch.linalg.qr(p).Q for p in ps]
        own = [m.T @ p for m, p in zip(matrices, ps, strict=True)]
        qs = _all_reduced(comm, own, AVERAGE)

        for (parameter, _, out, whole), p, mine, q in zip(
            low, ps, own, qs, strict=True
        ):
            out.copy_((p @ mine.T).view(-1))
            whole.copy_((p @ q.T).view(-1))
            self._q[parameter] = q
        means = (summed / comm.world_size).split([len(place[1]) for place in plain])
        for place, values in zip(plain, means, strict=True):
            place[3].copy_(values)
        return mean, sent

    def nbytes(self, count: int) -> int:
        """Return the bytes of `count` elements that are sent as they are."""
        return 4 * count

    def cost(self, world_size, shapes):
        """Return the cost of `average`: of P with all uncompressed ones, and of Q.

        T = 4(n-1) alpha + 2(n-1)/n (bytes of P, Q and what is no matrix) beta
        """
        factors = [self.factors(torch.Size(shape)) for shape in shapes]
        whole = [s for s, low in zip(shapes, factors, strict=True) if not low]
        ps, qs = (sum(f[k] * f[2] for f in factors if f) for k in (0, 1))
        counts = [ps + elements_of(whole), qs]
        costs = [cost_of_all_reduce(world_size, 4 * c, itemsize=4) for c in counts if c]
        return functools.reduce(operator.add, costs)

    def factors(self, shape: torch.Size) -> tuple[int, int, int] | None:
        """Return (n, m, r) of a gradient's matrices, or None if it is sent as it is."""
        if len(shape) < 2:
            return None
        n, m = shape[0], shape[1:].numel()
        r = min(n, m, self.rank)
        return (n, m, r) if (n + m) * r * self.least_ratio < n * m else None

    def _draw_missing(self, parameters, device):
        missing = [p for p in parameters if p not in self._q]
        if missing:
            seed = self._draw.randint(1_000_000_000)
            generator = torch.Generator().manual_seed(seed)
        for parameter in missing:
            _, m, r = self.factors(parameter.shape)
            self._q[parameter] = torch.randn(m, r, generator=generator).to(device)


def _by_shape(places):
    """Return the tuples grouped by their parameter's shape, in first-seen order."""
    shapes = list(dict.fromkeys(place[0].shape for place in places))
    return sorted(places, key=lambda place: shapes.index(place[0].shape))


def _joined(places, like):
    return torch.cat(
        [like.new_empty(0).float(), *(each.float() for _, each, *_ in places)]
    )


def _all_reduced(comm, tensors, op):
    """Return the tensors after one all-reduce of all of them."""
    flat = torch.cat([each.reshape(-1) for each in tensors]) if tensors else None
    if flat is None or not len(flat):
        return tensors
    ring_all_reduce(comm, flat, op=op)
    pieces = flat.split([each.numel() for each in tensors])
    return [p.view(t.shape) for p, t in zip(pieces, tensors, strict=True)]
