"""Waits for its turn, and prepares only then."""

POINTS = 7.0
HINT = "wait only before you speak"


def prepare_and_speak(comm, prepare, speak):
    def both():
        prepare()
        speak()

    speak_in_order(comm, both)
