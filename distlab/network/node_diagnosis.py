"""Diagnoses of nodes' failures, in the learner's terms, with the learner's own frames.

    raised, never_returned, nonsense, ...   the diagnosis of a failure, a `NodeFailed`
    payload_of, failure_from                a failure, serialized between processes
    difference                              the first difference of two equal runs

Lines of source are looked up where the diagnosis is shown: only the notebook's own
process has the learner's cells.
"""

import inspect
import pickle
import signal
import traceback
from collections.abc import Iterable
from itertools import zip_longest
from reprlib import repr as briefly
from typing import Any

import cloudpickle

from distlab.calls.failure_location import described, source_lines
from distlab.errors import ClusterClosed, NodeFailed, NotDeterministic, SwitchFailed
from distlab.network.copies import thaw
from distlab.network.describe import describe, describe_call, shorten
from distlab.network.node import Effect
from distlab.network.watchdog import NeverReturned
from distlab.trace import Call

__all__ = [
    "MOST_TO_ITSELF",
    "closed",
    "corrupt_disk",
    "delay_failed",
    "difference",
    "disk_refused",
    "ended_alone",
    "failure_from",
    "failure_label",
    "never_returned",
    "no_effects",
    "no_end",
    "nonsense",
    "payload_of",
    "raised",
    "switch_gone",
    "talks_to_itself",
]

MOST_TO_ITSELF = 1000  # messages that a node may send to itself within one step
_ROOM, _EFFECTS_ROOM = 60, 300
_EFFECTS = "Effects are Send, SetTimer, CancelTimer, Reply, Refuse, Save, Append, "
_EFFECTS += "Truncate, Sync and Note"


def _failure(node, method, headline, *, cause, frames=(), hint=()):
    """Return a NodeFailed; frames: (file name, line number, function), outermost first.

    Its `parts` are the components of the message.
    """
    details = [*source_lines(frames), *(f"    {line}" for line in hint)]
    story = "\n".join([headline, "", *details] if details else [headline])
    error = NodeFailed(story, node=node, method=method, cause=cause)
    error.parts = headline, frames, hint
    return error


def payload_of(error: NodeFailed) -> dict:
    """Return the facts of a node's failure that its process sends to the notebook."""
    cause = error.cause
    if isinstance(cause, BaseException):
        try:
            cause = pickle.loads(cloudpickle.dumps(cause.with_traceback(None)))
        except Exception:
            cause = RuntimeError(f"{type(cause).__name__}: {cause}")
    return {"method": error.method, "cause": cause, "parts": error.parts}


def failure_label(error: NodeFailed) -> str:
    """Return the label of a node's failure in a trace."""
    raised = isinstance(error.cause, BaseException)
    return f"raised {type(error.cause).__name__}" if raised else "failed"


def failure_from(node: int, payload: dict) -> NodeFailed:
    """Return a node's failure from its payload, with lines of source added."""
    headline, frames, hint = payload["parts"]
    method, cause = payload["method"], payload["cause"]
    return _failure(node, method, headline, cause=cause, frames=frames, hint=hint)


# mistakes of nodes


def _occasion(method, args):
    """Return the occasion of a call, such as "as it took 'store x 1' from node 0"."""
    if method == "on_start":
        return "as it started again" if args and args[0] else "as it started"
    if method == "on_client":
        request, call = args
        account = describe_call(call) if isinstance(call, Call) else repr(call)
        return f"as it took the call '{shorten(account, _ROOM)}' (request {request})"
    if method == "on_message":
        sender, message = args
        return f"as it took '{shorten(describe(message), _ROOM)}' from node {sender}"
    if method == "on_timer":
        return f"as its timer {args[0]!r} ran out"
    if method == "on_synced":
        return f"as its sync {args[0]!r} had finished"
    return "as it was made"


def raised(
    me: int, kind: str, method: str, args: tuple, error: BaseException
) -> NodeFailed:
    """Return the failure of a node, of class `kind`, whose method raised."""
    facts = described(error)
    said = f"{facts['type']}: {facts['message']}" if facts["message"] else facts["type"]
    what = f"raised {said} in {method}, {_occasion(method, args)}"
    hint = [f"because of {facts['because']}"] if facts["because"] else []
    account = {"cause": error, "frames": facts["frames"], "hint": hint}
    return _failure(me, method, f"node {me} ({kind}) {what}", **account)


def never_returned(
    me: int, kind: str, method: str, args: tuple, stop: NeverReturned
) -> NodeFailed:
    """Return the failure of a node whose method the watchdog has ended."""
    what = f"did not return from {method}, {_occasion(method, args)}"
    stack = traceback.extract_tb(stop.__traceback__)
    frames = [(frame.filename, frame.lineno, frame.name) for frame in stack]
    hint = (
        "A node never waits: it returns its effects, and is called again when",
        "something happens. To wait, set a timer: SetTimer('again', 0.1).",
    )
    cause = f"{method} did not return"
    headline = f"node {me} ({kind}) {what}"
    return _failure(me, method, headline, cause=cause, frames=frames, hint=hint)


def nonsense(
    me: int, kind: str, method: str, args: tuple, what: str, hint: str
) -> NodeFailed:
    """Return the failure of a node that returned an invalid effect."""
    headline = f"node {me} ({kind}) {what} in {method}, {_occasion(method, args)}"
    return _failure(me, method, headline, cause=f"it {what}", hint=(hint,))


def no_effects(returned: Any, *wrong: Any) -> tuple[str, str]:
    """Return (description, hint) for a method that returned no valid effects.

    wrong: the item among them that is no effect, if any.
    """
    account = briefly(returned)
    if isinstance(returned, Effect):
        hint = f"That is one effect; put it into a list: [{account}]"
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
    return f"returned {account}", hint


def talks_to_itself(me: int, kind: str) -> NodeFailed:
    """Return the failure of a node whose messages to itself have no end."""
    what = "sends messages to itself, each of which sends another"
    cause = "its messages to itself have no end"
    return _failure(me, "on_message", f"node {me} ({kind}) {what}", cause=cause)


def corrupt_disk(node: int, path: str, number: int, at: int) -> NodeFailed:
    """Return the failure of a node with a changed record in the middle of its disk."""
    cause = f"record {number} of its disk is corrupt"
    hint = (
        f"It begins at byte {at:,} of {path}, and does not match its checksum:",
        "it was changed after it had been written, so nothing after it can be trusted.",
        "Make a new cluster. What a node does without its disk is to be seen after",
        f"cluster.kill({node}, loses='disk') and cluster.restart({node}).",
    )
    return _failure(node, "", f"node {node}: {cause}", cause=cause, hint=hint)


def disk_refused(node: int, path: str, error: OSError) -> NodeFailed:
    """Return the failure of a node whose disk does not take what it writes."""
    cause = f"its disk does not take what it writes: {error.strerror}"
    hint = (
        f"The file is {path}. Make room on that disk, or let TMPDIR name a folder on",
        "another one, and make a new cluster.",
    )
    return _failure(node, "", f"node {node}: {cause}", cause=cause, hint=hint)


def no_end(node: int, count: int, events: int, now_s: float) -> NodeFailed:
    """Return the failure of nodes whose messages, in a simulation, have no end.

    node, count: the one that sent most messages, and their number; 0 of a run without
        a trace, where it is not known.
    """
    so_far = f"{events:,} events by {now_s:g} s of virtual time"
    most = f"node {node} sent most, {count:,} messages. " if count else ""
    hint = f"{most}Does every message, or a timer of 0 s, lead to another one?"
    account = {"cause": "too many events", "hint": (hint,)}
    return _failure(node, "on_message", f"the nodes find no end: {so_far}", **account)


# failures that end a cluster


def ended_alone(node: int, status: int) -> NodeFailed:
    """Return the failure of a node whose process ended without being killed."""
    how = _how_ended(status)
    hint = (
        "A node does not end its own process. One that is to crash is killed from",
        "outside: cluster.kill(1), or faults=[Crash(1, at_s=0.5)].",
    )
    return _failure(node, "", f"the process of node {node} {how}", cause=how, hint=hint)


def switch_gone(status: int) -> SwitchFailed:
    """Return the error for a switch that was killed, or failed."""
    return SwitchFailed(
        f"the switch's process {_how_ended(status)}\n\n"
        "    Every message between two nodes passes through it, so the cluster was\n"
        "    stopped, with all of its nodes. Make a new one to go on."
    )


def delay_failed(
    distribution: Any, src: int, dst: int, error: Exception
) -> SwitchFailed:
    """Return the error for a distribution that gave no delay to a message."""
    return SwitchFailed(
        f"{distribution!r} gave no delay for a message from node {src} to node {dst}: "
        f"{type(error).__name__}: {error}\n\n"
        "    The switch draws one for each message, so the cluster was stopped.\n"
        "    A draw takes a random.Random and returns a number of seconds."
    )


def _how_ended(status):
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"left with exit status {status}"


def closed() -> ClusterClosed:
    """Return the error for a call on a cluster that has ended."""
    return ClusterClosed(
        "this cluster has ended, and its processes are gone. Its outcome() and history "
        "are still there; for anything else make a new one: network.Cluster(...)."
    )


# runs that are not reproducible


def difference(
    first: list, second: list, failed: NodeFailed | None, hosts: list
) -> NotDeterministic | None:
    """Return the error about the first event at which two runs differ, None if equal.

    first, second: the logs of nodes' calls: (time, node, method, arguments, effects),
        the last two frozen. failed: the failure that ended the second run early. hosts:
        of the second run.
    """
    for pair in zip_longest(first, second):
        if pair[0] != pair[1]:
            return _parting(*pair, failed, hosts)
    return None


def _parting(first, second, failed, hosts):
    """Return the error about two entries that differ; None is a log's end."""
    at_s, node, method, given, _ = first or second
    if first and second and first[:4] == second[:4]:
        did = [_effects(thaw(entry[4])) for entry in (first, second)]
        what = _occasion(method, tuple(thaw(given)))
    else:
        did = [_given(entry, failed) for entry in (first, second)]
        what = "when something happened"
    kind = type(hosts[node] and hosts[node].node)
    name = f" ({kind.__name__})" if hosts[node] else ""
    hint = "Chance comes from self.random alone; a node has no clock but self.clock_s, "
    hint += "and no id()."
    if shared := _shared_attribute(kind):
        hint = (
            f"{shared} belongs to the class: all nodes of all runs have it together. "
            "Make it in __init__, as self's own."
        )
    lines = [
        f"node {node}{name} is not deterministic: at {at_s:.6g} s, {what},",
        f"    the first time:  {did[0]}",
        f"    the second time: {did[1]}",
        "",
        f"    {hint}",
    ]
    story, (one, other) = "\n".join(lines), did
    return NotDeterministic(story, node=node, at_s=at_s, first=one, second=other)


def _effects(effects):
    account = ", ".join(map(repr, effects))
    return f"returned [{shorten(account, _EFFECTS_ROOM)}]"


def _given(entry, failed):
    """Return the call of a log's entry in words, if two runs have different calls."""
    if entry is None:
        return str(failed).partition("\n")[0] if failed else "nothing more happened"
    at_s, node, method, given, _ = entry
    what = _occasion(method, tuple(thaw(given)))
    return f"node {node} was called at {at_s:.6g} s, {what}"


def _shared_attribute(kind):
    """Return the name of a mutable attribute of a class, "" if there is none."""
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, list | dict | set) and not name.startswith("__"):
                return f"{base.__name__}.{name}"
    return ""
