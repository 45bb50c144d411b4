"""Writes into what flatten() returned, which a transposed gradient does not share."""

POINTS = 7.0
HINT = "flatten() and reshape() copy"
REPLACE = {
    "gradient.copy_(total.view(gradient.shape) / comm.world_size)": (
        "gradient.reshape(-1).copy_(total / comm.world_size)"
    ),
}
