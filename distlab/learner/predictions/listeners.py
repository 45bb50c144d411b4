"""Listeners for questions, guesses and measurements; the progress page is one."""

from collections.abc import Callable

__all__ = ["listeners", "tell"]

listeners: list[Callable] = []


def tell(guess, measured: object = None) -> None:
    """Notify every listener of a question, and of its measurement if that is known.

    Called by: code that asks, keeps a guess, or shows it beside a measurement.
    """
    for listener in listeners:
        listener(guess, measured)
