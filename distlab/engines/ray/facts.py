"""What a node runs, found before it runs ranks; and the actor that says so.

The actor's class is defined in a function, so Ray carries it by value: it answers on a
node that has no distlab, too.
"""

import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path

__all__ = ["actor_class", "explain_difference", "facts_here"]


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
    """Return what a node lacks, and what to do about it; "" if it is as this one."""
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


def actor_class() -> type:
    """Return the class of the actor that a node gets."""

    class RankHost:
        """Distlab's process on a node of Ray."""

        def __init__(self):
            try:
                from distlab.engines.ray.node import prepare
            except ImportError:
                return
            prepare()

        def facts(self):
            """Return what is installed here."""
            import sys

            try:
                from distlab.engines.ray.facts import facts_here

                return facts_here()
            except ImportError as error:
                python = ".".join(map(str, sys.version_info[:2]))
                lacking = "torch" if error.name == "torch" else "distlab"
                found = {"Python": python, "torch": "", "distlab": ""}
                return found | {lacking: None}

        def open(self, address, token, settings):
            """Listen for one world; return the port."""
            from distlab.engines.ray.node import open_listener

            return open_listener(address, token, settings)

    return RankHost
