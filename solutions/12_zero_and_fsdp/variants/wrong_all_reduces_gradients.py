"""All-reduces the gradients, and takes its part of that."""

from distlab.collectives import ring_all_reduce

POINTS = 3.0
HINT = "an all-reduce alone is two"
REPLACE = {
    "self.part.grad = ring_reduce_scatter(self.comm, gradient, op=AVERAGE)": (
        "ring_all_reduce(self.comm, gradient, op=AVERAGE)\n"
        "        self.part.grad = own_part(self.comm, gradient)"
    ),
    "mean = ring_reduce_scatter(model.comm, of_full, op=AVERAGE).clone()": (
        "ring_all_reduce(model.comm, of_full, op=AVERAGE)\n"
        "        mean = own_part(model.comm, of_full)"
    ),
}
