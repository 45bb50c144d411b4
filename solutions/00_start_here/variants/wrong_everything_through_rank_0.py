"""Rank 0 calls the others one by one, and each of them reports back."""

POINTS = 6.0
HINT = "take a detour through another rank"


def speak_in_rounds(comm, speak, rounds):
    for _ in range(rounds):
        if comm.rank > 0:
            comm.recv_object(0)
            speak()
            comm.send_object("done", 0)
            continue
        speak()
        for other in range(1, comm.world_size):
            comm.send_object("go", other)
            comm.recv_object(other)
