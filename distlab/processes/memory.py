"""Memory that several processes share without a name in any folder."""

import os
import tempfile

__all__ = ["anonymous_file"]


def anonymous_file(name: str) -> int:
    """Return a descriptor of a file in memory that has no name in any folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())
