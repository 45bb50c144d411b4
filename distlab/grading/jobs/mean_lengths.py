"""The check of a combiner and a partitioner: means, bytes, and who gets how many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from distlab.dataflow.trial import Plan, Tried
from distlab.grading.jobs.check import WHOLE, JobCheck, plan_told
from distlab.grading.jobs.mean_hints import (
    OF_THE_KEY,
    OF_THE_PROCESS,
    hint_for_bytes,
    hint_for_keys,
    hint_for_loads,
    hint_for_mean,
    hint_for_pairs,
)
from distlab.grading.jobs.tables import beside
from distlab.grading.jobs.texts import (
    lines_of,
    means_of,
    needed_pairs,
    uneven_files,
)

__all__ = ["MeanLengths"]

_SPLIT = 3000
_PAIR_BYTES = 80  # a pair (key, (sum, count)) takes about 35, with a class 65
_ALLOWED = 4 / 3  # what longest-first may need, against the best (Graham, 1969)
_HEADS = "file, first word", "expected", "yours"


@dataclass
class MeanLengths(JobCheck):
    """Mean lengths by file and first word; few bytes travel, and to all reducers.

    functions: mapper, reducer, combiner and what makes the partitioner.
    counts: how many lines each file has. reducers: how many there are.
    """

    functions: Sequence[Callable]
    counts: Sequence[int]
    reducers: int

    @property
    def title(self):
        """Say what is tried."""
        lines = ", ".join(map(str, self.counts))
        files = "a file" if len(self.counts) == 1 else "files"
        return f"{files} of {lines} lines, {self.reducers} reducers"

    def _plans(self, files):
        many = {"reducers": self.reducers, "combiner": True}
        split = max(_SPLIT, sum(map(len, files.values())) // 3)
        return [
            Plan(1, 2, WHOLE),
            Plan(1, 1, WHOLE, combiner=True),
            Plan(2, 2, 700, combiner=True, regrouped=True),
            Plan(2, split_bytes=split, partitioner=True, **many),
        ]

    def _judged(self):
        files = uneven_files(self.counts)
        sizes = {name: len(content) for name, content in files.items()}
        trial = self._trial(files, partitioning=(sizes, self.reducers))
        plans = self._plans(files)
        tried, failed = trial.run(plans)
        expected = means_of(files)
        for plan, job in zip(plans, tried, strict=False):
            wrong = self._wrong(expected, job, plan, files)
            if wrong:
                return wrong
        if failed:
            return self._failed(failed, plans)
        needed = needed_pairs(files, plans[-1].split_bytes)
        return (
            self._too_many_pairs(tried[-1], needed)
            or self._too_many_bytes(tried[-1], needed)
            or self._differs_elsewhere(trial, plans[-1:], tried[-1])
            or self._spread(tried[-1])
            or self._uneven(tried[-1], sizes)
        )

    def _wrong(self, expected, job: Tried, plan, files):
        """Return a verdict if an output is not what it should be."""
        where = f"On {plan_told(plan)}, {_with(plan)}:"
        keys = [key for key, _ in job.pairs]
        odd = next((k for k in keys if not _is_key(k) or k[0] not in files), None)
        if odd is not None or not keys:
            said = f"There is a key {odd!r}." if keys else "There is no pair at all."
            return self._fail(f"{where}\n{said}", hint_for_keys(odd, files))
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            parts = [n for n, part in enumerate(job.parts) if twice in dict(part)]
            return self._fail(*_twice(where, twice, parts))
        yours = dict(job.pairs)
        every = sorted({*expected, *yours})
        wrong = [k for k in every if not _same(expected.get(k), yours.get(k))]
        if not wrong:
            return None
        rows = [
            (f"{k[0]} {k[1]!r}", *_shown(expected.get(k), yours.get(k))) for k in every
        ]
        told, hint = hint_for_mean(
            {k: (_lines(files, k), yours.get(k)) for k in wrong}, combined=plan.combiner
        )
        lines = [where, *beside(rows, every.index(wrong[0]), _HEADS), told]
        return self._fail("\n".join(lines), hint)

    def _too_many_pairs(self, job, needed):
        """Return a verdict if a map task sends a key more than one pair."""
        if job.shuffled_records <= needed:
            return None
        found = (
            f"The means are right. {job.shuffled_records:,} pairs went from map tasks "
            f"to reducers, where {needed:,} are enough; the mapper gave "
            f"{job.mapped_records:,}."
        )
        return self._fail(found, hint_for_pairs(job))

    def _too_many_bytes(self, job, needed):
        """Return a verdict if what is sent grows with the lines, and not with keys."""
        sent, allowed = sum(map(sum, job.shuffled)), needed * _PAIR_BYTES
        if sent <= allowed:
            return None
        found = (
            f"The means are right. {needed} pairs were sent, as many as are needed, in "
            f"{sent:,} bytes. {allowed:,} are enough, {_PAIR_BYTES} for each pair."
        )
        return self._fail(found, hint_for_bytes())

    def _differs_elsewhere(self, trial, plans, job):
        """Return a verdict if another Python sends a key to another reducer."""
        tried, failed = trial.run(plans, seed=2)
        if failed:
            return self._failed(failed, plans)
        here, there = _places(job), _places(tried[0])
        moved = next((key for key in sorted(here) if there[key] != here[key]), None)
        if moved is None:
            return None
        again, _ = trial.run(plans)
        by_seed = again and _places(again[0]) == here
        return self._fail(
            f"In one Python the key {moved!r} goes to reducer {here[moved]}, in "
            f"another one to reducer {there[moved]}.",
            OF_THE_PROCESS if by_seed else OF_THE_KEY,
        )

    def _spread(self, job):
        """Return a verdict if the keys of one file are in several parts."""
        homes = {}
        for (name, word), number in sorted(_places(job).items()):
            home, other = homes.setdefault(name, (number, word))
            if home != number:
                return self._fail(
                    f"{name}: {other!r} is in part {home}, and {word!r} in part "
                    f"{number}.",
                    "A reader of one file's means should open one part. What of the "
                    "key may the partitioner look at?",
                )
        return None

    def _uneven(self, job, sizes):
        """Return a verdict if one reducer has much more than it must."""
        homes = {name: number for (name, _), number in _places(job).items()}
        loads = [0] * self.reducers
        for name, number in homes.items():
            loads[number] += sizes[name]
        limit = max(sum(loads) / self.reducers, max(sizes.values())) * _ALLOWED
        worst = loads.index(max(loads))
        if loads[worst] <= limit * (1 + 1e-9):
            return None
        got = [sum(column) for column in zip(*job.shuffled, strict=True)]
        lines = [f"{'reducer':>7}  {'bytes of its files':>18}  {'shuffled':>8}  files"]
        for number, load in enumerate(loads):
            names = " ".join(n for n, home in sorted(homes.items()) if home == number)
            mark = "  ← the most" if number == worst else ""
            row = f"{number:>7}  {load:>18,}  {got[number]:>8,}  {names or '-'}{mark}"
            lines.append(row)
        lines.append(
            f"No assignment can get below {limit / _ALLOWED:,.0f} bytes, and up to 4/3 "
            f"of that is allowed, {limit:,.0f}."
        )
        return self._fail("\n".join(lines), hint_for_loads(homes, sizes))


def _with(plan):
    if not plan.combiner:
        return "without a combiner"
    combiner = "with your combiner" + " and your partitioner" * plan.partitioner
    if not plan.regrouped:
        return combiner
    return f"{combiner} (it combines a few values at a time, then what came of these)"


def _twice(where, key, parts):
    """Return what to say of a key that has several values, and the nudge."""
    if len(parts) > 1:
        return (
            f"{where}\nThe key {key!r} is in the parts {parts[0]} and {parts[1]}.",
            OF_THE_KEY,
        )
    return (
        f"{where}\nThe key {key!r} has several values.",
        "A reducer that yields gives a key several values. Return one number.",
    )


def _places(job):
    """Return key -> the number of its part."""
    return {key: number for number, part in enumerate(job.parts) for key, _ in part}


def _is_key(key):
    whole = type(key) is tuple and len(key) == 2
    return whole and all(type(part) is str for part in key)


def _same(a, b):
    if a is None or type(b) not in (int, float):
        return False
    return abs(a - b) <= 1e-9 * max(1.0, abs(a))


def _shown(one, two):
    """Return both as the words of a table's cells, with as many digits as tell them."""
    digits = ".6g"
    if type(one) is type(two) is float and not _same(one, two):
        digits = ".6g" if f"{one:.6g}" != f"{two:.6g}" else ".12g"
    return [
        [f"{value:{digits}}" if type(value) in (int, float) else repr(value)]
        if value is not None
        else []
        for value in (one, two)
    ]


def _lines(files, key):
    """Return the lines of a file that begin with a word."""
    name, word = key
    lines = lines_of(files.get(name, b""))
    return [line for line in lines if line.lstrip().partition(" ")[0] == word]
