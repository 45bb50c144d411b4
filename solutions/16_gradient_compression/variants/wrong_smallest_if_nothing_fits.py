"""Returns the smallest density that it tried where not even that fits."""

POINTS = 7.0
HINT = "What does your search return when no density passes"


def density_within(budget_bytes, steps, lengths, world_size):
    def sent(place):
        sizes = [(max(1, round(place / 10_000 * d)), d) for d in lengths]
        each = sum(k * (4 if d <= 2**16 else 6) for k, d in sizes)
        return steps * (world_size - 1) * each

    fits = [place for place in range(1, 10_001) if sent(place) <= budget_bytes]
    return max(fits, default=1) / 10_000
