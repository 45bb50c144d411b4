"""Sleeps longer on higher ranks; the order comes out right by the clock."""

import time

POINTS = 0.0
HINT = "without a message that is luck"


def speak_in_order(comm, speak):
    time.sleep(0.4 * comm.rank)
    speak()


def speak_in_rounds(comm, speak, rounds):
    pass


def prepare_and_speak(comm, prepare, speak):
    pass
