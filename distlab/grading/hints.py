"""From what was observed to the first nudge, the most specific observation first."""

import re

from distlab.errors import (
    Deadlock,
    InvalidArgument,
    MessageMismatch,
    RankDied,
    WorldTimeout,
)

__all__ = [
    "UNKNOWN_NAME",
    "hint_for_counts",
    "hint_for_failure",
    "hint_for_traffic",
    "is_stub",
]


def hint_for_counts(
    counts, numbers: int, world_size: int, *, laps: int, some_complete: bool
) -> str:
    """Return a nudge for a number that holds these counts of the ranks' shares.

    laps: 1 for a reduce-scatter, 2 for an all-reduce. some_complete: whether other
    numbers do hold every share.
    """
    if counts is None:
        return (
            "These are not sums of what the ranks started with. "
            "Is a receive buffer used before it is filled?"
        )
    if max(counts) > 1 and laps == 1:
        return (
            "A share is added twice: is the chunk you send the one you added to last?"
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
    if laps == 2 and some_complete:
        return (
            "An incomplete chunk was passed on: with which chunk does the second lap "
            "begin?"
        )
    if laps == 2 and sum(counts) == 1:
        return (
            "Each number holds one rank's share only. Does your first lap add what "
            "arrives? If it does, with which chunk does the second lap begin?"
        )
    if sum(counts) == 1:
        return (
            "Each number holds one rank's share only. What arrives on the first lap "
            "has to be added to what is there, in the chunk that you send next."
        )
    if sum(counts) == world_size - 1:
        return (
            "One share is missing. How many steps does a chunk need to pass every rank?"
        )
    return (
        "Follow one chunk around the ring with a pencil: which rank has it after "
        "each step, and whose shares are in it?"
    )


def hint_for_failure(failure, words: dict[str, str] | None = None) -> str:
    """Return a nudge for a run that ended in a `WorldFailed`.

    words: an exercise's own, by kind of failure, where it has any.
    """
    return (_FAILURES | (words or {}))[_kind_of(failure)]


UNKNOWN_NAME = (
    "Is the name spelled right? For marks a notebook is run from top to bottom: what "
    "your function uses has to be defined above the check."
)
_ANYTHING_ELSE = "The message above names the rank and the line."
_FAILURES = {
    "unwritten": "Nothing of your own is written yet. Which chunk does rank r send "
    "first, and into which does it add?",
    "locked": "Nothing of your own does the work there: the library's is locked, since "
    "the algorithm itself is the exercise.",
    "left": "One rank left while others still wait for it. Does every rank make the "
    "same number of steps?",
    "all swap": "Everybody waits. Does each rank's dst expect it as its src? "
    "Send to the right, receive from the left.",
    "all wait": "Everybody waits. A send ends only when the receiver asks for it, so "
    "all ranks cannot send first; comm.sendrecv does both at once.",
    "dtype": "The buffer has another dtype than what arrives. torch.empty_like(chunk) "
    "makes one that fits.",
    "length": "Chunks can differ in length: receive into a buffer as long as what "
    "will arrive.",
    "outside": _ANYTHING_ELSE,
    "itself": _ANYTHING_ELSE,
    "unknown name": UNKNOWN_NAME,
    "timeout": "It ran for too long. Is there a loop that never ends?",
    "arguments": "The message shows the first line of your function, as it is now. "
    "Which arguments had it when it was handed out?",
    "generator": "A function with yield in it only makes a generator, of which nobody "
    "asks for a value here. What is to be given back with return?",
    "died": "A process ended, and nothing can tell at which line. Which call of yours "
    "ends one, as os._exit and os.kill do, or crashes in compiled code?",
    "other": _ANYTHING_ELSE,
}


def _kind_of(failure):
    """Return which of the usual mistakes a failure looks like."""
    cause, said = failure.cause, str(failure.cause)
    if isinstance(cause, NotImplementedError) and "is locked here" in said:
        return "locked"
    if is_stub(cause):
        return "unwritten"
    if isinstance(failure, Deadlock) and not failure.cycle:
        return "left"
    if isinstance(failure, Deadlock) or _all_wait(failure):
        return "all swap" if "waited in sendrecv" in str(failure) else "all wait"
    if isinstance(failure, RankDied):
        return "died"
    if type(cause) is TypeError and "and does not take that" in said:
        return "arguments"
    if type(cause) is TypeError and " made a generator, since " in said:
        return "generator"
    if type(cause) is NameError:
        return "unknown name"
    types = re.findall(r"bytes of (\w+)", said)
    if isinstance(cause, MessageMismatch) and len(set(types)) > 1:
        return "dtype"
    if isinstance(cause, MessageMismatch) or "size of tensor" in said:
        return "length"
    if isinstance(cause, InvalidArgument) and "is no rank of this world" in said:
        return "outside"
    if isinstance(cause, InvalidArgument) and "from itself" in said:
        return "itself"
    return "timeout" if isinstance(failure, WorldTimeout) else "other"


def _all_wait(failure):
    """Return whether time ran out with no rank at work: they have several threads."""
    said = str(failure)
    timeout = isinstance(failure, WorldTimeout) and " waited in " in said
    return timeout and " was running" not in said


def is_stub(cause: BaseException | None) -> bool:
    """Return whether a step is not written yet; torch has such errors of its own."""
    own = isinstance(cause, NotImplementedError)
    return own and str(cause) in ("", "write this step")


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
