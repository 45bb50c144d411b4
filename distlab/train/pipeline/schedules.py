"""Schedules of the literature, each a function (stages, microbatches).

    naive          one microbatch at a time: one stage works, the others wait
    gpipe          all forward passes, then all backward passes
    one_f_one_b    forward and backward in turn: no more activations than stages
    interleaved    each stage has several chunks of the model: a shorter fill
    zero_bubble_h1, zero_bubble_h2     weight gradients fill the rest of the bubble

Source: Huang et al., GPipe (2019); Harlap et al., PipeDream (2018), and Narayanan et
al., Megatron-LM (2021), 1F1B and interleaving; Qi et al., Zero Bubble Pipeline
Parallelism (2024), section 2.

`of_torch` converts schedules of torch.distributed.pipelining to ours:

    of_torch(ScheduleInterleaved1F1B(stages, 8)) ──▶ Schedule ──▶ timed, show.pipeline
"""

from distlab.errors import InvalidArgument
from distlab.train.pipeline.schedule import Schedule, Work

__all__ = [
    "gpipe",
    "interleaved",
    "naive",
    "of_torch",
    "one_f_one_b",
    "zero_bubble_h1",
    "zero_bubble_h2",
]


def naive(stages: int, microbatches: int) -> Schedule:
    """Return the schedule in which a microbatch begins when the last one has ended."""
    works = [Work(kind, m) for m in range(microbatches) for kind in "FB"]
    return Schedule([works] * stages, microbatches)


def gpipe(stages: int, microbatches: int) -> Schedule:
    """Return the schedule of all forward passes, then all backward passes."""
    works = [Work(kind, m) for kind in "FB" for m in range(microbatches)]
    return Schedule([works] * stages, microbatches)


def one_f_one_b(stages: int, microbatches: int) -> Schedule:
    """Return 1F1B: stage s holds at most stages - s activations."""

    def works(stage):
        ahead = min(microbatches, stages - stage - 1)
        yield from (Work("F", m) for m in range(ahead))
        for m in range(microbatches):
            if m + ahead < microbatches:
                yield Work("F", m + ahead)
            yield Work("B", m)

    return Schedule([[*works(stage)] for stage in range(stages)], microbatches)


def interleaved(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return 1F1B on stages with several chunks each.

    Microbatches go through a chunk in groups of as many as there are stages.

    Raises: InvalidArgument if the microbatches do not make whole groups.
    """
    if microbatches % stages:
        raise InvalidArgument(
            f"interleaved takes microbatches in groups of {stages}, one for each "
            f"stage, and {microbatches} make no whole groups."
        )
    total = microbatches * chunks

    def work(kind, number):
        group, within = divmod(number, stages * chunks)
        chunk, place = divmod(within, stages)
        chunk = chunk if kind == "F" else chunks - 1 - chunk
        return Work(kind, group * stages + place, chunk)

    def works(stage):
        ahead = min(total, 2 * (stages - stage - 1) + (chunks - 1) * stages)
        yield from (work("F", number) for number in range(ahead))
        for number in range(total):
            if number + ahead < total:
                yield work("F", number + ahead)
            yield work("B", number)

    every = [[*works(stage)] for stage in range(stages)]
    return Schedule(every, microbatches, chunks)


def zero_bubble_h1(stages: int, microbatches: int) -> Schedule:
    """Return 1F1B with delayed weight gradients: as many activations as stages.

    Stage s holds stages - s of them before its first B, so its first W can wait for s
    more.
    """
    return _zero_bubble(stages, microbatches, lambda s: (stages - s, s))


def zero_bubble_h2(stages: int, microbatches: int) -> Schedule:
    """Return the schedule that begins with enough F to have no bubble, if F = B = W.

    Every stage holds up to 2 * stages - 1 activations.
    """
    return _zero_bubble(stages, microbatches, lambda s: (2 * (stages - s) - 1, 2 * s))


def _zero_bubble(stages, microbatches, plan):
    """Return a schedule; plan: stage -> (number of F before its first B, delayed W)."""

    def works(stage):
        ahead, put_off = plan(stage)
        yield from (Work("F", m) for m in range(min(ahead, microbatches)))
        for m in range(microbatches):
            yield Work("B", m)
            if m >= put_off:
                yield Work("W", m - put_off)
            if m + ahead < microbatches:
                yield Work("F", m + ahead)
        yield from (
            Work("W", m) for m in range(max(0, microbatches - put_off), microbatches)
        )

    return Schedule([[*works(stage)] for stage in range(stages)], microbatches)


_KINDS = {
    "FORWARD": "F",
    "FULL_BACKWARD": "BW",
    "BACKWARD_INPUT": "B",
    "BACKWARD_WEIGHT": "W",
}


def of_torch(schedule) -> Schedule:
    """Return one of torch's schedules as a `Schedule`.

    Raises: InvalidArgument if stages are not assigned to ranks in turn, as those of
    its V schedules. InvalidSchedule for `Schedule1F1B` of torch 2.13, which reports an
    order in which the last rank's microbatches begin with 1; it runs the order of ours.
    """
    order = getattr(schedule, "pipeline_order", None) or schedule._get_pipeline_order()
    actions = [
        [a for a in order[rank] if a and a.computation_type.name in _KINDS]
        for rank in sorted(order)
    ]
    names = {action.computation_type.name for row in actions for action in row}
    splits = "BACKWARD_WEIGHT" in names
    rows = [[] for _ in actions]
    for rank, row in enumerate(actions):
        for action in row:
            chunk, place = divmod(action.stage_index, len(rows))
            if place != rank:
                raise InvalidArgument(
                    f"rank {rank} has stage {action.stage_index} of {len(rows)} ranks; "
                    "of_torch takes schedules in which rank r has r, r + p, r + 2p."
                )
            kinds = _KINDS[action.computation_type.name]
            kinds = kinds if splits else kinds[:1]
            rows[rank] += [Work(kind, action.microbatch_index, chunk) for kind in kinds]
    chunks = 1 + max(work.chunk for row in rows for work in row)
    microbatches = 1 + max(work.microbatch for row in rows for work in row)
    return Schedule(rows, microbatches, chunks)
