"""Right for two ranks and more; a single one sends to itself."""

POINTS = 3.0
HINT = "This world has one rank"


def speak_in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send_object("your turn", comm.rank + 1)


def speak_in_rounds(comm, speak, rounds):
    n, rank = comm.world_size, comm.rank
    for turn in range(rank, n * rounds, n):
        if turn > 0:
            comm.recv_object((rank - 1) % n)
        speak()
        if turn < n * rounds - 1:
            comm.send_object("your turn", (rank + 1) % n)


def prepare_and_speak(comm, prepare, speak):
    pass
