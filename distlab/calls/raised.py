"""An exception of a rank, as the facts from which its failure report is made."""

import traceback

__all__ = ["Described", "described"]


class Described(Exception):
    """An exception of another process. facts: as that process `described` it."""

    def __init__(self, facts: dict):
        super().__init__(facts)
        self.facts = facts

    def __str__(self):
        return self.facts["message"]


def described(error: BaseException) -> dict:
    """Return a dict: type, message, frames (file, line, function) and cause."""
    if isinstance(error, Described):
        return error.facts
    frames = traceback.extract_tb(error.__traceback__)
    context = None if error.__suppress_context__ else error.__context__
    chain = error.__cause__ or context
    return {
        "type": type(error).__name__,
        "message": _message(error),
        "frames": [(f.filename, f.lineno, f.name) for f in frames],
        "because": f"{type(chain).__name__}: {chain}" if chain else "",
    }


def _message(error):
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r}) was called"
    return str(error)
