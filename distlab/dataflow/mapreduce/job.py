"""One job under way: the owner's loop around the workers.

idle worker ─▶ schedule: which attempt? ─▶ workers: do it
Returned ─▶ schedule: the first of its task? ─▶ keep its runs or its part
Raised ──▶ skip the record, if that is allowed, or fail the job
WorkerLost ▶ remove its folder; its maps wait again

folder/worker-1.0/map-3      map 3's output, on the disk of worker 1, first process
folder/worker-1.0/part-00000 reduce 0's output, while it is not complete
folder/output/part-00000     the same, committed, on a disk that all workers share
"""

import os
from collections import Counter
from functools import partial

from distlab.calls.progress import Progress
from distlab.dataflow.mapreduce.map_task import map_task
from distlab.dataflow.mapreduce.reduce_task import reduce_task
from distlab.dataflow.mapreduce.task_states import TaskStates
from distlab.dataflow.record_notes import Deaths
from distlab.dataflow.workers import Raised, WorkerLost, Workers
from distlab.errors import TaskFailed, WorkdirError
from distlab.processes import Interrupts

__all__ = ["MapReduceJob"]

_TICK_S = 0.02
_MOST_DEATHS = 5  # of workers at one task
_MOST_FAILURES = 2  # at one record, before it is skipped


class MapReduceJob:
    """The tasks of one job, done on `workers`.

    parts: the paths of the output's parts, by reduce task.
    counts: of all completed tasks together, and the attempts.
    shuffled: bytes from each map task to each reduce task.
    skipped: (file, offset) of the records that were left out.
    """

    def __init__(
        self,
        splits: list,
        reducers: int,
        workers: Workers,
        *,
        folder: str,
        memory_bytes: int,
        skip_bad_records: int,
        backups: bool,
    ):
        self.schedule = TaskStates(len(splits), reducers, backups=backups)
        self.parts = [
            os.path.join(folder, "output", f"part-{number:05}")
            for number in range(reducers)
        ]
        self.skipped = set()
        self._splits = splits
        self._workers = workers
        self._folder = folder
        self._reducers, self._memory_bytes = reducers, memory_bytes
        self._tasks = len(splits) + reducers
        self._skip_most = skip_bad_records
        self._at = {}  # worker -> its attempt
        self._results = {}  # task -> Mapped or Reduced, of its first attempt
        self._deaths = Deaths(folder, _MOST_DEATHS)
        self._failures = Counter()

    def run(self, interrupts: Interrupts) -> None:
        """Do all tasks.

        Raises: TaskFailed, WorkdirError, KeyboardInterrupt.
        """
        with Progress() as progress:
            while not self.schedule.finished and not interrupts.pending:
                self._hand_out()
                for what in self._workers.wait(_TICK_S):
                    if isinstance(what, WorkerLost):
                        self._lost(what)
                    elif isinstance(what, Raised):
                        self._raised(what)
                    else:
                        self._returned(what)
                done, tasks = len(self.schedule.completed), self._tasks
                progress.show(self._how_far, done / tasks)
        if not self.schedule.finished:
            raise self._workers.interrupted(self._how_far())

    def _how_far(self):
        done = Counter(task.kind for task in self.schedule.completed)
        maps, reduces = len(self.schedule.maps), len(self.schedule.reduces)
        return (
            f"{done['map']} of {maps} maps done, {done['reduce']} of {reduces} reduces "
            "done"
        )

    def _hand_out(self):
        for worker in sorted(self._workers.idle):
            attempt = self.schedule.next_for(worker, self._workers.now())
            if attempt is None:
                return
            self._at[worker] = attempt
            do = self._do_map if attempt.task.kind == "map" else self._do_reduce
            do(worker, attempt)

    def _do_map(self, worker, attempt):
        number = attempt.task.number
        path = os.path.join(self._workers.home(worker), f"map-{number}")
        split = self._splits[number]
        how = self._how(worker, attempt)
        task = partial(map_task, reducers=self._reducers, **how)
        self._workers.give(worker, str(attempt), task, path, split, self.skipped)

    def _do_reduce(self, worker, attempt):
        number = attempt.task.number
        runs = [self._results[task].runs[number] for task in self.schedule.maps]
        runs = [run for run in runs if run.end > run.start]
        final = self.parts[number]
        temporary = os.path.join(self._workers.home(worker), os.path.basename(final))
        task = partial(reduce_task, **self._how(worker, attempt))
        self._workers.give(worker, str(attempt), task, temporary, final, runs)

    def _how(self, worker, attempt):
        note = self._deaths.note(attempt.task, worker)
        return {"memory_bytes": self._memory_bytes, "note": note}

    def _returned(self, what):
        attempt = self._at.pop(what.worker)
        gone = getattr(what.value, "gone", None)
        if gone is not None:
            self._look_again(attempt, gone)
        elif self.schedule.done(attempt, self._workers.now()):
            self._results[attempt.task] = what.value

    def _look_again(self, attempt, gone):
        """Reschedule a reduce that did not find a map's output.

        Its worker is known to be lost, unless another program removed the file.
        """
        self.schedule.failed(attempt)
        for task in self.schedule.maps:
            held = self._results[task].runs if task in self.schedule.completed else ()
            if any(run.path == gone for run in held):
                raise WorkdirError(
                    f"{gone} is not there any more, and no worker has died: "
                    "something else removes files in the job's folder."
                )

    def _raised(self, what):
        attempt = self._at.pop(what.worker)
        if attempt.task in self.schedule.completed:
            self.schedule.failed(attempt)  # a backup's failure means nothing
            return
        place = what.facts["place"]
        if place is None or len(self.skipped) >= self._skip_most:
            raise self._failure(attempt, what)
        self.schedule.failed(attempt)
        self._failures[place] += 1
        if self._failures[place] >= _MOST_FAILURES:
            self.skipped.add(place)

    def _failure(self, attempt, what):
        """Return the exception that reports a task's error and its record."""
        if what.on_disk:
            return WorkdirError(
                f"worker {attempt.worker} could not write in {self._folder} during "
                f"{attempt.task}: {what.said}. Give run a workdir with more room."
            )
        story = [f"{attempt.task}, on worker {attempt.worker}, raised {what.said}", ""]
        lines = what.lines()
        story += [*lines, ""] if lines else []
        story.append("  Nothing of the job's output is left.")
        return self._failed(attempt, "\n".join(story), what.facts["error"])

    def _failed(self, attempt, story, cause):
        return TaskFailed(
            story,
            task=str(attempt.task),
            worker=attempt.worker,
            cause=cause,
            trace=self._workers.trace(),
        )

    def _lost(self, what):
        """Reschedule the tasks that a worker's death undid; its disk is lost, too."""
        self.schedule.lost(what.worker)
        attempt = self._at.pop(what.worker, None)
        if attempt is not None and (why := self._deaths.count(attempt.task, what)):
            cause, at = why
            story = f"{attempt.task} cannot be done: {cause}.{at}"
            raise self._failed(attempt, story, cause)

    @property
    def shuffled(self) -> list[list[int]]:
        """Bytes from each map task, a row each, to each reduce task."""
        results = [self._results[task] for task in self.schedule.maps]
        return [[run.end - run.start for run in each.runs] for each in results]

    @property
    def counts(self) -> Counter:
        """The counters of all tasks, each once, and the attempts of each kind."""
        total = Counter()
        for result in self._results.values():
            total.update(result.counts)
        for task, count in self.schedule.attempts.items():
            total[f"{task.kind}_attempts"] += count
        return total
