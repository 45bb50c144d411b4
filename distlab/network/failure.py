"""Why a node failed, told in the learner's words, with the learner's own frames."""

import inspect
import reprlib
import traceback
from collections.abc import Iterable
from typing import Any

from distlab.calls.places import source_lines
from distlab.calls.raised import described
from distlab.errors import NodeFailed, NotDeterministic
from distlab.network.node import Effect
from distlab.network.watchdog import NeverReturned
from distlab.network.words import call_in_words, in_words, shortened
from distlab.trace import Call

__all__ = [
    "MOST_TO_ITSELF",
    "briefly",
    "endless",
    "handled",
    "no_effects",
    "nonsense",
    "of_the_class",
    "parting",
    "raised",
    "stopped",
    "talks_to_itself",
]

MOST_TO_ITSELF = 1000  # messages that a node may send to itself within one step
_ROOM = 60
_EFFECTS = "Effects are Send, SetTimer, CancelTimer, Reply, Refuse, Save and Note"


def handled(method: str, args: tuple) -> str:
    """Return what a node was doing, such as "as it took 'store x 1' from node 0"."""
    if method == "on_start":
        return "as it started again" if args and args[0] else "as it started"
    if method == "on_client":
        request, call = args
        told = call_in_words(call) if isinstance(call, Call) else repr(call)
        return f"as it took the call '{shortened(told, _ROOM)}' (request {request})"
    if method == "on_message":
        sender, message = args
        return f"as it took '{shortened(in_words(message), _ROOM)}' from node {sender}"
    if method == "on_timer":
        return f"as its timer {args[0]!r} ran out"
    return "as it was made"


def raised(
    me: int, kind: str, method: str, args: tuple, error: BaseException
) -> NodeFailed:
    """Return the story of a node, of class `kind`, whose method raised."""
    facts = described(error)
    said = f"{facts['type']}: {facts['message']}" if facts["message"] else facts["type"]
    lines = [f"node {me} ({kind}) raised {said} in {method}, {handled(method, args)}"]
    places = source_lines(facts["frames"])
    lines += ["", *places] if places else []
    if facts["because"]:
        lines.append(f"    because of {facts['because']}")
    return NodeFailed("\n".join(lines), node=me, method=method, cause=error)


def endless(
    me: int, kind: str, method: str, args: tuple, frames: Iterable
) -> NodeFailed:
    """Return the story of a node whose method did not return.

    frames: (file name, line number, function name), outermost first.
    """
    cause = f"{method} did not return"
    lines = [
        f"node {me} ({kind}) did not return from {method}, {handled(method, args)}",
        "",
        *source_lines(frames),
        "    Every node waits for nobody: it returns its effects, and is called again",
        "    when something happens. To wait, set a timer: SetTimer('again', 0.1).",
    ]
    return NodeFailed("\n".join(lines), node=me, method=method, cause=cause)


def stopped(
    me: int, kind: str, method: str, args: tuple, stop: NeverReturned
) -> NodeFailed:
    """Return the story of a node whose method a watchdog has ended."""
    frames = traceback.extract_tb(stop.__traceback__)
    places = [(frame.filename, frame.lineno, frame.name) for frame in frames]
    return endless(me, kind, method, args, places)


def nonsense(
    me: int, kind: str, method: str, args: tuple, what: str, hint: str
) -> NodeFailed:
    """Return the story of a node that returned what nobody can do."""
    story = f"node {me} ({kind}) {what} in {method}, {handled(method, args)}"
    return NodeFailed(
        f"{story}\n\n    {hint}", node=me, method=method, cause=f"it {what}"
    )


def no_effects(returned: Any, *wrong: Any) -> tuple[str, str]:
    """Return what a method did that returned no effects, and a hint.

    wrong: what it gave among them, if that is no effect.
    """
    told = briefly(returned)
    if isinstance(returned, Effect):
        hint = f"That is one effect; put it into a list: [{told}]"
    elif wrong:
        hint = f"{briefly(*wrong)} is no effect. {_EFFECTS}."
        if hasattr(returned, "__next__"):
            return f"yielded {briefly(*wrong)}", hint
    elif isinstance(returned, Iterable):
        return "gave too many effects", "A generator that never ends, perhaps."
    elif inspect.iscoroutine(returned):
        returned.close()
        hint = "Leave `async` away: a node waits for nothing. It returns a list."
    else:
        hint = f"A method returns a list of effects, or None. {_EFFECTS}."
    return f"returned {told}", hint


def talks_to_itself(me: int, kind: str) -> NodeFailed:
    """Return the story of a node whose messages to itself have no end."""
    cause = "its messages to itself have no end"
    story = f"node {me} ({kind}) sends messages to itself, each of which sends another"
    return NodeFailed(story, node=me, method="on_message", cause=cause)


def briefly(value: Any) -> str:
    """Return a value as Python has it, cut off if it is long."""
    return reprlib.repr(value)


def parting(
    me: int, node: Any, at_s: float, what: str, first: str, second: str
) -> NotDeterministic:
    """Return the story of a node that did not do the same twice.

    node: its object, if it is alive.
    """
    kind = f" ({type(node).__name__})" if node is not None else ""
    shared = of_the_class(type(node))
    hint = "Chance comes from self.random alone; a node has no clock, and no id()."
    if shared:
        hint = (
            f"{shared} belongs to the class: all nodes of all runs have it together. "
            "Make it in __init__, as self's own."
        )
    lines = [
        f"node {me}{kind} is not deterministic: at {at_s:.6g} s, {what},",
        f"    the first time:  {first}",
        f"    the second time: {second}",
        "",
        f"    {hint}",
    ]
    story = "\n".join(lines)
    return NotDeterministic(story, node=me, at_s=at_s, first=first, second=second)


def of_the_class(kind):
    """Return the name of something that can change and belongs to a class, if any."""
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, list | dict | set) and not name.startswith("__"):
                return f"{base.__name__}.{name}"
    return ""
