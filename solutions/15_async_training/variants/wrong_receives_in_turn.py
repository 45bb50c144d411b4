"""Receives from worker 1, then from worker 2, and so on."""

POINTS = 7.0
HINT = "worker waits in vain"
REPLACE = {
    "        worker, ready = comm.recv_any(message), []\n": (
        "        worker = min(computing, key=lambda w: (w <= last, w))\n"
        "        last, ready = worker, []\n"
        "        comm.recv(message, worker)\n"
    ),
    "    waiting, computing = set(ready), set()\n": (
        "    waiting, computing, last = set(ready), set(), 0\n"
    ),
}
