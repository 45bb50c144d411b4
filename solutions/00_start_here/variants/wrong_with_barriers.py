"""Every rank speaks in its own round of barriers."""

POINTS = 4.0
HINT = "from send and receive alone"


def speak_in_order(comm, speak):
    for rank in range(comm.world_size):
        if rank == comm.rank:
            speak()
        comm.barrier()
