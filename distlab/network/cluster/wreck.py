"""What ended a cluster, told in the notebook, which alone has the learner's cells."""

import pickle
import signal
from collections.abc import Iterable

import cloudpickle

from distlab.calls.places import source_lines
from distlab.calls.raised import described
from distlab.errors import ClusterClosed, NodeFailed, SwitchFailed

__all__ = [
    "closed",
    "ended_alone",
    "facts_of",
    "flooded",
    "never_returned",
    "retold",
    "switch_gone",
]


def facts_of(error: NodeFailed) -> dict:
    """Return, in a node's process, what the notebook needs to tell its failure."""
    facts = {"story": str(error), "method": error.method, "cause": error.cause}
    if isinstance(error.cause, BaseException):
        raised = facts["raised"] = described(error.cause)
        try:
            bare = error.cause.with_traceback(None)
            facts["cause"] = pickle.loads(cloudpickle.dumps(bare))
        except Exception:
            facts["cause"] = RuntimeError(f"{raised['type']}: {raised['message']}")
    return facts


def retold(node: int, facts: dict) -> NodeFailed:
    """Return the failure of a node, with the lines of source that are known here."""
    story = facts["story"]
    if "raised" in facts:
        lines = [story.split("\n\n")[0]]
        places = source_lines(facts["raised"]["frames"])
        lines += ["", *places] if places else []
        if facts["raised"]["because"]:
            lines.append(f"    because of {facts['raised']['because']}")
        story = "\n".join(lines)
    return NodeFailed(story, node=node, method=facts["method"], cause=facts["cause"])


def never_returned(node: int, doing: str, stack: Iterable) -> NodeFailed:
    """Return the failure of a node that is at work, and does not come back.

    doing: the method, a bar, and what it was handling. stack: outermost frame first.
    """
    method, _, handled = doing.partition("|")
    lines = [
        f"node {node} did not return from {method}, {handled}",
        "",
        *source_lines(stack),
        "    Every node waits for nobody: it returns its effects, and is called again",
        "    when something happens. To wait, set a timer: SetTimer('again', 0.1).",
    ]
    cause = f"{method} did not return"
    return NodeFailed("\n".join(lines), node=node, method=method, cause=cause)


def ended_alone(node: int, status: int, doing: tuple[float, str] | None) -> NodeFailed:
    """Return the failure of a node whose process ended, and nobody had killed it."""
    method, _, handled = doing[1].partition("|") if doing else ("", "", "as it waited")
    how = f"left with exit status {status}"
    if status < 0:
        how = f"was ended by {signal.Signals(-status).name}"
    story = (
        f"the process of node {node} {how}, {handled}\n\n"
        "    A node does not end its own process. One that is to crash is killed from\n"
        "    outside: cluster.kill(1), or faults=[Crash(1, at_s=0.5)]."
    )
    return NodeFailed(story, node=node, method=method, cause=how)


def flooded(node: int, count: int) -> NodeFailed:
    """Return the failure of nodes that send more than can be taken in."""
    story = (
        f"{count:,} messages are on their way at once, the last of them from node "
        f"{node}\n\n"
        "    The nodes send faster than they take in. Often two of them answer each\n"
        "    other for ever, or each message is answered with several."
    )
    return NodeFailed(story, node=node, method="", cause="too many messages")


def switch_gone(status: int) -> SwitchFailed:
    """Return the error that says that the switch was killed, or failed."""
    how = f"left with exit status {status}"
    if status < 0:
        how = f"was killed by {signal.Signals(-status).name}"
    return SwitchFailed(
        f"the switch's process {how}\n\n"
        "    Every message between two nodes passes through it, so the cluster was\n"
        "    stopped, with all of its nodes. Make a new one to go on."
    )


def closed() -> ClusterClosed:
    """Return the error that says that a cluster is no more."""
    return ClusterClosed(
        "this cluster has ended, and its processes are gone. Its outcome() and history "
        "are still there; for anything else make a new one: network.Cluster(...)."
    )
