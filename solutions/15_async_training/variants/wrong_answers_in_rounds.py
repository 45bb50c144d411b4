"""Answers only when no worker computes any more: a synchronous loop."""

POINTS = 7.0
HINT = "worker waits in vain"
REPLACE = {
    "    ready = list(range(1, comm.world_size))\n": (
        "    ready, later = list(range(1, comm.world_size)), []\n"
    ),
    "        for worker in list(waiting) if over else ready:\n": (
        "        later += ready\n"
        "        ready, later = ([], later) if computing else (later, [])\n"
        "        for worker in list(waiting) if over else ready:\n"
    ),
}
