"""Every rank speaks in its own round of barriers."""

POINTS = 0.0
HINT = "from send and receive alone"


def speak_in_order(comm, speak):
    for rank in range(comm.world_size):
        if rank == comm.rank:
            speak()
        comm.barrier()


def speak_in_rounds(comm, speak, rounds):
    pass


def prepare_and_speak(comm, prepare, speak):
    pass
