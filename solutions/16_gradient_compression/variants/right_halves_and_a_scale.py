"""Elements as float16 times a scale, and an index as two or three bytes."""

POINTS = 10.0
HINT = ""


class SmallHook(TopKHook):
    def compress(self, flat, density):
        k = max(1, round(density * len(flat)))
        indices = flat.abs().argsort(descending=True)[:k]
        scale = flat[indices[:1]].abs().clamp(min=1e-35)
        halves = (flat[indices] / scale).half()
        digits = [(indices >> shift & 255).byte() for shift in (0, 8)]
        if len(flat) > 65_536:
            digits.append((indices >> 16).byte())
        return torch.cat([to_bytes(*digits, halves), to_bytes(scale)])

    def decompress(self, code, count):
        long = count > 65_536
        *digits, halves = from_bytes(code[:-4], *[torch.uint8] * (2 + long), torch.half)
        indices = sum(digit.long() << 8 * place for place, digit in enumerate(digits))
        flat = torch.zeros(count)
        flat[indices] = halves.float() * from_bytes(code[-4:], torch.float32)[0]
        return flat


def density_within(budget_bytes, steps, lengths, world_size):
    density = 1.0
    while density > 1e-4:
        codes = [(4 + (d > 65_536)) * max(1, round(density * d)) + 4 for d in lengths]
        if sum(codes) * steps * (world_size - 1) <= budget_bytes:
            return density
        density *= 0.99
    return None
