"""Also rank 0 waits for the one before it."""

POINTS = 4.0
HINT = "All ranks wait in a receive"


def speak_in_order(comm, speak):
    n, rank = comm.world_size, comm.rank
    comm.recv_object((rank - 1) % n)
    speak()
    comm.send_object("your turn", (rank + 1) % n)
