"""One action under way: the notebook's loop around the workers, as in `job`.

    a task is needed and ready ─▶ an idle worker, best one that keeps the task's input
    Returned ─▶ a map task's pieces, or a part of the result
    Raised ───▶ the action fails
    WorkerLost ▶ drop that worker's data; compute anew which tasks are needed

Nothing is planned ahead. After a death the same search over the remaining data finds
just the tasks whose output is lost and is still needed.

    folder/notebook/                programs, broadcasts, parallelized data
    folder/worker-1.0/shuffle-3/    output of worker 1, first process, for shuffle 3
"""

import os
import time
from collections import Counter

from distlab.calls.progress import Progress
from distlab.calls.serialize import unpack
from distlab.dataflow.rdd.dependencies import DatasetNode, within
from distlab.dataflow.rdd.executor import Executor, TaskRequest
from distlab.dataflow.rdd.stages import DatasetStage, cut, ready
from distlab.dataflow.record_notes import Deaths
from distlab.dataflow.workers import Raised, WorkerLost
from distlab.errors import TaskFailed, WorkdirError
from distlab.processes import Interrupts

__all__ = ["Action"]

_TICK_S = 0.05
_MOST_DEATHS = 3  # of workers at one task
_NO_MEMORY = (
    "Where memory runs out, that happens. Tables of keys are spilled to disk, but all "
    "values of one key are in memory at once after groupByKey, cogroup and the joins, "
    "and so is what a function makes of one record or partition. reduceByKey and "
    "aggregateByKey hold one result for each key instead."
)
_GRACE_S = 0.5  # for the other tasks of an action that has failed


class Action:
    """An action on some partitions of a data set.

    stages: parents first. results: partition -> its result.
    computed, reused: (data set, partition), in order of completion.
    """

    def __init__(self, cluster, node: DatasetNode, partitions: list[int], last: bytes):
        self.cluster = cluster
        self.node = node
        self.stages = cut(node, partitions, cluster.next_stage)
        self.results = {}
        self.computed, self.reused = [], []
        self.counts = Counter()
        self.began_s = cluster.pool.now()
        self._last = last
        self._programs = {}
        self._at = {}  # worker -> (stage, partition)
        self._ready = None  # (stage, partition, its workers); None: compute anew
        self._deaths = Deaths(cluster.folder, _MOST_DEATHS)

    def run(self, interrupts: Interrupts) -> None:
        """Run the tasks that are needed for the results.

        Raises: TaskFailed, WorkdirError, KeyboardInterrupt.
        """
        try:
            self._program(self.stages[-1])  # first, as serializing it may fail
            self._loop(interrupts)
        finally:
            self._end_others()
            for path in self._programs.values():
                os.remove(path)

    def _loop(self, interrupts):
        pool, wanted = self.cluster.pool, set(self.stages[-1].tasks)
        with Progress() as progress:
            while self.results.keys() != wanted and not interrupts.pending:
                self._hand_out()
                for what in pool.wait(_TICK_S):
                    if isinstance(what, WorkerLost):
                        self._lost(what)
                    elif isinstance(what, Raised):
                        raise self._failure(self._at.pop(what.worker), what)
                    else:
                        self._returned(what)
                progress.show(self._how_far)
        if self.results.keys() != wanted:
            raise pool.interrupted(self._how_far())

    def _how_far(self):
        begun = [stage for stage in self.stages if stage.attempts]
        return ", ".join(
            f"{stage}: {len(stage.ran)} of {len(stage.tasks)} tasks done"
            for stage in begun[-2:]
        )

    def _hand_out(self):
        if not self._ready:
            self._ready = self._ask()
        for worker in sorted(self.cluster.pool.idle):
            for number, (stage, partition, holders) in enumerate(self._ready):
                if not holders or worker in holders:
                    del self._ready[number]
                    self._give(worker, stage, partition)
                    break

    def _ask(self):
        busy = set(self._at.values())
        tasks = ready(self.stages, self.cluster.locations, set(self.results))
        return [task for task in tasks if task[:2] not in busy]

    def _give(self, worker, stage, partition):
        cluster, path, task = self.cluster, None, (stage, partition)
        if stage.wide is not None:
            folder = f"shuffle-{stage.wide.number}"
            path = os.path.join(cluster.pool.home(worker), folder, f"map-{partition}")
        pieces = cluster.locations.pieces(stage.node, partition, worker)
        order = TaskRequest(
            self._program(stage),
            stage.node.number,
            partition,
            cluster.pool.home(worker),
            path,
            {n.number: n.level for n in within(stage.node) if n.kept},
            {(w.number, p): cluster.locations.segments(w, p) for w, p in pieces},
            cluster.dropped_for(worker),
            self._deaths.note(task, worker),
        )
        if stage.began_s is None:
            stage.began_s = cluster.pool.now()
        stage.attempts += 1
        self._at[worker] = task
        cluster.pool.give(
            worker, f"{stage}, partition {partition}", Executor.run, order
        )

    def _program(self, stage):
        """Return the path of a stage's program, which its tasks read."""
        if stage not in self._programs:
            last = self._last if stage.wide is None else stage.wide.payload
            data = stage.node.program(last)
            self._programs[stage] = self.cluster.store("program", data)
        return self._programs[stage]

    def _returned(self, what):
        stage, partition = self._at.pop(what.worker)
        done, locations = what.value, self.cluster.locations
        locations.changed(what.worker, done.gained, done.evicted)
        self.counts.update(done.counts)
        if done.evicted or done.lost is not None:
            self._ready = None
        if done.lost is not None:
            self._look_again(done.lost)
            return
        self.computed += done.computed
        self.reused += done.reused
        for number, value in done.added.items():
            self.cluster.accumulators[number].add(value)
        stage.ran.append(partition)
        stage.ended_s = self.cluster.pool.now()
        if stage.wide is None:
            self.results[partition] = unpack(done.output)
        else:
            locations.outputs[stage.wide.number][partition] = what.worker, done.output

    def _look_again(self, path):
        """Drop a map output whose file is missing, so that its task runs again."""
        if self.cluster.locations.file_lost(path):
            raise WorkdirError(
                f"{path} is not there any more, and no worker has died: something else "
                "removes files in the folder of this Context."
            )

    def _lost(self, what):
        self.cluster.lost(what.worker)
        self._ready = None
        task = self._at.pop(what.worker, None)
        if task is not None and (why := self._deaths.count(task, what)):
            (stage, partition), (cause, at) = task, why
            story = f"{stage}, partition {partition}, cannot be done: {cause}."
            story += f" {_NO_MEMORY}" if "SIGKILL" in what.how else ""
            raise self._failed(task, what.worker, story + at, cause)

    def _failure(self, task, what):
        """Return the exception that reports a task's error and its record."""
        stage, partition = task
        if what.on_disk:
            return WorkdirError(
                f"worker {what.worker} could not write: {what.said}. Its own files are "
                f"in {self.cluster.folder}: give Context a workdir with more room."
            )
        name = f"{stage}, partition {partition}, on worker {what.worker}"
        lines = [f"{name}, raised {what.said}", "", *what.lines()]
        if what.facts["type"] == "MemoryError":
            lines.append(f"    {_NO_MEMORY}")
        return self._failed(task, what.worker, "\n".join(lines), what.facts["error"])

    def _failed(self, task: tuple[DatasetStage, int], worker, story, cause):
        return TaskFailed(
            story,
            task=f"{task[0]}, partition {task[1]}",
            worker=worker,
            cause=cause,
            trace=self.cluster.pool.trace(self.began_s),
        )

    def _end_others(self):
        """Wait briefly for this action's running tasks; kill workers still busy."""
        pool, deadline = self.cluster.pool, time.monotonic() + _GRACE_S
        while self._at and (left := deadline - time.monotonic()) > 0:
            for what in pool.wait(left):
                self._ended(what)
        for worker in list(self._at):
            pool.kill(worker)
        while self._at:
            for what in pool.wait(_TICK_S):
                self._ended(what)

    def _ended(self, what):
        self._at.pop(what.worker, None)
        if isinstance(what, WorkerLost):
            self.cluster.lost(what.worker)
        elif not isinstance(what, Raised):
            self.cluster.locations.changed(
                what.worker, what.value.gained, what.value.evicted
            )
