"""What a rank did in a step, read from its notes, and where that goes wrong.

gradient 4.bias · gradient 4.weight · start 0 · gradient 2.bias · ... · wait 0
                                      └ as soon as bucket 0 is full, and not later
"""

from collections import Counter
from itertools import zip_longest
from typing import NamedTuple

from distlab.grading.gradients.notes import Seen

__all__ = [
    "Misstep",
    "accumulating",
    "around",
    "calls_of",
    "disagreement",
    "first_misstep",
    "in_words",
    "wrong_calls",
]

_CALLS = ("call", "start", "side")
_AROUND = 7


class Misstep(NamedTuple):
    """What went wrong in a step: which mistake, where in the notes, and in a sentence.

    kind: "accumulating", "side", "single", "type", "size", "early", "order",
        "repeated", "missing", "left full", "blocking", "after", "late", "waits",
        "between", "never waits" or "left".
    """

    kind: str
    at: int
    told: str


def calls_of(step: list[Seen]) -> list[str]:
    """Return which buckets were all-reduced, in their order, or "no bucket"."""
    return [_bucket_of(seen) for seen in step if seen.kind in _CALLS]


def _bucket_of(seen):
    return "no bucket" if seen.what[0] == "?" else seen.what[0]


def first_misstep(
    step: list[Seen], buckets: list[list[str]], microbatches: int
) -> Misstep | None:
    """Return the first thing that a rank did wrong in a step with hooks, or None."""
    wrong = (
        accumulating(step, microbatches)
        or _incomplete(step, buckets)
        or _out_of_turn(step)
        or wrong_calls(step, buckets)
    )
    if wrong or not _has_ended(step):
        return wrong
    return _too_late(step, buckets, microbatches) or _wrong_wait(step)


def accumulating(step: list[Seen], microbatches: int) -> Misstep | None:
    """Return the first all-reduce before the last microbatch, or None."""
    current = -1
    for at, seen in enumerate(step):
        if seen.kind == "microbatch":
            current = int(seen.what[0])
        if seen.kind in _CALLS and 0 <= current < microbatches - 1:
            told = (
                f"there is an all-reduce in microbatch {current + 1} of {microbatches}."
            )
            return Misstep("accumulating", at, told)
    return None


def wrong_calls(step: list[Seen], buckets: list[list[str]]) -> Misstep | None:
    """Return the first all-reduce that is of no bucket, or one too many or missing.

    In a step that has not ended nothing is missing yet.
    """
    calls = [(at, seen) for at, seen in enumerate(step) if seen.kind in _CALLS]
    sent = set()
    for at, seen in calls:
        number = seen.what[0]
        if number == "?":
            return _not_a_bucket(at, seen)
        if number in sent:
            told = f"bucket {number} was sent more than once."
            return Misstep("repeated", at, told)
        sent.add(number)
    for number, bucket in enumerate(buckets if _has_ended(step) else []):
        if f"{number}" not in sent:
            told = f"bucket {number}, {in_words(bucket)}, was never sent."
            full = {s.what[0] for s in step if s.kind == "gradient"}.issuperset(bucket)
            return Misstep("left full" if full else "missing", len(step) - 1, told)
    return None


def _has_ended(step):
    return bool(step) and step[-1].kind == "end"


def _incomplete(step, buckets):
    """Return the first all-reduce of a bucket whose gradients are not all in it."""
    for at, seen in enumerate(step):
        if seen.kind == "side":
            told = "a function of your own was started, and called all_reduce there."
            return Misstep("side", at, told)
        if seen.kind in _CALLS and seen.what[0] != "?" and seen.what[1:]:
            number, names = int(seen.what[0]), seen.what[1:]
            told = (
                f"bucket {number}, {in_words(buckets[number])}, was sent without the "
                f"whole gradient of {in_words(names)}."
            )
            return Misstep("early", at, told)
    return None


def _out_of_turn(step):
    """Return the first bucket that was sent before one that is before it."""
    calls = [(at, seen.what[0]) for at, seen in enumerate(step) if seen.kind in _CALLS]
    later = {number for _, number in calls}
    for place, (at, number) in enumerate(calls):
        if number != "?" and int(number) > place and f"{place}" in later:
            told = f"bucket {number} was sent before bucket {place}."
            return Misstep("order", at, told)
    return None


def _not_a_bucket(at, seen):
    if len(seen.what) == 3:
        _, found, right = seen.what
        told = f"one all-reduce is of {found}, and its bucket's parameters of {right}."
        return Misstep("type", at, told)
    if seen.what[1:]:
        told = f"one all-reduce is as long as the gradient of {seen.what[1]} alone."
        return Misstep("single", at, told)
    return Misstep("size", at, "one all-reduce is of another size than every bucket.")


def _too_late(step, buckets, microbatches):
    """Return the first bucket that was full, and not started at once."""
    arrived = [at for at, seen in enumerate(step) if seen.kind == "gradient"]
    times = Counter(seen.what[0] for seen in step if seen.kind == "gradient")
    if not arrived or any(times[n] < microbatches for b in buckets for n in b):
        return None
    last_of = {step[at].what[0]: at for at in arrived}
    starts = [at for at, seen in enumerate(step) if seen.kind in _CALLS]
    blocking = [at for at in starts if step[at].kind == "call"]
    if blocking and blocking[0] < arrived[-1]:
        told = "all_reduce was called, and backward stood still until it had ended."
        return Misstep("blocking", blocking[0], told)
    ready = -1
    for number, bucket in enumerate(buckets):
        ready = max(ready, *(last_of[name] for name in bucket))
        meanwhile = [at for at in arrived if ready < at < starts[number]]
        if meanwhile:
            told = (
                f"bucket {number} was full when the gradient of {step[ready].what[0]} "
            )
            told += "was there,"
            if starts[0] > arrived[-1]:
                told = "the first all-reduce was started when backward had ended."
                return Misstep("after", starts[0], told)
            told += f" and was started {_counted(len(meanwhile))} later."
            return Misstep("late", starts[number], told)
    return None


def _counted(gradients):
    return "1 gradient" if gradients == 1 else f"{gradients} gradients"


def _wrong_wait(step):
    """Return a wait too early, one that is missing, or a hook that is left."""
    arrived = [at for at, seen in enumerate(step) if seen.kind == "gradient"]
    for at, seen in enumerate(step):
        if seen.kind == "wait" and arrived and at < arrived[-1]:
            told = f"backward stood still to wait for bucket {seen.what[0]}."
            return Misstep("waits", at, told)
    starts = [at for at, seen in enumerate(step) if seen.kind in _CALLS]
    for at, seen in enumerate(step):
        later = [step[start].what[0] for start in starts if start > at]
        if seen.kind in ("wait", "call") and later:
            told = f"it waited for bucket {seen.what[0]}, "
            told += f"while bucket {later[0]} was not started yet."
            return Misstep("between", at, told)
    waited = {seen.what[0] for seen in step if seen.kind == "wait"}
    for at, seen in enumerate(step):
        if seen.kind == "start" and seen.what[0] not in waited:
            told = f"nothing waited for bucket {seen.what[0]}."
            return Misstep("never waits", at, told)
        if seen.kind == "left":
            told = f"{seen.what[0]} still has a hook of yours after the step."
            return Misstep("left", at, told)
    return None


def around(step: list[Seen], at: int) -> str:
    """Return what a rank did around a moment, the moment itself in brackets."""
    first = max(0, at - _AROUND)
    words = []
    for place, seen in enumerate(step[first : at + _AROUND], first):
        word = seen.what[0] if seen.kind == "gradient" else _shown(seen)
        words.append(f"[{word}]" if place == at else word)
    before = "… " * (first > 0)
    return before + " · ".join(words) + " …" * (at + _AROUND < len(step))


def _shown(seen):
    if seen.kind == "microbatch":
        return f"microbatch {int(seen.what[0]) + 1}"
    if seen.kind in _CALLS:
        verb = "start" if seen.kind == "start" else "all_reduce"
        return (
            f"{verb} of no bucket" if seen.what[0] == "?" else f"{verb} {seen.what[0]}"
        )
    return " ".join([seen.kind, *seen.what])


def disagreement(steps: list[list[list[Seen]]]) -> tuple[int, list[list[str]]] | None:
    """Return the first step in which ranks sent buckets in another order than others.

    steps: for each rank its steps. A rank that is behind does not differ by that.
    Returns: the step, and for each rank what it sent there.
    """
    for number, at_once in enumerate(zip_longest(*steps, fillvalue=[])):
        calls = [calls_of(step) for step in at_once]
        if any(len(set(one) - {None}) > 1 for one in zip_longest(*calls)):
            return number, calls
    return None


def in_words(names: list[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    head = ", ".join(names[:-1])
    return f"{head} and {names[-1]}" if head else names[-1]
