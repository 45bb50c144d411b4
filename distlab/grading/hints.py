"""From what was observed to the first nudge, the most specific observation first."""

from distlab.errors import Deadlock, MessageMismatch, WorldTimeout

__all__ = ["hint_for_counts", "hint_for_failure", "hint_for_traffic"]


def hint_for_counts(counts, numbers: int, world_size: int) -> str:
    """Return a nudge for a number that holds these counts of the ranks' shares."""
    if counts is None:
        return (
            "These are not sums of what the ranks started with. "
            "Is a receive buffer used before it is filled?"
        )
    if max(counts) > 1:
        return (
            "A share is added twice. On the second lap, complete chunks replace "
            "what is there."
        )
    if sum(counts) == 1 and numbers % world_size:
        return (
            "Here the chunks differ in length. Is every position of the tensor "
            "in one of your chunks?"
        )
    if sum(counts) == 1:
        return (
            "Each number holds one rank's share only. What arrives on the first lap "
            "has to be added to what is there."
        )
    if sum(counts) == world_size - 1:
        return (
            "One share is missing. How many steps does a chunk need to pass every rank?"
        )
    return (
        "Follow one chunk around the ring with a pencil: which rank has it after "
        "each step, and whose shares are in it?"
    )


def hint_for_failure(failure) -> str:
    """Return a nudge for a run that ended in a `WorldFailed`."""
    if isinstance(failure.cause, NotImplementedError):
        return "Start with the docstring: what does each rank send in step 0?"
    if isinstance(failure, Deadlock):
        return (
            "Everybody waits. A send ends only when the receiver asks for it, so all "
            "ranks cannot send first; comm.sendrecv does both at once."
        )
    misfit = isinstance(failure.cause, MessageMismatch)
    if misfit or "size of tensor" in str(failure.cause):
        return (
            "Chunks can differ in length: receive into a buffer as long as what "
            "will arrive."
        )
    if isinstance(failure, WorldTimeout):
        return "It ran for too long. Is there a loop that never ends?"
    return "The message above names the rank and the line."


def hint_for_traffic(sent, tensor_bytes: int) -> str:
    """Return a nudge for sums that are right and bytes per rank that are not."""
    n = len(sent)
    if min(sent) == max(sent) == 2 * (n - 1) * tensor_bytes:
        return "Every message is as long as the whole tensor. Which part of it is new?"
    if max(sent) > min(sent) * 1.5:
        return "One rank sends much more than another. In a ring nobody is special."
    if sum(sent) > 2 * (n - 1) * tensor_bytes:
        return (
            "More travels than needed: how many steps has each lap, "
            "and how long is a chunk?"
        )
    return "Less travels than an all-reduce needs. Does everything go through comm?"
