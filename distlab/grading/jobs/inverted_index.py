"""The check of an inverted index: which word is in which files."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from distlab.dataflow.trial import Plan, Tried
from distlab.grading.jobs.check import (
    REMEMBERS,
    TRIED_AGAIN,
    WHOLE,
    JobCheck,
    plan_told,
)
from distlab.grading.jobs.index_hints import hint_for_list, hint_for_words
from distlab.grading.jobs.tables import beside
from distlab.grading.jobs.texts import index_of, named_lines, source_files

__all__ = ["InvertedIndex"]

_HEADS = "word", "expected", "yours"
_LINE_BYTES, _MOST_SPLITS = 12, 50


@dataclass
class InvertedIndex(JobCheck):
    """Each word once, with the sorted list of the files in which it is.

    functions: mapper and reducer. case: which files, such as "three files".
    """

    functions: Sequence[Callable]
    case: str

    @property
    def title(self):
        """Say what is tried."""
        return self.case

    def _judged(self):
        files = source_files(self.case)
        plans = _plans(files)
        tried, failed = self._trial(files).run(plans)
        expected = index_of(files)
        for number, (plan, job) in enumerate(zip(plans, tried, strict=False)):
            wrong = self._wrong(expected, job, plan, files)
            if wrong and plan.trouble:
                wrong = self._fail(wrong.found, TRIED_AGAIN)
            elif wrong and self._alone(plans, number):
                wrong = self._fail(wrong.found, REMEMBERS)
            if wrong:
                return wrong
        return self._failed(failed, plans) if failed else None

    def _wrong(self, expected, job: Tried, plan, files):
        """Return a verdict on one job."""
        where = f"On {plan_told(plan)}:\n"
        if not job.pairs:
            return self._fail(
                f"{where}There is no pair at all, and {len(expected)} are expected.",
                "The mapper gave no pairs. Each word of the line is a key.",
            )
        times = Counter(map(str, (key for key, _ in job.pairs)))
        yours = {str(key): value for key, value in job.pairs}
        odd = next((key for key, _ in job.pairs if type(key) is not str), None)
        if odd is not None:
            return self._fail(
                f"{where}There is a key {odd!r}, which is no word.",
                "The key is what the index is asked for, the word alone.",
            )
        words = sorted({*expected, *yours})
        several = next((word for word in words if times[word] > 1), None)
        if several is not None:
            values = [value for key, value in job.pairs if key == several]
            return self._fail(
                f"{where}{several!r} has {len(values)} values: {values!r:.60}",
                "A reducer that yields gives a key several values. Return one list.",
            )
        first = next((w for w in words if expected.get(w) != yours.get(w)), None)
        if first is None:
            return None
        rows = [(w, expected.get(w, []), _listed(yours.get(w, []))) for w in words]
        lines = [where.rstrip(), *beside(rows, words.index(first), _HEADS)]
        if (first in expected) != (first in yours):
            told, hint = hint_for_words(first, expected, yours, files)
        else:
            told, hint = hint_for_list(first, expected[first], yours[first], files)
        return self._fail("\n".join([*lines, told]), hint)


def _listed(value):
    """Return a value as the words of a table's cell."""
    return value if _is_names(value) else [repr(value)]


def _is_names(value):
    return type(value) is list and all(type(name) is str for name in value)


def _plans(files):
    """Return jobs on whole files, on some lines at a time, and on hardly one.

    In the last one the map task fails at a late line, and is tried again.
    """
    total = sum(map(len, files.values()))
    fine = max(_LINE_BYTES, total // _MOST_SPLITS)
    lines = [(name, line) for name, line in named_lines(files) if line.strip()]
    late = next(line for line in reversed(lines) if lines.count(line) == 1)
    return [
        Plan(1, 1, WHOLE),
        Plan(2, 3, 4 * fine),
        Plan(3, 2, fine),
        Plan(1, 1, WHOLE, trouble=("fails", *late)),
    ]
