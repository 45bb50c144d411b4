"""The check of a sample of lines: the same lines, whatever is killed or tried again."""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from distlab.grading.jobs.check import JobCheck
from distlab.grading.jobs.sample_hints import (
    fault_in,
    hint_for_difference,
    hint_for_slant,
)
from distlab.grading.jobs.sample_runs import SPLIT, runs_on
from distlab.grading.jobs.tables import beside
from distlab.grading.jobs.texts import lines_of, own_lines, sample_files

__all__ = ["SampledLines"]

_TRIES = 3
_DEVIATION = 12**-0.5  # of a number drawn evenly from 0 to 1
_UNLIKELY = 6  # deviations of the mean
_ORDERS = {  # what a number made of a line without mixing it would go by
    "place": lambda line: 0,
    "alphabet": str,
    "length": len,
    "second half": lambda line: line[len(line) // 2 :],
    "spelling from the end": lambda line: line[::-1],
}
_ORDERS |= {
    f"letters from [{at}] on": lambda line, at=at: line[at:]
    for at in (-1, -2, -3, -4, 1, 2, 3, 4, 5, 6, 7)
}


@dataclass
class SampledLines(JobCheck):
    """Some lines of every file, drawn fairly, and the same ones in every run.

    functions: mapper, reducer and combiner. keep: how many lines of each file.
    """

    functions: Sequence[Callable]
    keep: int
    case: str

    @property
    def title(self):
        """Say what is tried."""
        return f"{self.keep} lines of each, {self.case}"

    def _judged(self):
        files = sample_files(self.case)
        trial = self._trial(files)
        runs = runs_on(files)
        plans = [run.plan for run in runs.values()]
        tried, failed = trial.run(plans)
        jobs = dict(zip(runs, tried, strict=False))
        wrong = self._no_sample(files, tried[0]) if tried else None
        if wrong:
            return wrong
        if failed and failed.plan < 2:
            return self._failed(failed, plans)
        return (
            self._slanted(files, tried[0])
            or self._differs_elsewhere(trial, plans[:2], tried)
            or self._differs_here(jobs)
            or (self._failed(failed, plans) if failed else None)
            or self._too_many_pairs(files, jobs["combiner"])
            or self._not_hit(trial, runs, jobs)
        )

    def _no_sample(self, files, job):
        """Return a verdict if the first job's output is no sample of each file."""
        known = {name: set(lines_of(content)) for name, content in files.items()}
        known = {n: {x for x in own if x.strip()} for n, own in known.items()}
        keys = [str(key) for key, _ in job.pairs]
        yours = {str(key): value for key, value in job.pairs}
        for name in sorted({*(name for name in known if known[name]), *yours}):
            right = min(self.keep, len(known.get(name, ())))
            value = yours.get(name)
            fault = fault_in(value, right, known.get(name), keys.count(name))
            if fault:
                shown = [f"{right} of its lines"] if name in known else []
                rows = [(name, shown, _listed(value))]
                lines = beside(rows, 0, ("file", "expected", "yours"))
                return self._fail("\n".join([*lines, fault[0]]), fault[1])
        return None

    def _slanted(self, files, job):
        """Return a verdict if some lines are drawn more often than chance would."""
        own = own_lines(files)
        for what, key in _ORDERS.items():
            ranks = []
            for name, drawn in job.pairs:
                ordered = sorted(own[name], key=key)
                places = [ordered.index(line) for line in drawn if line in ordered]
                ranks += [(place + 0.5) / len(ordered) for place in places]
            apart = [abs(2 * rank - 1) for rank in ranks]  # 0 in the middle, 1 outside
            for found, folded in (ranks, False), (apart, True):
                mean = sum(found) / len(found)
                if abs(mean - 0.5) > _UNLIKELY * _DEVIATION / len(found) ** 0.5:
                    return self._fail(*hint_for_slant(what, mean, folded))
        return None

    def _differs_elsewhere(self, trial, plans, tried):
        """Return a verdict if another Python draws other lines."""
        other, failed = trial.run(plans, seed=2)
        if failed:
            return self._failed(failed, plans)
        for one, two in zip(tried, other, strict=False):
            if dict(one.pairs) != dict(two.pairs):
                again, _ = trial.run(plans)
                pairs = zip(tried, again, strict=False)
                same = all(dict(a.pairs) == dict(b.pairs) for a, b in pairs)
                return self._differs(one, two, "hash" if same else "random")
        return None

    def _differs_here(self, jobs):
        """Return a verdict if one job draws other lines than the one it resembles."""
        for name, job in jobs.items():
            like = jobs["clean" if name == "combiner" else "combiner"]
            if name != "clean" and dict(job.pairs) != dict(like.pairs):
                why = _combined(like, job) if name == "combiner" else name
                return self._differs(like, job, why)
        return None

    def _differs(self, one, two, why):
        left, right = dict(one.pairs), dict(two.pairs)
        names = sorted({*left, *right})
        first = next(name for name in names if left.get(name) != right.get(name))
        rows = [(n, _listed(left.get(n)), _listed(right.get(n))) for n in names]
        told, hint = hint_for_difference(why)
        heads = "file", "one run", "the other"
        count = sum(left.get(name) != right.get(name) for name in names)
        lines = [*beside(rows, names.index(first), heads), told]
        lines.append(f"{count} of {len(names)} files differ.")
        return self._fail("\n".join(lines), hint)

    def _too_many_pairs(self, files, job):
        """Return a verdict if more pairs of a file leave a map task than are kept."""
        most, start = {}, 0
        for name, content in files.items():
            for split in range(start // SPLIT, (start + len(content)) // SPLIT + 1):
                most[split, name] = self.keep
            start += len(content)
        allowed = sum(most.values())
        if job.shuffled_records <= allowed:
            return None
        return self._fail(
            f"The lines are right. {job.shuffled_records:,} pairs were shuffled, where "
            f"{allowed:,} are enough, {self.keep} for each file of each map task.",
            "A line that is not drawn from its own split is not drawn from the whole "
            "file. Which lines can the combiner leave out?",
        )

    def _not_hit(self, trial, runs, jobs):
        """Return a verdict if a fault did not happen, and not in further tries either.

        A run that no fault has hit proves nothing.
        """
        for name, run in runs.items():
            job = jobs[name]
            for _ in range(_TRIES):
                if run.hit(job):
                    break
                tried, failed = trial.run([run.plan])
                if failed:
                    return self._failed(failed, [run.plan])
                job = tried[0]
                wrong = self._differs_here(jobs | {name: job})
                if wrong:
                    return wrong
            if not run.hit(job):
                return self._inconclusive(f"This has not happened: {run.what}.")
        return None


def _combined(without, job):
    """Return in which way a job with a combiner differs from the one without."""
    yours = dict(job.pairs)
    if any(not yours.get(name) for name, lines in without.pairs if lines):
        return "nothing left"
    lines = [line for value in yours.values() if type(value) is list for line in value]
    return "combiner" if all(type(line) is str for line in lines) else "no value"


def _listed(value):
    """Return a value as the words of a table's cell."""
    if value is None:
        return []
    return [reprlib.repr(line) for line in (value if type(value) is list else [value])]
