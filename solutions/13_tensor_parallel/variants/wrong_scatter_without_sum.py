"""Cuts its rows out of its own gradient when it should have a piece of the sum."""

POINTS = 7.0
HINT = "own rows of the sum over ranks"
REPLACE = {
    "return None, piece_of_sum(ctx.comm, gradient)": (
        "return None, gradient.chunk(ctx.comm.world_size)[ctx.comm.rank]"
    )
}
