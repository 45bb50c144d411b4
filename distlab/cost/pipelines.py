"""Pipeline schedules in closed form: bubble, and activations in flight.

    schedule       bubble over m microbatches           in flight on the first stage
    GPipe          (p - 1) (F + B + W) / m              m
    1F1B           (p - 1) (F + B + W) / m              p
    interleaved    (p - 1) (F + B + W) / (v m)          p + (p - 1) / v
    ZB-H1          (p - 1) (F + B - W) / m              p
    ZB-H2          (p - 1) (F + B - 2W) / m             2p - 1
    ZB-V           (p - 1) (F + B - 2W) / m             p
    DualPipe       (p/2 - 1) (F + 2B - W) / m           p + 1, and two stages' weights

A bubble is a share of the time of the work, m (F + B + W), as in Megatron's papers;
x / (1 + x) is the share of the whole step. p: stages, v: chunks of the model in each,
F, B, W: the forward of a microbatch, and the backward of inputs and of weights.

Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters
    using Megatron-LM" (2021), section 2.2; Korthikanti et al. (2022), appendix B; Qi et
    al., "Zero bubble pipeline parallelism" (2024), table 2; DeepSeek-AI, "DeepSeek-V3"
    (2024), table 2, with F and a whole backward side by side as long as both in turn.
"""

from distlab.errors import InvalidArgument

__all__ = ["SCHEDULES", "chunks_in_flight", "microbatches_in_flight", "pipeline_bubble"]

SCHEDULES = ("GPipe", "1F1B", "interleaved", "ZB-H1", "ZB-H2", "ZB-V", "DualPipe")
_SAVED = {"ZB-H1": 2, "ZB-H2": 3, "ZB-V": 3}  # times W that fill the bubble


def pipeline_bubble(
    schedule: str,
    stages: int,
    microbatches: int,
    *,
    chunks: int = 1,
    weights: float = 1 / 3,
) -> float:
    """Return the idle time of a step over the time of its work.

    weights: W / (F + B + W); a third, if all three take equally long.

    Raises: InvalidArgument.
    """
    _check(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    if schedule == "DualPipe":
        return (stages / 2 - 1) * max(0, 1.5 - 2.5 * weights) / microbatches
    busy = 1 - min(1, _SAVED.get(schedule, 0) * weights)
    return (stages - 1) * busy / (microbatches * chunks)


def microbatches_in_flight(
    schedule: str, stages: int, microbatches: int, *, chunks: int = 1, stage: int = 0
) -> float:
    """Return the microbatches whose activations a stage keeps at its fullest.

    A chunk of a microbatch counts 1 / v.

    Raises: InvalidArgument.
    """
    _check(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    kept = stages - stage
    if schedule == "DualPipe":
        kept = stages + 1
    elif schedule == "GPipe":
        kept = microbatches
    elif schedule in _SAVED:  # what W needs is kept, as much on every stage
        kept = 2 * stages - 1 if schedule == "ZB-H2" else stages
    elif chunks > 1:
        kept = chunks_in_flight(stages, stage, chunks) / chunks
    return min(microbatches, kept)


def chunks_in_flight(stages: int, stage: int, chunks: int) -> int:
    """Return 2 (p - stage - 1) + (v - 1) p + 1, of Megatron's interleaved schedule."""
    return 2 * (stages - stage - 1) + (chunks - 1) * stages + 1


def _check(schedule, **sizes):
    if schedule not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise InvalidArgument(f"schedule is one of {known}, and got {schedule!r}.")
    for name, size in sizes.items():
        if not size >= 1:
            raise InvalidArgument(f"{name} is a number from 1 on, and got {size!r}.")
