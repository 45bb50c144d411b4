"""First nudges for ranks that speak in turn, the most specific observation first."""

from itertools import pairwise

from distlab.errors import (
    CollectiveMismatch,
    Deadlock,
    InvalidArgument,
    MessageMismatch,
    WorldTimeout,
)
from distlab.grading.hints import hint_for_failure
from distlab.grading.probes import MARKS
from distlab.grading.turns.causality import answers, known_when, links

__all__ = [
    "MESSAGES_ONLY",
    "NEVER_WAITED",
    "hint_for_break",
    "hint_for_calls",
    "hint_for_failed_turns",
    "hint_for_messages",
]

MESSAGES_ONLY = (
    "Write it from send and receive alone. A barrier or a collective has everybody "
    "wait for everybody; here one rank needs to know one thing, that the one before it "
    "has spoken."
)
NEVER_WAITED = (
    "isend and irecv only begin a message. Call wait() on what they return; until then "
    "it may never arrive."
)


def hint_for_calls(act: str, calls: list[int], wanted: int) -> str:
    """Return a nudge for ranks that called `act` not as often as `wanted`."""
    if not any(calls):
        return f"Nobody called it. A call has brackets: {act}(), and not {act}."
    if wanted == 0:
        return "In no rounds nobody speaks. Is there a speak() outside of your loop?"
    if len(calls) > 1 and set(calls) == {wanted * len(calls)}:
        return (
            "Every rank runs the whole of your function, so a loop over all ranks runs "
            "on each of them. What does one rank do, whose number is comm.rank?"
        )
    if wanted > 1 and set(calls) == {1}:
        return f"Everybody calls {act}() in one round only. Which lines must repeat?"
    rank = next(r for r, count in enumerate(calls) if count != wanted)
    if calls[rank] > wanted:
        return (
            f"Follow rank {rank} through your function line by line, also past the end "
            f"of an if: how often does it come to {act}()?"
        )
    return (
        f"Follow rank {rank} through your function: which branch does it take, and "
        f"where in it is {act}()?"
    )


def hint_for_break(trace, turns, place: int) -> str:
    """Return a nudge for a turn that began before its rank could know it may."""
    last, turn = turns[place - 1 : place + 1]
    in_order = all(b.begin_s >= a.end_s for a, b in pairwise(turns))
    if not any(trace.messages_sent(rank) for rank in range(trace.world_size)):
        if in_order:
            return (
                "By the clock it came out right, and without a message that is luck. "
                "On a slower machine a rank may need longer than you let the next one "
                f"wait: from whom can rank {turn.rank} learn that it may speak?"
            )
        return (
            "Nobody sent a message, and a rank sees nothing else of another. "
            f"From whom can rank {turn.rank} learn that it may speak?"
        )
    return (
        _hint_between(trace, last, turn)
        or _hint_for_answer(trace, last, turn)
        or _hint_for_others(trace, last, turn)
    )


def _hint_between(trace, last, turn):
    """Return a nudge for a message from the one to the other, at the wrong time."""
    between = [
        message
        for message in trace.messages()
        if (message.send.rank, message.send.peer) == (last.rank, turn.rank)
    ]
    early = [send for send, recv in between if recv.end <= turn.begin_s]
    due = turn.round + (turn.rank > 0)  # rank 0 begins round 1 without a message
    if len(early) >= due:
        return (
            f"The message of rank {last.rank} left before rank {last.rank} had "
            "finished speaking. Speak first, then send."
        )
    if any(send.start >= last.end_s for send, _ in between):
        return (
            f"Rank {turn.rank} speaks, and receives the message of rank {last.rank} "
            "only afterwards. Receive first, then speak."
        )
    return None


def _hint_for_answer(trace, last, turn):
    """Return a nudge for an order that rests on sends which wait for their receiver."""
    both = links(trace) + answers(trace)
    known = known_when(both, trace.world_size, last.rank, last.end_s)
    if turn.begin_s < known[turn.rank]:
        return None
    return (
        f"Rank {turn.rank} learns it only because a send of its own waits until it is "
        "received, which not every transport does for a short message. Let the message "
        "go from the rank that has spoken to the one that waits."
    )


def _hint_for_others(trace, last, turn):
    heard = [
        recv
        for _, recv in trace.messages()
        if recv.rank == turn.rank and recv.end <= turn.begin_s
    ]
    if turn.rank == 0 and turn.round:
        return (
            f"Round {turn.round + 1} overtakes round {turn.round}: rank 0 goes on "
            "as soon as its own turn is over. From whom can it learn that all have "
            "spoken?"
        )
    if heard:
        teller = max(heard, key=lambda recv: recv.end).peer
        if teller > turn.rank and not turn.round:
            return (
                f"Rank {turn.rank} speaks when it has heard from rank {teller}, which "
                "comes after it. Which rank is the first of all?"
            )
        return (
            f"Rank {turn.rank} speaks when it has heard from rank {teller}. What does "
            f"rank {teller} know of rank {last.rank} when it sends that message?"
        )
    return (
        f"Rank {turn.rank} speaks before any message has reached it. Which one should "
        "it wait for?"
    )


def hint_for_messages(trace) -> str:
    """Return a nudge for an order that took more messages than it needs."""
    pairs = [{send.rank, send.peer} for send, _ in trace.messages()]
    in_all = set.intersection(*pairs)
    if trace.world_size > 3 and in_all:
        return (
            f"Each message begins or ends at rank {min(in_all)}. Who has spoken can "
            "tell the next one without it."
        )
    return (
        "A turn needs one message, from who has spoken to who is next. Which of yours "
        "tell nobody anything new?"
    )


def hint_for_failed_turns(failure) -> str:
    """Return a nudge for a run that ended in a `WorldFailed`."""
    cause, said = failure.cause, str(failure.cause)
    if isinstance(cause, NotImplementedError) and "locked" in said:
        return MESSAGES_ONLY
    if isinstance(cause, NotImplementedError):
        return (
            "Nothing of your own is written yet. Which rank may speak without waiting "
            "for anybody?"
        )
    if isinstance(failure, CollectiveMismatch):
        return MESSAGES_ONLY
    if isinstance(cause, InvalidArgument):
        return _hint_for_peer(failure, said)
    if isinstance(cause, MessageMismatch):
        return (
            "What is sent with send_object is received with recv_object, and what is "
            "sent with send with recv, into a tensor of the same length and type."
        )
    if isinstance(failure, Deadlock):
        return _hint_for_deadlock(failure)
    if isinstance(failure, WorldTimeout):
        return _hint_for_timeout(failure)
    return hint_for_failure(failure)


def _hint_for_timeout(failure):
    if "which was in transfer" in str(failure):
        return NEVER_WAITED
    if not any(event.kind in ("send", "recv") for event in failure.trace.events):
        return (
            "No rank sends, and each has a memory of its own: a loop that waits until "
            "another rank has changed a variable never ends. What can a rank wait for?"
        )
    return hint_for_failure(failure)


def _hint_for_peer(failure, said):
    if failure.trace.world_size == 1:
        return (
            "This world has one rank. It has nobody to wait for and nobody to tell; "
            "does your function know?"
        )
    if "itself" in said:
        return (
            "A rank names itself as the other side of a message. Which rank comes "
            "before it, and which after it?"
        )
    if said.startswith("dst"):
        return (
            "Nobody comes after the last rank, whatever its number is. Must it tell "
            "anybody, and whom?"
        )
    if said.startswith("src"):
        return "Nobody comes before rank 0. Must it wait for anybody, and for whom?"
    return hint_for_failure(failure)


def _hint_for_deadlock(failure):
    trace = failure.trace
    waits = [e for e in trace.events if e.end is None and e.peer is not None]
    if not failure.cycle:
        wait = next(event for event in waits if event.peer == failure.rank)
        if wait.kind == "recv":
            return (
                f"Rank {wait.peer} left, and rank {wait.rank} still waits for its "
                "message. Does every rank that has spoken tell the next one?"
            )
        if wait.rank == trace.world_size - 1:
            return (
                f"Rank {wait.rank} is the last, and rank {wait.peer} waits for no "
                "message any more. Who has to know of the last turn?"
            )
        return (
            f"Rank {wait.rank} sends, and rank {wait.peer} never receives from it. "
            "Each send needs its receive."
        )
    kinds = {event.kind for event in waits if event.rank in failure.cycle}
    spoken = any(event.label == MARKS[1].format("speak") for event in trace.events)
    if kinds == {"recv"} and not spoken:
        return (
            "Everybody waits to receive, so nobody ever sends. Who begins? One rank "
            "may speak without waiting."
        )
    if kinds == {"recv"}:
        return (
            "Everybody waits to receive. Who has spoken and has told nobody yet? It "
            "should send before it waits again."
        )
    return (
        "A send ends only when the other side asks for it, with a receive that names "
        "the sender. Which rank should receive now, and from whom?"
    )
