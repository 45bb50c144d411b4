"""Keeps the new error before it looks for a NaN."""

POINTS = 6.0
HINT = "has changed an error"


class TopKHook:
    compress, decompress = staticmethod(compress), staticmethod(decompress)

    def __init__(self, density):
        self.density, self.errors = density, {}

    def __call__(self, comm, bucket):
        flat, parameters = bucket.buffer(), bucket.parameters()
        errors = [self.errors.get(p, torch.zeros(p.numel())) for p in parameters]
        whole = flat + torch.cat(errors)
        codes = ring_all_gather(comm, self.compress(whole, self.density))
        sent = [self.decompress(code, len(flat)) for code in codes]
        rest = (whole - sent[comm.rank]).split([p.numel() for p in parameters])
        self.errors.update(zip(parameters, rest))
        for rank, each in enumerate(sent):
            if not each.isfinite().all():
                raise ValueError(f"rank {rank}: its gradient has a NaN or an infinity")
        flat.copy_(sum(sent) / comm.world_size)
