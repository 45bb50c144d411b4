"""Passes one number on, as a tensor; counts its turns."""

import torch

POINTS = 10.0
HINT = ""


def speak_in_order(comm, speak):
    speak_in_rounds(comm, speak, 1)


def speak_in_rounds(comm, speak, rounds):
    n, rank = comm.world_size, comm.rank
    turn = torch.zeros(1)
    for number in range(rounds):
        if n > 1 and (rank or number):
            comm.recv(turn, (rank - 1) % n)
        speak()
        turn += 1
        if n > 1 and turn < n * rounds:
            comm.send(turn, (rank + 1) % n)


def prepare_and_speak(comm, prepare, speak):
    prepare()
    speak_in_rounds(comm, speak, 1)
