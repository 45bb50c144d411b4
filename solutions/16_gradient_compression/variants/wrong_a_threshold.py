"""Sends whatever reaches the k-th largest magnitude, so all that tie."""

POINTS = 7.0
HINT = "A threshold lets all that equal it pass"


def average(comm, gradient, density):
    flat = gradient.flatten()
    least = flat.abs().topk(max(1, round(density * len(flat)))).values[-1]
    indices = (flat.abs() >= least).nonzero().flatten()
    code, total = to_bytes(indices.int(), flat[indices]), torch.zeros_like(flat)
    for each in ring_all_gather(comm, code):
        total += decompress(each, len(flat))
    gradient.copy_(total.view(gradient.shape) / comm.world_size)
