"""Where two runs part that should be the same."""

from itertools import zip_longest

from distlab.errors import NodeFailed, NotDeterministic
from distlab.network.failure import handled, parting
from distlab.network.schedules.frozen import thaw
from distlab.network.words import effects_in_words

__all__ = ["compare", "parted"]


def compare(
    first: list, second: list, failed: NodeFailed | None, hosts: list
) -> NotDeterministic | None:
    """Return the story of the first event at which two logs part, None if they don't.

    failed: what ended the second run early. hosts: of the second run.
    """
    for one, other in zip_longest(first, second):
        if one != other:
            return parted(one, other, failed, hosts)
    return None


def parted(
    first: tuple | None, second: tuple | None, failed: NodeFailed | None, hosts: list
) -> NotDeterministic:
    """Return the story of two entries of a log that differ; None is a log's end."""
    at_s, node, method, given, _ = first or second
    if first and second and first[:4] == second[:4]:
        did = [effects_in_words(thaw(entry[4])) for entry in (first, second)]
        what = handled(method, tuple(thaw(given)))
    else:
        did = [_given(entry, failed) for entry in (first, second)]
        what = "when something happened"
    return parting(node, hosts[node] and hosts[node].node, at_s, what, *did)


def _given(entry, failed):
    """Return what a node was called for, where two runs are called differently."""
    if entry is None:
        return str(failed).partition("\n")[0] if failed else "nothing more happened"
    at_s, node, method, given, _ = entry
    what = handled(method, tuple(thaw(given)))
    return f"node {node} was called at {at_s:.6g} s, {what}"
