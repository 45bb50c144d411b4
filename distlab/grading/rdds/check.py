"""`RddCheck`: try a learner's functions on RDDs, and compare what was seen."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from distlab.calls.travel import pack_functions
from distlab.cells import in_cells
from distlab.errors import CannotTravel, ProcessServerFailed
from distlab.grading.verdict import Verdict
from distlab.processes.apart import TrialTimeout, ask

__all__ = ["NARROW", "RddCheck"]

_DRIVER = "distlab.dataflow.trial.rdd_driver"
NARROW = {
    "map",
    "flatMap",
    "filter",
    "mapPartitions",
    "mapPartitionsWithIndex",
    "mapValues",
    "flatMapValues",
    "keyBy",
    "keys",
    "values",
    "glom",
}


@dataclass
class RddCheck:
    """A function under test, and the name of the case to try it on.

    A check names its `_scene`, makes a case of its name in `_case`, and says in
    `_wrong(case, seen)` what is wrong with what was seen of it, or None.

    The driver's program runs in a Python of its own, with an engine of its own. Truth
    is worked out when it has ended, and what it gave is plain data by then.
    """

    function: Callable
    name: str

    _hints: ClassVar[dict[str, str]] = {}
    _timeout_s: ClassVar[int] = 40

    @property
    def title(self):
        """Say what is tried."""
        return self.name

    def judge(self) -> Verdict:
        """Run the case and compare; never raises for what the learner wrote."""
        case = self._case()
        try:
            packed = pack_functions((self.function,), "a worker")
            task = {"scene": self._scene, "packed": packed, "case": case}
            said = ask(_DRIVER, task, timeout_s=self._timeout_s)
        except CannotTravel as error:
            return self._fail(_told(error), _HINTS["own context"])
        except TrialTimeout:
            found = f"The jobs still ran after {self._timeout_s} s."
            return self._fail(found, (_HINTS | self._hints)["endless"])
        except ProcessServerFailed:
            raise
        except RuntimeError:
            found = "The process in which your function was called gave no answer."
            return self._fail(found, _HINTS["died"])
        if said["failed"]:
            return self._failed(said["failed"])
        return self._wrong(case, said["seen"]) or Verdict("pass", self.title)

    def _fail(self, found, hint):
        return Verdict("fail", self.title, found, hint)

    def _inconclusive(self, found):
        return Verdict("inconclusive", self.title, found)

    def _failed(self, failed):
        """Return the verdict for a case that raised."""
        story = in_cells(failed["story"])
        if failed["disk"]:
            return self._inconclusive(story)
        hints = _HINTS | self._hints
        return self._fail(story, hints.get(_kind_of(failed), ""))

    def _not_an_rdd(self, seen):
        """Return a verdict if a job ran too early, or no RDD came of the one given."""
        if seen["jobs"]:
            action, size, touched = seen["jobs"][0]
            found = (
                f"Before anybody asked for a result, your function ran {action}, which "
                f"brought {size:,} bytes to the driver."
            )
            hint = self._hints["action"]
            if not touched:
                hint = self._hints.get("action elsewhere", hint)
            return self._fail(found, hint)
        if "names" not in seen:
            returned = _shown(seen["returned"])
            found = f"The function returned {returned}."
            return self._fail(found, _HINTS["no rdd"])
        if not seen["from_given"]:
            found = "The RDD that came back is not made from the one that was given."
            hint = "Only the given RDD holds the data: begin with one of its methods."
            return self._fail(found, hint)
        return None


def _shown(value):
    if isinstance(value, dict):
        return (
            f"{value['shown']} (a {value['kind']})" if "shown" in value else "a tuple"
        )
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


_HINTS = {
    "no rdd": "Return the RDD itself. It is a recipe; who calls your function asks for "
    "its contents.",
    "unwritten": "Nothing of your own is written yet. Which part of the work can each "
    "partition do alone, before anything is sent?",
    "own context": "Your function is tried in another Python, with a Context of its "
    "own. Take what the function is given; an RDD knows its Context as rdd.context.",
    "died": "Return from your function. One that ends its process, or writes where it "
    "has nothing to write, has no result.",
    "endless": "It ran for too long. Is there a loop that never ends?",
    "locked": "The check's own answers are locked where your functions run.",
    "side effect": "What your function writes is there on one machine, and the workers "
    "may be on others. What they need travels with a function, or as a broadcast.",
    "tampered": "The engine is given. What it counts is counted as it is.",
    "nested": "Only the driver can use an RDD or the Context. A function that runs on "
    "workers gets along with its records and with what travels with it.",
    "ordered": "Keys need not have an order: some here are numbers, some are words, "
    "one is None. A dictionary needs only that they can be hashed.",
    "handle": "What a broadcast returns is a handle, and the value is its .value.",
    "destroyed": "When your function returns, nothing has run yet. Whatever the work "
    "will need has to be there until then.",
    "walked": "An iterator over a partition can be walked through only once.",
}


def _told(error):
    """Return why a function cannot travel; of a Context or an RDD only its name."""
    used = re.search(r"the variable `(\w+)[^`]*`, used by `([^`]+)`", str(error))
    if used and "cannot start a job" in str(error):
        return f"`{used[2]}` uses `{used[1]}`, which is the notebook's."
    return str(error)


_WITH_ZERO = re.compile(
    "'int' and '(str|list)'|'int' object is not iterable|type 'int'|'NoneType'"
)


def _kind_of(failed):
    """Return which of the usual mistakes a failure looks like."""
    kind, said = failed["kind"], failed["said"]
    if kind == "NotImplementedError":
        return "unwritten"
    if kind in ("Ended", "SystemExit"):
        return "died"
    if "locked" in said:
        return "locked"
    if "(a side effect)" in said:
        return "side effect"
    if kind == "NestedRDD":
        return "nested"
    if "not supported between instances" in said:
        return "ordered"
    if "ReceivedBroadcast" in said or "'Broadcast' object" in said:
        return "handle"
    if "is no (key, value) pair" in said:
        return "no pair"
    if "has been destroyed" in said:
        return "destroyed"
    if "reduce() of empty iterable" in said:
        return "walked"
    if kind == "TypeError" and _WITH_ZERO.search(said):
        return "zero"
    if kind in ("ZeroDivisionError", "KeyError", "IndexError"):
        return "empty"
    if "only a local checkpoint" in said:
        return "forgets"
    if "is parsed in the driver" in said:
        return "driver"
    if "is the engine's, and" in said:
        return "tampered"
    if "could not convert string to float" in said or "is no line of" in said:
        return "own parse"
    return "other"
