"""Facts about a node that must be as here before it runs ranks."""

import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path

__all__ = ["explain_difference", "facts_here"]


def facts_here() -> dict[str, str]:
    """Return the versions of Python and torch, and a digest of distlab's code."""
    return {
        "Python": ".".join(map(str, sys.version_info[:2])),
        "torch": metadata.version("torch").partition("+")[0],
        "distlab": _digest(),
    }


def _digest():
    package = Path(__file__).parents[2]
    whole = sha256()
    for file in sorted(package.rglob("*.py")):
        whole.update(f"{file.relative_to(package)}\n".encode() + file.read_bytes())
    return whole.hexdigest()[:12]


def explain_difference(there: dict[str, str | None], here: dict[str, str]) -> str:
    """Return a node's difference from here, and its remedy; "" if there is none."""
    for what, expected in here.items():
        found = there.get(what)
        if found is None:
            return f"{what} is not installed there. Install there what is here."
        if found != expected:
            version = "another state" if what == "distlab" else f"{what} {found}"
            own = "" if what == "distlab" else f" {expected}"
            return (
                f"it has {version}, and this process has{own or ' its own'} of {what}."
                " Install the same on all nodes."
            )
    return ""
