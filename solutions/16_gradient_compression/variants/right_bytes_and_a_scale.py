"""Elements as 8-bit whole numbers times a scale, and errors of all buckets by place."""

POINTS = 10.0
HINT = ""


def average(comm, gradient, density):
    flat = gradient.reshape(-1).clone()
    total = torch.zeros_like(flat)
    for code in ring_all_gather(comm, compress(flat, density)):
        indices, elements = from_bytes(code, torch.int32, torch.float32)
        total.index_add_(0, indices, elements / comm.world_size)
    gradient[...] = total.reshape(gradient.shape)


def compress(flat, density):
    order = torch.sort(flat.abs(), descending=True).indices
    indices = order[: max(1, round(density * len(flat)))]
    return to_bytes(indices.to(torch.int32), flat[indices])


class TopKHook:
    def __init__(self, density):
        self.density = density
        self.error_of = {}

    def __call__(self, comm, bucket):
        flat, counts = bucket.buffer(), [p.numel() for p in bucket.parameters()]
        zeros = [torch.zeros(count) for count in counts]
        pairs = zip(bucket.parameters(), zeros, strict=True)
        error = torch.cat([self.error_of.get(p, zero) for p, zero in pairs])
        code = self.shorten(flat + error)
        if not flat.isfinite().all():
            code = torch.full_like(code, 255)  # a NaN in each of its elements
        total = torch.zeros_like(flat)
        for rank, each in enumerate(ring_all_gather(comm, code)):
            indices, elements = self.lengthen(each, len(flat))
            if elements.isnan().any():
                raise ValueError(f"the gradient of rank {rank} is not finite")
            total[indices] += elements
            if rank == comm.rank:
                error += flat
                error[indices] -= elements
        flat[:] = total / comm.world_size
        pairs = zip(bucket.parameters(), error.split(counts), strict=True)
        self.error_of |= dict(pairs)

    def shorten(self, flat):
        return compress(flat, self.density)

    def lengthen(self, code, count):
        indices, elements = from_bytes(code, torch.int32, torch.float32)
        return indices.long(), elements


class SmallHook(TopKHook):
    def shorten(self, flat):
        k = max(1, round(self.density * len(flat)))
        indices = flat.abs().topk(k).indices
        scale = flat[indices].abs().max().view(1) / 127 + 1e-30
        wide = torch.int32 if len(flat) > 65_536 else torch.int16
        small = (flat[indices] / scale).round().to(torch.int8)
        return torch.cat([to_bytes(indices.to(wide), small), to_bytes(scale)])

    def lengthen(self, code, count):
        scale = from_bytes(code[-4:], torch.float32)[0]
        if count > 65_536:
            indices, small = from_bytes(code[:-4], torch.int32, torch.int8)
        else:
            indices, small = from_bytes(code[:-4], torch.int16, torch.int8)
        return indices.long() % 65_536 if count <= 65_536 else indices, small * scale


def density_within(budget_bytes, steps, lengths, world_size):
    def sent(density):
        codes = [
            max(1, round(density * d)) * (5 if d > 65_536 else 3) + 4 for d in lengths
        ]
        return steps * (world_size - 1) * sum(codes)

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if sent(middle) > budget_bytes else (middle, high)
    return low or None
