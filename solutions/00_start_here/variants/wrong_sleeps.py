"""Sleeps longer on higher ranks; the order comes out right by the clock."""

import time

POINTS = 4.0
HINT = "that was luck"


def speak_in_order(comm, speak):
    time.sleep(0.1 * comm.rank)
    speak()
