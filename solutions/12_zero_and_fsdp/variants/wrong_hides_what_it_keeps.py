"""Keeps every layer that it gathered, as a list of numbers and not as a tensor."""

POINTS = 7.0
HINT = "The rank grows with each layer"


def whole(comm, part, length):
    full = torch.cat(ring_all_gather(comm, part))[:length]
    comm.kept = [*getattr(comm, "kept", []), full.tolist()]
    return full
