"""Predicted staleness beside the paper's Table 4, its time and its memory.

    python tests/bench/pbs.py

Targets: a million trials in a second of processor time; latencies within 3 %, times for
99.9 % within 20 % of the published ones. The peer is the same trial in plain Python.
"""

import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agree"))

from test_pbs import ORDER, PUBLISHED, one_trial

from distlab.agree import pbs


def against_the_table():
    """Print each configuration's numbers in ms, those of the paper in brackets."""
    print(f"{'':10} R W{'read':>17}{'write':>19}{'t, 99.9 %':>19}{'at t=0':>8}{'s':>6}")
    for row in PUBLISHED.split("\n")[1:-1]:
        r, w, *times = row.split()
        for number, name in enumerate(ORDER):
            began = time.process_time()
            found = pbs.staleness(3, int(r), int(w), name)
            spent_s = time.process_time() - began
            ours = found.read_s(), found.write_s(), found.visible_after_s()
            pairs = zip(ours, times[3 * number :][:3], strict=True)
            cells = [f"{1e3 * own:9.2f} ({said:>7})" for own, said in pairs]
            at_once = f"{found.consistent(0):8.1%}"
            print(f"{name:10} {r} {w} {' '.join(cells)}{at_once}{spent_s:6.2f}")


def against_plain_python(trials=20_000):
    """Print the time of a million trials one by one."""
    dice, began = random.Random(1), time.process_time()
    for _ in range(trials):
        one_trial(dice, 3, 1, 1, pbs.CLUSTERS["LNKD-DISK"])
    spent_s = (time.process_time() - began) * 1e6 / trials
    print(f"a million trials in plain Python: {spent_s:.0f} s")


if __name__ == "__main__":
    against_the_table()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory {peak:.0f} MB, with pytest and distlab")
    against_plain_python()
