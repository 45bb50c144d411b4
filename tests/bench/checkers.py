"""How long the checkers take, on histories made for them.

    python tests/bench/checkers.py

The first two lines have targets: 200 histories of 170 operations by 5 clients on a
compare-and-set register in 10 s in all, and 10,000 operations on 100 keys in 5 s. The
others are what a lesson asks for. Seconds are those of this process alone.
"""

import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from histories import (
    CALLS,
    cas_histories,
    corrupted,
    linearizable,
    once,
    shifted,
    weak,
)

from distlab.agree import (
    CasRegister,
    KeyValue,
    Queue,
    Register,
    check_causal,
    check_linearizable,
    check_monotonic_reads,
    check_sequential,
)


def measured(what, histories, check):
    """Print how long a check of all histories takes, and what it says."""
    began = time.process_time()
    verdicts = [check(history) for history in histories]
    seconds = time.process_time() - began
    said = Counter(verdict.answer for verdict in verdicts)
    sizes = [len(verdict.smallest) for verdict in verdicts if verdict.smallest]
    counts = sorted(said.items())
    described = ", ".join(f"{count} {answer}" for answer, count in counts)
    print(f"{what:72} {seconds:6.2f} s   {described}; largest {max(sizes, default=0)}")


def many_keys(seed):
    """Return 10,000 operations of a key-value store by 20 clients on 100 keys."""
    chance = random.Random(seed)
    calls = CALLS["CasRegister"]
    return linearizable(chance, 10_000, 20, calls, unknown=0.02, keys=100)


def main():
    measured(
        "200 of 170 operations, compare-and-set register",
        cas_histories(0),
        lambda history: check_linearizable(history, CasRegister()),
    )
    whole = many_keys(0)
    wrong = corrupted(random.Random(1), whole, {"read": [0, 1, 2, 3]}, 5)
    for name, history in ("linearizable", whole), ("five wrong answers", wrong):
        measured(
            f"10,000 operations, 100 keys, {name}",
            [history],
            lambda history: check_linearizable(history, KeyValue()),
        )
    queues = [
        linearizable(random.Random(seed), 60, 4, CALLS["Queue"], list, unknown=0.03)
        for seed in range(50)
    ]
    measured(
        "50 of 60 operations, queue", queues, lambda h: check_linearizable(h, Queue())
    )
    dice = random.Random(0)
    made = {
        "each client on its own clock": [
            shifted(dice, once(dice, 170, 5, 3, unknown=0.05)) for _ in range(20)
        ],
        "reads of what was there once": [
            weak(dice, 170, 5, 3, unknown=0.05, rough=0.02) for _ in range(20)
        ],
    }
    for name, histories in made.items():
        about = f"20 of 170 operations, {name}, "
        measured(
            f"{about}sequential", histories, lambda h: check_sequential(h, Register())
        )
        measured(f"{about}causal", histories, check_causal)
        measured(f"{about}monotonic reads", histories, check_monotonic_reads)


if __name__ == "__main__":
    main()
