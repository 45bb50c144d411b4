"""Posts its receive before it prepares, sends with isend, and waits for both."""

import torch

POINTS = 10.0
HINT = ""


def speak_in_order(comm, speak):
    speak_in_rounds(comm, speak, 1)


def speak_in_rounds(comm, speak, rounds):
    n, rank = comm.world_size, comm.rank
    under_way = []
    for number in range(rounds):
        if n > 1 and (rank or number):
            comm.irecv(torch.empty(1), (rank - 1) % n).wait()
        speak()
        if n > 1 and (rank < n - 1 or number < rounds - 1):
            under_way.append(comm.isend(torch.ones(1), (rank + 1) % n))
    for request in under_way:
        request.wait()


def prepare_and_speak(comm, prepare, speak):
    if comm.rank:
        asked = comm.irecv(torch.empty(1), comm.rank - 1)
    prepare()
    if comm.rank:
        asked.wait()
    speak()
    if comm.rank + 1 < comm.world_size:
        comm.send(torch.ones(1), comm.rank + 1)
