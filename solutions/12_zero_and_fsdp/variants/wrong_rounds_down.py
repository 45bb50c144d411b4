"""Cuts parts of len // n, so that the last numbers are in nobody's."""

POINTS = 0.0
HINT = "n does not divide the length"
REPLACE = {
    "gradient = padded(gradient, self.comm.world_size)": (
        "gradient = gradient[: len(self.part) * self.comm.world_size].clone()"
    ),
    "self.flat.copy_(whole(self.comm, self.part, len(self.flat)))": (
        "trained = whole(self.comm, self.part, len(self.flat))\n"
        "        self.flat[: len(trained)] = trained"
    ),
    "of_full = padded(of_full, model.comm.world_size)\n        mean": (
        "of_full = of_full[: len(part) * model.comm.world_size].clone()\n        mean"
    ),
}


def own_part(comm, flat):
    length = len(flat) // comm.world_size
    return flat[comm.rank * length : (comm.rank + 1) * length].clone()
