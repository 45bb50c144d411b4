"""Sums over the copies after an all-gather of the gradients of all ranks."""

from distlab.collectives import ring_all_gather

POINTS = 7.0
HINT = "a sum over ranks that"


class SumOfCopies(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, copies, tensor):
        ctx.comm, ctx.copies = comm, copies
        return tensor

    @staticmethod
    def backward(ctx, gradient):
        terms = ring_all_gather(ctx.comm, gradient.contiguous())
        first = ctx.comm.rank // ctx.copies * ctx.copies
        return None, None, sum(terms[first : first + ctx.copies])


REPLACE = {
    "CopyToRanks.apply(sharing, shard[": "SumOfCopies.apply(comm, copies, shard[",
}
