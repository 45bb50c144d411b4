"""Schedules of the literature, each a function (stages, microbatches).

    naive          one microbatch at a time: one stage works, the others wait
    gpipe          all forward passes, then all backward passes
    one_f_one_b    forward and backward in turn: no more activations than stages
    interleaved    each stage has several chunks of the model: a shorter fill
    zero_bubble_h1, zero_bubble_h2     weight gradients fill the rest of the bubble
    zero_bubble_v  the same on two chunks in a V, with the memory of 1F1B
    dual_pipe_v    forward and backward side by side, each hides the other's messages

Source: Huang et al., GPipe (2019); Harlap et al., PipeDream (2018), and Narayanan et
al., Megatron-LM (2021), 1F1B and interleaving; Qi et al., Zero Bubble Pipeline
Parallelism (2024), sections 2 and 6; DeepSeek-AI, DeepSeek-V3 Technical Report
(2024), section 3.2.1, and the program DualPipe.

`of_torch` converts schedules of torch.distributed.pipelining to ours:

    of_torch(ScheduleInterleaved1F1B(stages, 8)) ──▶ Schedule ──▶ timed, show.pipeline
"""

import re
from collections import Counter
from pathlib import Path

from distlab.errors import InvalidArgument
from distlab.train.pipeline.schedule import Schedule, Work

__all__ = [
    "dual_pipe_v",
    "gpipe",
    "interleaved",
    "naive",
    "of_torch",
    "one_f_one_b",
    "zero_bubble_h1",
    "zero_bubble_h2",
    "zero_bubble_v",
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


def interleaved(
    stages: int, microbatches: int, chunks: int = 2, *, paired: bool = False
) -> Schedule:
    """Return 1F1B on stages with several chunks each.

    Microbatches go through a chunk in groups of as many as there are stages.
    paired: with one more F in the warm-up, so that each later F runs side by side with
    the B that follows it; a stage holds one chunk of a microbatch more.

    Raises: InvalidArgument if the microbatches do not make whole groups.
    Source of paired: Megatron-Core's --overlap-moe-expert-parallel-comm.
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

    overlapped = set()

    def works(stage):
        ahead = 2 * (stages - stage - 1) + (chunks - 1) * stages + paired
        ahead = min(total, ahead)
        if paired:
            overlapped.update((stage, work("F", n)) for n in range(ahead, total))
        yield from (work("F", number) for number in range(ahead))
        for number in range(total):
            if number + ahead < total:
                yield work("F", number + ahead)
            yield work("B", number)

    every = [[*works(stage)] for stage in range(stages)]
    return Schedule(every, microbatches, chunks, overlapped=overlapped)


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


def zero_bubble_v(stages: int, microbatches: int) -> Schedule:
    """Return ZB-V: two chunks in a V, without a bubble in a stage's span if F = B = W.

    A stage holds up to 2 * stages chunks of microbatches, as many activations as
    1F1B's first stage.
    """

    def words(stage, m):
        after = stages - stage - 1
        return (
            "F " * (2 * after + 1)
            + "F' F " * stage
            + "F' B' W' " * (after + 1)
            + "F B W F' B' W' " * (m - 2 * stages + stage + 1)
            + "B W F' B' W' " * after
            + "B B' " * stage
            + "B W " * (after + 1)
            + "W' " * stage
            + "W " * stage
        )

    return _in_a_v(stages, microbatches, words, least=2 * stages - 1)


def dual_pipe_v(stages: int, microbatches: int) -> Schedule:
    """Return DualPipeV: two chunks in a V, F of one beside the backward pass of other.

    A stage holds up to 2 * stages + 1 chunks of microbatches.
    """

    def words(stage, m):
        after, whole = stages - stage - 1, stage + 1
        backward = ["B'", "B"] * whole + ["B"] * after
        split = backward[whole:]
        weights = [word.replace("B", "W") for word in split]
        later = zip(weights, split[whole:], strict=False)  # each B behind an older W
        both = "F|B' F'|B " * (m - 2 * stages + whole)
        return (
            "F " * (2 * after)
            + "F F' " * whole
            + "B' W' F' " * after
            + (both if after else both.replace("F|B'", "F B' W'", 1))
            + "B' W' F'|B " * after
            + "".join(f"{b} {b.replace('B', 'W')} " for b in backward[:whole])
            + " ".join([*split[:whole], *(f"{w} {b}" for w, b in later)])
            + " ".join(["", *weights[after:]])
        )

    return _in_a_v(stages, microbatches, words, least=2 * stages)


def _in_a_v(stages, microbatches, words, least):
    """Return a schedule of two chunks in a V; words: (stage, microbatches) -> its row.

    A word such as F or B' is the next microbatch of that kind and chunk, and F|B' is F
    beside B' and W'. Rows are made of `least` microbatches or more, and lack those that
    there are not.
    """
    rows, overlapped = [], set()
    for stage in range(stages):
        row, following = [], Counter()
        for word in words(stage, max(microbatches, least)).split():
            kinds = [*word.split("|")]
            kinds += [each.replace("B", "W") for each in kinds[1:]]
            works = [Work(k[0], following[k], len(k) - 1) for k in kinds]
            following.update(kinds)
            works = [work for work in works if work.microbatch < microbatches]
            if len(works) == 3:
                overlapped.add((stage, works[0]))
            row += works
        rows.append(row)
    return Schedule(rows, microbatches, 2, True, overlapped)


_WORK = re.compile(r"(?<!\w)(\d+)([FBIW])(\d+)(?!\w)")  # stage, kind, microbatch
_OTHER = re.compile(r"\d+[A-Z_]{2,}\d*|")  # such as 3SEND_F1 and 0UNSHARD
_KINDS = {"F": "F", "B": "BW", "I": "B", "W": "W"}  # torch's letters, as ours


def of_torch(schedule) -> Schedule:
    """Return one of torch's schedules as a `Schedule`.

    schedule: an object of torch.distributed.pipelining, or the path of a CSV file of
    one, with a row for each rank.

    Raises: InvalidArgument if stages are assigned to ranks neither in turn nor in a V,
    or a cell is no action of torch's. InvalidSchedule for `Schedule1F1B` of torch 2.13,
    which reports an order in which the last rank's microbatches begin with 1; it runs
    the order of ours.
    """
    if isinstance(schedule, str | Path):
        lines = Path(schedule).read_text().splitlines()
        rows = [line.split(",") for line in lines if line.strip()]
    else:
        order = getattr(schedule, "pipeline_order", None)
        order = order or schedule._get_pipeline_order()
        rows = [[str(action or "") for action in order[rank]] for rank in sorted(order)]
    actions = [[_actions(cell.strip()) for cell in row] for row in rows]
    every = [
        (rank, a) for rank, row in enumerate(actions) for cell in row for a in cell
    ]
    v_shaped = _is_v_shaped({(rank, part) for rank, (part, *_) in every}, len(rows))
    splits = any(kind in "IW" for _, (_, kind, _) in every)
    stages, overlapped = [[] for _ in rows], set()
    for rank, row in enumerate(actions):
        for cell in row:
            works = [
                Work(kind, microbatch, part // len(rows))
                for part, letter, microbatch in sorted(cell, key=lambda a: a[1] != "F")
                for kind in _KINDS[letter][: 1 + splits]
            ]
            overlapped |= {(rank, work) for work in works[: len(cell) > 1]}
            stages[rank] += works
    chunks = 1 + max(work.chunk for row in stages for work in row)
    microbatches = 1 + max(work.microbatch for row in stages for work in row)
    return Schedule(stages, microbatches, chunks, v_shaped, overlapped)


def _actions(cell):
    """Return the works (stage, letter, microbatch) of one of torch's actions."""
    found = [(int(s), kind, int(m)) for s, kind, m in _WORK.findall(cell)]
    if not found and not _OTHER.fullmatch(cell):
        raise InvalidArgument(
            f"{cell!r} is no action of torch.distributed.pipelining, such as 0F1 or "
            "(0F7;7B3)OVERLAP_F_B."
        )
    return found


def _is_v_shaped(places, stages):
    """Return True for (rank, part) in a V, False in turn; raise for neither."""
    in_turn = {(part % stages, part) for _, part in places}
    in_a_v = {
        (stages - 1 - rank if part // stages % 2 else rank, part)
        for rank, part in in_turn
    }
    if places in (in_turn, in_a_v):
        return places != in_turn
    rank, part = min(places - in_turn)
    raise InvalidArgument(
        f"rank {rank} has stage {part} of {stages} ranks; of_torch takes schedules in "
        "which rank r has r, r + p, r + 2p, or a V, in which it has r and 2p - 1 - r."
    )
