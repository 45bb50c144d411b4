"""Writes f as a hook and g as a detour, splits by tensor_split, sums by other rings."""

from distlab.collectives import bruck_all_gather, pairwise_reduce_scatter

POINTS = 10.0
HINT = ""


def summed(comm, tensor):
    return gathered(comm, padded_piece(comm, tensor))[: tensor.numel()].view_as(tensor)


def padded_piece(comm, tensor):
    n, flat = comm.world_size, tensor.detach().flatten()
    return pairwise_reduce_scatter(comm, nn.functional.pad(flat, (0, -len(flat) % n)))


def gathered(comm, piece):
    return torch.cat(bruck_all_gather(comm, piece.contiguous()))


def copied(comm, x):
    x = x.view_as(x)
    x.register_hook(lambda gradient: summed(comm, gradient))
    return x


def share(count, n, rank):
    mine = torch.arange(count).tensor_split(n)[rank].tolist()
    return slice(mine[0], mine[-1] + 1) if mine else slice(0, 0)


def parallel_mlp(comm, shard, x):
    hidden = gelu(copied(comm, x) @ shard["up.weight"].T + shard["up.bias"])
    partial = hidden @ shard["down.weight"].T
    return partial + (summed(comm, partial) - partial.detach()) + shard["down.bias"]


def parallel_grouped(comm, shard, x, d, kv_heads):
    copies = max(1, comm.world_size // kv_heads)
    k_and_v = torch.cat([shard["k.weight"], shard["v.weight"]])
    k_and_v = copied(comm.split(comm.rank // copies), k_and_v)
    x = copied(comm, x)
    k, v = (x @ k_and_v.T).chunk(2, 1)
    made = []
    for head, q in enumerate((x @ shard["q.weight"].T).split(d, 1)):
        at = head * (k.shape[1] // d) // (len(shard["q.weight"]) // d) * d
        scores = q @ k[:, at : at + d].T / d**0.5
        made.append(torch.softmax(scores, 1) @ v[:, at : at + d])
    partial = torch.cat(made, 1) @ shard["out.weight"].T
    return partial + (summed(comm, partial) - partial.detach())
