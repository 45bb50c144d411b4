"""`JobCheck`: try a learner's functions in jobs, and compare what was seen."""

import re
from collections.abc import Sequence
from typing import ClassVar

from distlab.dataflow.trial import Failed, Plan, Trial, TrialTimeout
from distlab.errors import CannotTravel, ProcessServerFailed
from distlab.grading.verdict import Verdict

__all__ = ["ONCE", "REMEMBERS", "TRIED_AGAIN", "WHOLE", "JobCheck", "plan_told"]

WHOLE = 2**20  # bytes: a split this large holds any of these inputs
_ENDLESS = "It ran for too long. Is there a loop that never ends?"
REMEMBERS = (
    "On one worker it is right. What a function remembers from one call to the next "
    "stays in its own process, and other workers know nothing of it."
)
TRIED_AGAIN = (
    "The same task ran twice in one process. What a function remembered from the first "
    "time is still there, and was taken for the lines' own."
)
ONCE = (
    "The values come as an iterator, which has no length and no order, and can be gone "
    "through once: whoever goes a second time finds nothing. list(values) keeps them."
)


class JobCheck:
    """Functions under test; a check says in `_judged` what is wrong, or None.

    The jobs run elsewhere, on worker processes, and the functions in processes beside
    these. Truth is worked out when they have ended; what they gave is plain data.
    """

    _hints: ClassVar[dict[str, str]] = {}
    _timeout_s = 60  # one job takes 0.1 s, but others may be at work on the machine

    def judge(self) -> Verdict:
        """Run the jobs and compare; never raises for what the learner wrote."""
        try:
            return self._judged() or Verdict("pass", self.title)
        except CannotTravel as error:
            return self._fail(
                str(error), "A function travels to the workers with all that it uses."
            )
        except TrialTimeout:
            return self._fail(
                f"The jobs still ran after {self._timeout_s} s.", _ENDLESS
            )
        except ProcessServerFailed:
            raise
        except RuntimeError as error:
            return self._fail(str(error), _HINTS["died"])

    def _trial(self, files, **more):
        four = [*self.functions, None, None][:4]
        return Trial(four, files, timeout_s=self._timeout_s, **more)

    def _fail(self, found, hint):
        return Verdict("fail", self.title, found, hint)

    def _inconclusive(self, found):
        return Verdict("inconclusive", self.title, found)

    def _failed(self, failed: Failed, plans: Sequence[Plan]):
        """Return the verdict for a job that failed; those before it were right."""
        story = failed.story.replace("  Nothing of the job's output is left.", "")
        if failed.task not in ("partitioning", "fitting"):
            story = f"On {plan_told(plans[failed.plan])}:\n{story}"
        kind = _kind_of(failed)
        if kind == "other" and plans[failed.plan].trouble:
            kind = "tried again"
        elif kind == "other" and self._alone(plans, failed.plan):
            kind = "remembers"
        return self._fail(story.rstrip(), (_HINTS | self._hints)[kind])

    def _alone(self, plans, number):
        """Whether a job before this one was done by one worker, and this one not."""
        before = [plan.workers for plan in plans[:number]]
        return 1 in before and plans[number].workers > 1


_HINTS = {
    "unfit": "Leave the arguments as the stub has them.",
    "one argument": "A mapper with two arguments is given the file's name before the "
    "line.",
    "unwritten": "Nothing of your own is written yet. What is a pair's key, so that "
    "all that belongs together meets in one call of the reducer?",
    "side effect": "A task may run twice, after a death or as a backup, and what it "
    "wrote is then there twice. What a function has to say it yields or returns.",
    "locked": "The check's own answers are locked where your functions run.",
    "no pairs": "Whoever calls the mapper goes over what it gives, and takes each as a "
    "pair: yield key, value.",
    "keys": "Keys are hashed and sorted. Take strings, numbers, or tuples of them.",
    "lookup": "The partitioner is given the whole key, which is (name, first word). "
    "What it looks up has to be there for every key: which part of it did you keep?",
    "float": "The number of a reducer is an int. / gives a float, // an int.",
    "iterator": ONCE,
    "nothing": "The combiner returned None, and that takes the place of the values. "
    "Does it return what stands for them?",
    "partition": "reducers is how many there are; they are numbered from 0 on.",
    "no function": "What is returned has to be a function, of a key and of the number "
    "of reducers, that returns the number of one of them.",
    "died": "The function ends its own process, so no worker can ever do the task.",
    "mixed": "The reducer meets two kinds of values: those of the mapper, where a key "
    "had only one, and those of the combiner. They have to be of the same kind. A "
    "combiner returns the value alone, without the key.",
    "again": "The combiner is also given what it made itself, together with what the "
    "mapper gave. It has to return the same kind of value as the mapper gives, and the "
    "value alone, without the key.",
    "tried again": TRIED_AGAIN,
    "remembers": REMEMBERS,
    "other": "The message above names the task, the record and the line.",
}


_TWICE = r"has no len|(iterator|generator|chain|map)' object|division by zero|got 0\)"
_NO_KEYS = "cannot be hashed", "are sorted", "hash may differ from process"


def _kind_of(failed):
    """Return which of the usual mistakes a failure looks like."""
    if failed.kind == "NotImplementedError":
        return "unwritten"
    if failed.kind == "OneArgument":
        return "one argument"
    if failed.kind == "InvalidArgument" and failed.task == "fitting":
        return "unfit"
    if "(a side effect)" in failed.said:
        return "side effect"
    if "the checks are locked" in failed.said:
        return "locked"
    if "cannot be done: its worker" in failed.story or failed.kind == "Ended":
        return "died"
    if failed.kind == "InvalidArgument":
        return "no function"
    if "the partitioner returned" in failed.said:
        return "float" if re.search(r"returned -?\d+\.", failed.said) else "partition"
    if "yield key, value" in failed.said:
        return "no pairs"
    if any(words in failed.said for words in _NO_KEYS):
        return "keys"
    if failed.kind == "KeyError" and "The partitioner was" in failed.story:
        return "lookup"
    if "NoneType" in failed.said and "The combiner" in failed.story:
        return "nothing"
    if "NoneType" in failed.said and "The reducer" in failed.story and failed.plan:
        return "nothing"
    if re.search(_TWICE, failed.said):
        return "iterator"
    if failed.kind in ("TypeError", "ValueError", "AttributeError", "IndexError"):
        if "The combiner was" in failed.story:
            return "again"
        if "The reducer was" in failed.story and failed.plan:
            return "mixed"
    return "other"


def plan_told(plan: Plan) -> str:
    """Return the shape of a plan's job in words."""
    cut = "" if plan.split_bytes >= WHOLE else f", splits of {plan.split_bytes} bytes"
    workers = f"{plan.workers} worker{'s' * (plan.workers > 1)}"
    return f"{workers}, {plan.reducers} reducer{'s' * (plan.reducers > 1)}{cut}"
