"""All-gathers whole gradients, and takes the largest of each afterwards."""

POINTS = 7.0
HINT = "one code of 8 bytes for each of k"


def average(comm, gradient, density):
    total = torch.zeros(gradient.numel())
    for flat in ring_all_gather(comm, gradient.flatten()):
        total += decompress(compress(flat, density), len(flat))
    gradient.copy_(total.view(gradient.shape) / comm.world_size)
