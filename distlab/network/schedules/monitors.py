"""`Monitor`: a watch over a whole run, with a memory that no crash of a node erases.

What nodes are is judged by an invariant. What they were, too, takes a memory outside of
them (a ghost variable): who led which term, what was ever committed.
"""

from collections.abc import Callable, Iterable
from typing import Any

from distlab.errors import InvalidArgument

__all__ = ["Monitor", "new_monitors", "violation"]


class Monitor:
    """A property of the whole run; it is a subclass with attributes as its memory.

    class OneLeader(Monitor):
        def __init__(self):
            self.leader_of = {}

        def observe(self, nodes, node):
            one = nodes[node]
            if one and one.role == "leader":
                assert self.leader_of.setdefault(one.term, node) == node
    """

    def observe(self, nodes: list, node: int) -> Any:
        """Look at the nodes after an event, and return whether all is well.

        nodes: their objects, None for a dead one, to be read only. node: the number of
            the one that has just acted: it started, crashed, or one of its methods was
            called.
        Returns: as an invariant does: True or None, False, or a verdict; or it asserts.
        """
        raise NotImplementedError


def new_monitors(monitors: Iterable) -> list[Monitor]:
    """Return monitors that have seen nothing, from their classes or from such objects.

    Raises: InvalidArgument naming the first that is no monitor.
    """
    if isinstance(monitors, Monitor | type) or not isinstance(monitors, Iterable):
        monitors = [monitors]
    made = [one() if isinstance(one, type) else one for one in monitors]
    for one in made:
        if not isinstance(one, Monitor) or type(one).observe is Monitor.observe:
            raise InvalidArgument(
                f"monitors takes subclasses of Monitor with an observe(nodes, node), "
                f"and got {one!r}."
            )
    return made


def violation(check: Callable, *subject: Any, name: str = "") -> str:
    """Return a violation that a check finds, in words; "" if there is none.

    Raises: InvalidArgument if it does not tell.
    """
    name = name or getattr(check, "__name__", "it")
    try:
        said = check(*subject)
    except AssertionError as error:
        return f"{name} raised AssertionError" + (f": {error}" if str(error) else "")
    if said is None or said is True:
        return ""
    if said is False:
        return f"{name} returned False"
    violated = getattr(said, "violated", None)
    if violated is None:
        raise InvalidArgument(
            f"{name} returned {said!r}. It says whether all is well: True or False, a "
            "verdict, or by an assert."
        )
    if not violated:
        return ""
    return str(getattr(said, "why", "") or f"{name} found it violated")
