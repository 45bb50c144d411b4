"""Checks for functions that share tasks among ranks and add up the results.

The ranks are given a `work` that asks the check, which notes each call. Its results can
be told apart in a sum, and nobody can know them who has not asked.

    rank 0  work(a) work(e)  ◀─────── sum of b, f ───────  rank 1  work(b) work(f)
"""

import string
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from distlab.grading.calling import called
from distlab.grading.check import WorldCheck
from distlab.grading.probes import lock_the_library, number_in, shown
from distlab.grading.work.done import (
    in_words,
    miscounts_told,
    most_even,
    parts_in,
    results_in,
    results_of,
)
from distlab.grading.work.hints import (
    EVERYTHING,
    hint_for_calls,
    hint_for_failed_work,
    hint_for_loads,
    hint_for_messages,
    hint_for_parts,
    hint_for_result,
)
from distlab.show.telling import plural

__all__ = ["BalancedWork", "SharedWork"]

_ALLOWED = 4 / 3  # what longest-first may need, against the best (Graham, 1969)
_TIMES = {None: "", 0: "missing", 1: "once", 2: "twice"}


def work_probe(comm, function, tasks, sizes=None) -> dict:
    """Return what the function returned; each task that is done, the check does."""
    lock_the_library()

    def work(task):
        if task not in tasks:
            raise ValueError(f"work({shown(task)}): this is not one of the tasks")
        return comm.ask(task)

    more = [] if sizes is None else [dict(zip(tasks, sizes, strict=True)).__getitem__]
    returned = called(function, comm, list(tasks), work, *more)
    return {"number": number_in(returned), "shown": shown(returned)}


class _WorkCheck(WorldCheck):
    """Every task is done once, and rank 0 returns the sum; `_tasks` are letters."""

    _probe = staticmethod(work_probe)
    _hint_for_failure = staticmethod(hint_for_failed_work)
    _returns: ClassVar = {"number": (float, None), "shown": str}
    _made_from = "comm.send_object and comm.recv_object"
    _assigned = False

    @property
    def title(self):
        """Say what is tried."""
        tasks = plural(len(self._tasks), "task") if self._tasks else "no tasks"
        return f"{super().title}, {tasks}"

    def _arguments(self):
        return (self._tasks,)

    def _run(self):
        self._done = [[] for _ in range(self.world_size)]
        return super()._run()

    def _answer(self, rank, question):
        """Return the result of a task, and note who did it."""
        if question not in self._tasks:
            raise ValueError("work: this is not one of the tasks")
        self._done[rank].append(question)
        return results_of(self._tasks)[question]

    def _compare(self, report):
        done = self._done
        return (
            self._miscounted(done)
            or self._badly_shared(done)
            or self._not_returned(report.results)
            or self._wrong_sum(report, done)
            or self._ready_made(report, "The sum is right")
        )

    def _miscounted(self, done):
        """Return a verdict if a task was done too often or too seldom, or None."""
        told = miscounts_told(self._tasks, done)
        if not told:
            return None
        lines = [*self._table(done, mark=self._first_to_repeat(done)), *told]
        hint = hint_for_calls(self._tasks, done, assigned=self._assigned)
        return self._fail("\n".join(lines), hint)

    def _first_to_repeat(self, done):
        """Return the first rank that did a task of which all had been done."""
        left = Counter(self._tasks)
        for rank, own in enumerate(done):
            left.subtract(own)
            if min(left.values(), default=0) < 0:
                return rank
        return None

    def _not_returned(self, results):
        """Return a verdict if rank 0 returned no number, or another rank the sum."""
        number, right = results[0]["number"], self._sum()
        holders = [rank for rank, r in enumerate(results) if r["number"] == right]
        if number == right or (number is not None and not holders):
            return None
        found = f"Rank 0 returned {results[0]['shown']}."
        if holders:
            many = "s" * (len(holders) > 1)
            found += f"\nThe sum was returned by rank{many} {in_words(holders)}."
        return self._fail(found, hint_for_result(results[0]["shown"], holders))

    def _wrong_sum(self, report, done):
        """Return a verdict if rank 0 returned another sum, and whose part is in it."""
        number, right = report.results[0]["number"], self._sum()
        if number == right:
            return None
        results = results_of(self._tasks)
        times = parts_in(number, [sum(map(results.get, own)) for own in done])
        lines = [f"Rank 0 returned {number:,}, and all results make {right:,}."]
        if times:
            times = [t if own else None for t, own in zip(times, done, strict=True)]
            first = next(rank for rank, t in enumerate(times) if t not in (1, None))
            column = ["in your sum", *(_TIMES[t] for t in times)]
            lines += self._table(done, column, mark=first)
        else:
            lines += self._results_told(number)
        messages = sum(map(report.trace.messages_sent, range(self.world_size)))
        return self._fail("\n".join(lines), hint_for_parts(times, messages))

    def _results_told(self, number):
        """Return in a sentence which results are how often in a sum, if that helps."""
        times, names = results_in(number, self._tasks) or {}, {}
        for task, count in times.items():
            if count != self._tasks.count(task):
                names.setdefault(count, []).append(task)
        words = {0: "not at all", 1: "once", 2: "twice", 3: "three times"}
        told = [f"{in_words(own)} {words[count]}" for count, own in names.items()]
        return [f"In your sum there is {'; '.join(told)}."] if told else []

    def _sum(self):
        return sum(map(results_of(self._tasks).get, self._tasks))

    def _named(self, task):
        return task

    def _table(self, done, column=None, *, mark, says="first difference"):
        """Return a row per rank: the tasks it did, and one more column."""
        words = [
            "tasks done",
            *(" ".join(map(self._named, own)) or "-" for own in done),
        ]
        more = column or [""] * len(words)
        wide, high = max(map(len, words)), max(map(len, more))
        rows = []
        for number, (own, extra) in enumerate(zip(words, more, strict=True)):
            rank = str(number - 1) if number else "rank"
            arrow = f"← {says}" if number - 1 == mark else ""
            rows.append(f"{rank:>6}  {own:{wide}}  {extra:{high}}  {arrow}".rstrip())
        return rows


@dataclass
class SharedWork(_WorkCheck):
    """Every task is done once, many not by one rank alone; rank 0 returns the sum.

    tasks: a letter each, such as "abcab".
    """

    tasks: str

    @property
    def _tasks(self):
        return list(self.tasks)

    def _badly_shared(self, done):
        """Return a verdict if one rank did everything though there are others."""
        busy = [rank for rank, own in enumerate(done) if own]
        if not 1 < self.world_size <= len(self._tasks) or len(busy) > 1:
            return None
        table = self._table(done, mark=busy[0], says="all of them")
        return self._fail("\n".join(table), EVERYTHING)


@dataclass
class BalancedWork(_WorkCheck):
    """The same for tasks of known sizes: no load much above the most even one.

    sizes: seconds of each task, in the order of the list.
    """

    sizes: list

    _assigned = True

    @property
    def _tasks(self):
        return list(string.ascii_lowercase[: len(self.sizes)])

    def _arguments(self):
        return self._tasks, self.sizes

    @property
    def _size_of(self):
        return dict(zip(self._tasks, self.sizes, strict=True))

    def _named(self, task):
        return f"{task}:{self._size_of[task]:g}"

    def _compare(self, report):
        return super()._compare(report) or self._too_many_messages(report)

    def _badly_shared(self, done):
        """Return a verdict if a rank's load is above the limit."""
        loads = [sum(map(self._size_of.get, own)) for own in done]
        even = most_even(self.sizes, self.world_size)
        limit = even * _ALLOWED
        worst = max(loads)
        if worst <= limit * (1 + 1e-9):
            return None
        column = ["load", *(f"{load:g} s" for load in loads)]
        lines = self._table(
            done, column, mark=loads.index(worst), says="the largest load"
        )
        lines.append(
            f"No assignment can get below {even:.3g} s, and up to 4/3 of that is "
            f"allowed, {limit:.3g} s."
        )
        return self._fail(
            "\n".join(lines), hint_for_loads(self.sizes, self._tasks, done)
        )

    def _too_many_messages(self, report):
        sent = [report.trace.messages_sent(rank) for rank in range(self.world_size)]
        enough = self.world_size - 1
        if sum(sent) <= enough:
            return None
        lines = [
            f"rank {rank}: sent {plural(n, 'message')}" for rank, n in enumerate(sent)
        ]
        lines.append(f"Together {sum(sent)}, where {enough} are enough.")
        return self._fail("\n".join(lines), hint_for_messages(sent))
