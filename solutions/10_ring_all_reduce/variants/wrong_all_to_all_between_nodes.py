"""Sends a whole chunk to every other node: as good for two nodes, not for three."""

POINTS = 7.0
HINT = "Either too much leaves a node"
REPLACE = {
    "all_reduce(comm, chunks[complete], peers)": (
        "own, m = chunks[complete].clone(), len(peers)\n"
        "    for far in range(1, m):\n"
        "        at, other = peers.index(comm.rank), torch.empty_like(own)\n"
        "        to, of = peers[(at + far) % m], peers[(at - far) % m]\n"
        "        chunks[complete].add_(comm.sendrecv(own, other, dst=to, src=of))"
    ),
}
