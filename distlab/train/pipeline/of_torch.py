"""Conversion of torch.distributed.pipelining's schedules to ours, to draw and run.

of_torch(ScheduleInterleaved1F1B(stages, 8)) ──▶ Schedule ──▶ timed, show.pipeline
"""

from distlab.errors import InvalidArgument
from distlab.train.pipeline.schedule import Schedule, Work

__all__ = ["of_torch"]

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
