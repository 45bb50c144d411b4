"""How far a job is: one line, once it takes longer than one likes to wait."""

from distlab.calls import progress

__all__ = ["Progress"]


class Progress(progress.Progress):
    """The line of a job."""

    def show(self, done: dict[str, tuple[int, int]]) -> None:
        """Say of each kind of task how many are done, of how many."""
        super().show(lambda: _in_words(done))


def _in_words(done):
    kinds = (f"{some} of {all_} {kind}s done" for kind, (some, all_) in done.items())
    return ", ".join(kinds)
