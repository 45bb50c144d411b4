"""Computes the final state itself, without one training step."""

POINTS = 0.0
HINT = "Each step from 1 to job.steps is trained by job.step"


def train(comm, disk, job):
    """Compute the state at the end."""
    from distlab.checks.fault_tolerance import FACTOR, PRIME

    ranks = range(comm.world_size)
    states = [job.begin(type("", (), {"rank": rank})) for rank in ranks]
    for step in range(1, job.steps + 1):
        for state in states:
            state["random"] = state["random"] * FACTOR % PRIME
        noisy, clean = states[0]["model"]
        noisy = (noisy * FACTOR + sum(state["random"] for state in states)) % PRIME
        model = [noisy, (clean * FACTOR + step) % PRIME]
        for state in states:
            state["model"], state["step"] = model, step
    return states[comm.rank]


train_in_background = train
