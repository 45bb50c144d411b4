"""The actor of Ray that distlab starts on each node.

Its class is defined in a function, so Ray carries it by value: it answers on a node
that has no distlab, too.
"""

__all__ = ["actor_class"]


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
            """Return the versions that are installed here; None for one that is not."""
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
