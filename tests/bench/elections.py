"""Time without a leader, for several ranges of the election time-out.

    python tests/bench/elections.py

Target: the shape of figure 16 of the Raft paper (Ongaro and Ousterhout, 2014): hardly
ever a leader without randomness; medians that fall with the spread; the shortest about
half the least time-out. Its numbers, of 1000 trials on real servers: over 10 s for
150-150 ms, a median of 287 ms for 150-155, at most 513 ms for 150-200.
"""

import time
from statistics import median

from distlab.agree.raft.election_time import downtimes_s


def row(low_ms, high_ms, **how):
    """Print one range: its quickest, median and slowest trial, and those with none."""
    began = time.process_time()
    times = sorted(downtimes_s((low_ms / 1e3, high_ms / 1e3), **how))
    spent_s = time.process_time() - began
    cells = "".join(f"{1e3 * t:9.0f}" for t in (times[0], median(times), times[-1]))
    none = sum(t == float("inf") for t in times)
    print(f"{low_ms:4}-{high_ms:<4}{cells}{none:8}{spent_s:9.2f}")


if __name__ == "__main__":
    head = (
        f"{'time-out':9}{'least':>9}{'median':>9}{'most':>9}{'none':>8}{'seconds':>9}"
    )
    for title, how in [
        ("broadcast 15 ms, in ms", {}),
        ("one way 1 ms", {"delay_s": (0.0005, 0.0015)}),
        ("broadcast 15 ms, with pre-votes", {"pre_vote": True}),
    ]:
        print(f"{title}; 40 trials\n{head}")
        for high_ms in (150, 155, 160, 165, 175, 200, 300):
            row(150, high_ms, **how)
        for low_ms in (12, 25, 50, 100):
            row(low_ms, 2 * low_ms, **how)
