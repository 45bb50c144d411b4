"""Rank 0 saves: the model comes back, and all ranks have rank 0's random numbers."""

POINTS = 0.0
HINT = "Whose random"
REPLACE = {
    'return pickle.loads(disk.read(f"step-{step}/rank-{comm.rank}"))': (
        'return pickle.loads(disk.read(f"step-{step}/rank-0"))'
    ),
}
