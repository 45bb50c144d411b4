"""Takes the library's own pieces."""

from distlab.train.shards import all_gather_parts, mean_part

POINTS = 0.0
HINT = "distlab's own is not available here"
REPLACE = {
    "ring_reduce_scatter(self.comm, gradient, op=AVERAGE)": (
        "mean_part(self.comm, gradient)"
    ),
    "ring_reduce_scatter(model.comm, of_full, op=AVERAGE).clone()": (
        "mean_part(model.comm, of_full)"
    ),
}


def whole(comm, part, length):
    full = part.new_empty(len(part) * comm.world_size)
    full.view(comm.world_size, -1)[comm.rank] = part
    all_gather_parts(comm, full)
    return full[:length]
