"""Rank 0 speaks and starts all the others, which then speak at the same time."""

POINTS = 4.0
HINT = "What does the sender of that message know"


def speak_in_order(comm, speak):
    if comm.rank == 0:
        speak()
        for other in range(1, comm.world_size):
            comm.send_object("go", other)
    else:
        comm.recv_object(0)
        speak()
