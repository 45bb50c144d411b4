"""Whether something is wrong with an outcome, by a check, an invariant or a goal."""

from collections.abc import Callable
from typing import Any

from distlab.errors import InvalidArgument
from distlab.network.outcome import Outcome

__all__ = ["Judge"]


class Judge:
    """What a search looks for.

    check: called with an outcome, at the end of a schedule. It answers something with
        `violated`, such as a verdict, or a truth value, or it raises AssertionError.
    invariant: called with the nodes' objects after every step; the same.
    goal: called with an outcome after every step; what is looked for is a truth value.
    """

    def __init__(
        self, check: Callable | None, invariant: Callable | None, goal: Callable | None
    ):
        self.check, self.invariant, self.goal = check, invariant, goal
        given = [name for name, fn in vars(self).items() if fn is not None]
        for name in given:
            if not callable(getattr(self, name)):
                raise InvalidArgument(
                    f"{name} is a function, and not {getattr(self, name)!r}."
                )
        if not given or (goal is not None and len(given) > 1):
            raise InvalidArgument(
                "a search looks for an outcome that its check, or invariant, does not "
                "pass, or for one that its goal asks for; give either of these."
            )

    def of_outcome(self, outcome: Outcome) -> str:
        """Return what is wrong with an outcome, "" if nothing is."""
        return _wrong(self.check, outcome) if self.check else ""

    def of_nodes(self, nodes: list) -> str:
        """Return what is wrong with the nodes, "" if nothing is."""
        return _wrong(self.invariant, nodes) if self.invariant else ""

    def reached(self, outcome: Outcome) -> bool:
        """Whether the goal is reached."""
        return bool(self.goal and self.goal(outcome))


def _wrong(judge, subject):
    name = getattr(judge, "__name__", "it")
    try:
        said = judge(subject)
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
    return _why(said, name) if violated else ""


def _why(verdict: Any, name):
    why = getattr(verdict, "why", "")
    return str(why) if why else f"{name} found it violated"
