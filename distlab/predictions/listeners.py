"""Who hears of what was asked, guessed and measured: the progress page does."""

from collections.abc import Callable

__all__ = ["listeners", "tell"]

listeners: list[Callable] = []


def tell(guess, measured: object = None) -> None:
    """Tell every listener of a question, and of what was measured if that is known.

    Called by: whoever asks, keeps a guess, or shows it beside a measurement.
    """
    for listener in listeners:
        listener(guess, measured)
