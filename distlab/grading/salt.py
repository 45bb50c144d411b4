"""Where the random inputs of checks come from."""

import random

__all__ = ["is_salted", "new_salt", "salted"]

_salt = ""


def salted(*words: object) -> random.Random:
    """Return a source of random numbers for these words.

    In a notebook it is the same every time, so that a failure can be looked at again.
    """
    return random.Random(" ".join(map(str, (_salt, *words))))


def is_salted() -> bool:
    """Return whether inputs are drawn anew, so that nobody looks at them again."""
    return _salt != ""


def new_salt() -> None:
    """Draw what nobody can know in advance: no answer can be worked out before."""
    global _salt
    _salt = f"{random.SystemRandom().getrandbits(64):x}"
