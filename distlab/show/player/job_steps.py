"""The steps of a job: attempts that end, workers that die and tasks assigned then."""

from dataclasses import dataclass, field

from distlab.show.reading.alt_text import capital
from distlab.show.reading.attempts import Try, WorkerDeath
from distlab.units import readable_seconds

__all__ = ["Moment", "described", "moments_of"]

_MOST, _MOST_SAID = 400, 6


@dataclass
class Moment:
    """The events of one step: results and deaths, and then the tasks assigned.

    kind: of the task that was assigned last. merged: the number of moments in it.
    """

    at_s: float
    ended: list[Try] = field(default_factory=list)
    kills: list[WorkerDeath] = field(default_factory=list)
    begun: list[Try] = field(default_factory=list)
    kind: str = ""
    merged: int = 1


def moments_of(attempts) -> list[Moment]:
    """Return the moments in order; neighbours together if they are very many."""
    happened = [(kill.at_s, 0, 0, kill) for kill in attempts.kills]
    happened += [(e.start, 2, at, e) for at, e in enumerate(attempts.tries)]
    happened += [
        (e.end, 1, at, e) for at, e in enumerate(attempts.tries) if e.fate != "lost"
    ]
    happened.sort(key=lambda each: each[:3])
    moments = []
    for at_s, what, _, thing in happened:
        last = moments[-1] if moments else None
        if last is None or what == 0 or (what == 1 and last.begun):
            last = Moment(at_s)
            moments.append(last)
        (last.kills, last.ended, last.begun)[what].append(thing)
        last.at_s = max(last.at_s, at_s)
    kind = ""
    for moment in moments:
        kind = moment.kind = ([e.kind for e in moment.begun] or [kind])[-1]
    return _fewer(moments)


def _fewer(moments):
    """Return at most about _MOST moments; those with a death stay by themselves."""
    size, fewer = -(-len(moments) // _MOST), []
    for moment in moments:
        last = fewer[-1] if fewer else None
        if last and last.merged < size and not (last.kills or moment.kills):
            last.ended += moment.ended
            last.begun += moment.begun
            last.at_s, last.kind = moment.at_s, moment.kind
            last.merged += 1
        else:
            fewer.append(moment)
    return fewer


def described(moment, attempts) -> str:
    """Return sentences on the events of a moment."""
    who = attempts.trace.who
    begun = {each.worker: each for each in moment.begun}
    said = [
        f"{kill.described(who)}. Another process takes its place"
        for kill in moment.kills
    ]
    for each in moment.ended:
        words = f"{who} {each.worker} {_ended(each, attempts)}"
        if moment.merged == 1 and each.worker in begun and each.fate != "given up":
            words += f" and {_begun(begun.pop(each.worker), attempts)}"
        said.append(words)
    for worker, each in sorted(begun.items()):
        said.append(f"{who} {worker} {_begun(each, attempts)}")
    if not moment.begun and moment.ended and moment.at_s >= attempts.last_s:
        said.append("every task is done")
    more = len(said) - _MOST_SAID
    if more > 1:
        said = [*said[:_MOST_SAID], f"and {more} more such things happen"]
    return " ".join(f"{capital(words)}." for words in said)


def _ended(each, attempts):
    if each.fate == "late":
        return f"finishes {each.task}, too late: another was first"
    if each.fate == "failed":
        return f"fails at {each.task}"
    if each.fate == "given up":
        return f"is still at {each.task}, whose result is no longer needed"
    return f"finishes {each.task}"


def _begun(each, attempts):
    if each.backup:
        first = next(
            other
            for other in attempts.tries
            if other.task == each.task and other.start < each.start < other.end
        )
        lasts = readable_seconds(each.start - first.start)
        who = f"{attempts.trace.who} {first.worker}"
        return f"takes {each.task} as a backup: {who} has been at it for {lasts}"
    return f"takes {each.task}" + (" again" if each.again else "")
