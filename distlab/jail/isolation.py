"""How well a jail can hold on this machine, and what that means."""

import functools
import os
import sys

from distlab.errors import JailFailed
from distlab.jail.limits import Limits

__all__ = ["best_isolation", "words"]

_WORDS = {
    "namespaces": "Each jail had files, processes and a network of its own: nothing "
    "outside could be read, written, reached or harmed from it.",
    "unprivileged user": "Each jail had a user of its own, but saw this machine's "
    "network, its processes and every file that all users may read; what is closed to "
    "others was closed to it.",
    "none": "Nothing kept the code from this machine's files, processes and network; "
    "only its memory, time and number of processes were limited.",
}


def words(isolation: str) -> str:
    """Return one sentence that says what held, and what did not."""
    return _WORDS[isolation]


@functools.cache
def best_isolation() -> str:
    """Return the best level that works here, as found by trying."""
    from distlab.jail.jail import Jail

    if sys.platform != "linux":
        return "none"
    try:
        Jail(Limits(), isolation="namespaces").close()
    except JailFailed:
        return "unprivileged user" if os.getuid() == 0 else "none"
    return "namespaces"
