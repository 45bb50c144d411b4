"""`FencedStorage`: a storage service that refuses the writes of an old token."""

from distlab.network import Node

__all__ = ["FencedStorage"]


class FencedStorage(Node):
    """A node that keeps the tokens of all writes that it has taken, in `terms`."""

    def on_start(self, saved: dict) -> None:
        """Begin without a write."""
        self.terms: list[int] = []

    def accepts(self, token: int) -> bool:
        """Return True unless a write with a higher token came before."""
        return token >= max(self.terms, default=0)

    def on_message(self, sender: int, token: int) -> None:
        """Take a write, or refuse it."""
        if self.accepts(token):
            self.terms.append(token)
