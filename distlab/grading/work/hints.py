"""Nudges for shared work, the most specific observation first."""

import re
from collections import Counter

from distlab.errors import Deadlock, InvalidArgument, MessageMismatch
from distlab.grading.hints import hint_for_failure
from distlab.grading.work.done import (
    alike,
    dealt,
    in_a_row,
    surplus,
    to_the_least_loaded,
    undone,
)

__all__ = [
    "EVERYTHING",
    "hint_for_calls",
    "hint_for_failed_work",
    "hint_for_loads",
    "hint_for_messages",
    "hint_for_parts",
    "hint_for_result",
]

ALONE = "In a world of one rank, rank 0 is the only one. Who works then?"
EVERYTHING = (
    "One rank does everything, and the others have nothing to do. Which of the tasks "
    "could each of them take?"
)


def hint_for_failed_work(failure) -> str:
    """Return a nudge for a run of shared work that ended in a `WorldFailed`."""
    cause, said = failure.cause, str(failure.cause)
    if isinstance(cause, NotImplementedError) and "is locked here" not in said:
        return (
            "Nothing of your own is written yet. Which of the tasks are rank r's, and "
            "how does rank 0 learn what they gave?"
        )
    if isinstance(failure, Deadlock):
        return _hint_for_deadlock(failure)
    if "is not one of the tasks" in said:
        return (
            "work takes one task out of the list: not its place in the list, and not "
            "several tasks at once."
        )
    if isinstance(cause, InvalidArgument) and "itself" in said:
        return "Rank 0 has its own part already: it needs no message from itself."
    if isinstance(cause, InvalidArgument) and "no rank of this world" in said:
        return "Ranks go from 0 to n-1. With which rank does your loop begin and end?"
    if isinstance(cause, MessageMismatch):
        return (
            "What is sent with send_object is received with recv_object. A tensor "
            "needs a buffer of the same length and dtype."
        )
    if re.search("by zero|not be zero|modulo", said):
        if failure.trace.world_size == 1:
            return ALONE
        return "With fewer tasks than ranks, len(tasks) // comm.world_size is 0."
    return hint_for_failure(failure)


def _hint_for_deadlock(failure):
    if failure.cycle:
        return (
            "Everybody waits for somebody. For each message: which rank sends it, and "
            "does the other one ask for it at that moment?"
        )
    if failure.rank == 0:
        return (
            "Rank 0 has returned while another rank still has something for it. From "
            "how many ranks does rank 0 receive?"
        )
    return (
        "A rank waits for a message that is never sent. Does every rank send as often "
        "as rank 0 asks it, also a rank that has no task?"
    )


def hint_for_calls(tasks: list, done: list[list], *, assigned: bool) -> str:
    """Return a nudge for tasks that were not done exactly once.

    assigned: whether every rank had to work out an assignment of all tasks.
    """
    often, never = surplus(tasks, done), undone(tasks, done)
    n = len(done)
    if n > 1 and all(Counter(own) == Counter(tasks) for own in done):
        return (
            "Every rank does every task. Which of them are the tasks of rank r alone?"
        )
    equal = [task for task, times in Counter(tasks).items() if times > 1]
    if equal and {*often, *never} <= {*equal}:
        return (
            "Tasks that are equal are still tasks of their own. What tells them apart "
            "is their place in the list."
        )
    if often and any(len(set(ranks)) == 1 for ranks in often.values()):
        return "A rank does the same task again. How often does it go through its part?"
    if often and assigned:
        return (
            "The ranks do not agree who takes what. Each has to work out the same "
            "assignment for everybody, and only then pick its own part."
        )
    if often:
        return (
            "Two ranks take the same task. Where does the part of rank r end, and "
            "where does the next one begin?"
        )
    left_over = len(tasks) % n
    if left_over and never == list(dict.fromkeys(tasks[-left_over:])):
        return (
            "The last tasks are lost: the number of ranks does not divide theirs. Who "
            "does the remainder?"
        )
    if n == 1:
        return ALONE
    if not any(done):
        return "work was never called. It has to be, once for each task."
    if not done[0]:
        return "Rank 0 collects the results and does nothing else. Who does its part?"
    return (
        "Write down for each rank which places of the list it takes. Is every place "
        "there?"
    )


def hint_for_result(shown: str, holders: list[int]) -> str:
    """Return a nudge for a rank 0 that returned no number, or another rank's.

    shown: what it returned. holders: the ranks that returned the sum instead.
    """
    if holders:
        return "The sum ends on the wrong rank. In which direction do the parts travel?"
    if shown == "None":
        return "On rank 0 the function ends without a return of the sum."
    return "Rank 0 returns one number, the sum of all results."


def hint_for_parts(times, messages: int) -> str:
    """Return a nudge for a sum that holds each rank's part so many times.

    times: per rank, or None for no such sum; None too for a rank without tasks.
    """
    if times is None:
        return (
            "These are not the ranks' parts. Does a sum begin with 0, and does a rank "
            "that sends more than once send only what is new?"
        )
    if len(times) == 1:
        return "There is one rank: its own results are the whole sum."
    counted = [(rank, t) for rank, t in enumerate(times) if t is not None]
    there = [rank for rank, t in counted if t]
    if not messages and 0 in times:
        return (
            "No message was sent. Whatever rank 0 learns of the others has to arrive "
            "by a message."
        )
    if there == [0]:
        return "What arrives on rank 0 is not added to its own part."
    if any(t > 1 for _, t in counted):
        return "A part is added twice. Is it in what arrives, and added again?"
    if there in ([], [counted[-1][0]]):
        return (
            "What arrives last replaces what is there. It has to be added, and so has "
            "the part of rank 0 itself."
        )
    if times[0] == 0:
        return "The part of rank 0 itself is missing."
    return "From which ranks does rank 0 receive, and is everything that arrives added?"


def hint_for_loads(sizes: list[float], tasks: list, done: list[list]) -> str:
    """Return a nudge for loads that are too uneven."""
    n, size_of = len(done), dict(zip(tasks, sizes, strict=True))
    shares = [[size_of[task] for task in own] for own in done]
    smallest_first = to_the_least_loaded(sorted(sizes), n)
    sorted_and_dealt = dealt(sorted(sizes, reverse=True), n)
    if len([own for own in done if own]) == 1:
        return EVERYTHING
    if in_a_row(tasks, done):
        return (
            "Each rank takes neighbours of the list, whatever their size. The list is "
            "not sorted for you: large tasks can stand side by side."
        )
    if alike(done, dealt(tasks, n)):
        return (
            "The tasks are dealt in turn, whatever their size, and all large ones can "
            "fall to one rank. Whose turn should it be instead?"
        )
    if alike(shares, to_the_least_loaded(sizes, n)):
        return (
            "Each task goes to whoever has least so far, and a large one comes late, "
            "when all have something. In which order should they be placed?"
        )
    if alike(shares, smallest_first) or alike(shares, sorted_and_dealt):
        return (
            "To sort the tasks is half of it. Is the largest one placed first, and "
            "does the next one go to whoever has least, or to whose turn it is?"
        )
    return (
        "Keep for every rank the seconds that it has so far. Which task do you place "
        "first, and with whom?"
    )


def hint_for_messages(sent: list[int]) -> str:
    """Return a nudge for more messages than ranks that have something to say.

    sent: messages per rank.
    """
    if sent[0]:
        return (
            "Nobody has to be told what to do: every rank knows all sizes, and can "
            "work out by itself what rank 0 would tell it."
        )
    return (
        "A message per task is more than rank 0 needs. What could a rank do with its "
        "results before it sends them?"
    )
