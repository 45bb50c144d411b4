"""Whiteboard questions: numbers are drawn, and one is to be derived from them.

    whiteboard("bubble", seed=71)

Each function draws its numbers and returns the question, the value, its unit, and the
derivation with the numbers put in, in steps. Values come from `distlab.cost` where it
has the formula.
"""

from collections.abc import Callable
from math import comb
from random import Random

from distlab import cost
from distlab.errors import InvalidArgument
from distlab.learner.interview.questions import Question
from distlab.learner.quiz.card import Card
from distlab.links import LINKS
from distlab.units import GB

__all__ = ["TOPICS", "whiteboard"]

_MINUTES = 8
TOPICS: dict[str, tuple[str, str, str, Callable]] = {}


def whiteboard(topic: str, seed: int) -> Question:
    """Return the question of a topic, one of TOPICS, with the numbers of a seed.

    Raises: InvalidArgument for another topic.
    """
    if topic not in TOPICS:
        among = ", ".join(TOPICS)
        raise InvalidArgument(
            f"there is no whiteboard question {topic!r}, only {among}"
        )
    lesson, cell, level, drawn = TOPICS[topic]
    asked, value, unit, steps = drawn(Random(seed))
    question = Question(None, _MINUTES, value, unit)
    card = Card(
        id=f"whiteboard-{topic}-{seed}",
        level=level,
        topic=topic.replace("_", " "),
        question=asked,
        key_points=tuple(steps),
        cell=cell,
        lesson=lesson,
        answer=f"{question.number.said(float(f'{value:.3g}'))}, to three digits.",
    )
    return Question(card, _MINUTES, value, unit)


def _asks(lesson, cell, level="senior"):
    """Register a function as the topic of its name without the underscore."""

    def register(drawn):
        TOPICS[drawn.__name__[1:]] = lesson, cell, level, drawn
        return drawn

    return register


@_asks("01_why_distribute", "predict-eight", "mid")
def _speed_up(draw):
    n, percent = draw.choice([16, 32, 64, 128]), draw.choice([2, 4, 5, 8, 10])
    value = cost.amdahl_speedup(n, percent / 100)
    asked = f"{percent} % of a job is serial. What speed-up do {n} workers give?"
    s = percent / 100
    steps = [
        f"Amdahl's law with s = {s:g}: the speed-up is 1/(s + (1-s)/n).",
        f"1/({s:g} + {1 - s:g}/{n}) = 1/{1 / value:.4g} = {value:.3g}.",
        f"The bound for any number of workers is 1/s = {1 / s:.3g}.",
    ]
    return asked, value, "times", steps


@_asks("04_replication_and_quorums", "explain-zones")
def _quorum_availability(draw):
    n, percent = draw.choice([3, 5]), draw.choice([1, 2, 5])
    q, most = percent / 100, n // 2
    terms = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(most + 1, n + 1)]
    asked = (
        f"{n} replicas fail independently; each is down {percent} % of the time. For "
        "what share of the time, in percent, can no majority answer?"
    )
    steps = [
        f"A majority is {most + 1} of {n}, so it is lost with {most + 1} down.",
        f"The largest term: C({n},{most + 1}) · {q:g}^{most + 1} · "
        f"{1 - q:g}^{n - most - 1} = {100 * terms[0]:.3g} %.",
        f"With the terms above it: {100 * sum(terms):.3g} %.",
        "Failures behind one switch or in one zone are not independent, so this "
        "is a lower bound.",
    ]
    return asked, 100 * sum(terms), "%", steps


@_asks("06_mapreduce", "picture-shuffle")
def _shuffle_time(draw):
    terabytes, n = draw.choice([10, 20, 50]), draw.choice([50, 100, 200])
    gigabits, factor = draw.choice([10, 25]), draw.choice([1, 2, 4])
    share_gb, rate = terabytes * 1000 / n, gigabits / 8 / factor
    each = cost.pairwise_all_to_all(n, round(share_gb / n * GB))
    asked = (
        f"A job shuffles {terabytes} TB, spread evenly over {n} machines of {gigabits} "
        f"Gb/s each, through a network that is {factor}:1 oversubscribed. How many "
        "seconds does the shuffle take, at least?"
    )
    value = each.seconds(0, rate * GB)
    steps = [
        f"Each machine has {share_gb:.4g} GB, and sends (n-1)/n of them: "
        f"{share_gb * (n - 1) / n:.4g} GB.",
        f"{gigabits} Gb/s are {gigabits / 8:g} GB/s; {factor}:1 leaves {rate:.4g}.",
        f"{share_gb * (n - 1) / n:.4g} / {rate:.4g} = {value:,.4g} s.",
        "A hot key or a straggler makes it longer: the slowest machine ends it.",
    ]
    return asked, value, "s", steps


@_asks("08_streams", "picture-queue")
def _catch_up(draw):
    minutes, rate = draw.choice([10, 20, 30]), draw.choice([40, 60, 80])
    speed = rate + draw.choice([10, 20, 40])
    asked = (
        f"{rate},000 events a second arrive, and a job can process {speed},000. It was "
        f"down for {minutes} minutes. How many minutes after its restart is the lag 0?"
    )
    value = minutes * rate / (speed - rate)
    steps = [
        f"The backlog is {minutes} · 60 s · {rate},000 = "
        f"{minutes * 60 * rate / 1000:g} million events.",
        f"{speed},000 - {rate},000 = {speed - rate},000 a second are spare for it.",
        f"{minutes} · {rate}/{speed - rate} = {value:.3g} minutes.",
        "What was read after the last checkpoint is replayed on top of this.",
    ]
    return asked, value, "minutes", steps


@_asks("10_ring_all_reduce", "write-ring-seconds")
def _all_reduce_time(draw):
    n, gigabytes = draw.choice([16, 64, 256]), draw.choice([2, 7, 14])
    name = draw.choice(["InfiniBand HDR", "InfiniBand NDR"])
    link = LINKS[name]
    exact = cost.ring_all_reduce(n, gigabytes * GB, itemsize=2)
    value = 1000 * exact.seconds(link.latency_s, link.bytes_per_s)
    moved, rate = 2 * (n - 1) / n * gigabytes, link.bytes_per_s / GB
    asked = (
        f"{n} GPUs, one {name} NIC of {rate:g} GB/s each, all-reduce {gigabytes} GB of "
        f"gradients in a ring, with a latency of {1e6 * link.latency_s:.2g} µs. How "
        "many milliseconds does it take?"
    )
    steps = [
        f"Each rank sends 2(n-1)/n S = 2 · {n - 1}/{n} · {gigabytes} = {moved:.4g} GB.",
        f"{moved:.4g} GB / {rate:g} GB/s = {1000 * moved / rate:.4g} ms.",
        f"2(n-1) = {2 * (n - 1)} rounds of latency add "
        f"{2000 * (n - 1) * link.latency_s:.2g} ms: {value:.4g} ms.",
        "With buckets most of it is hidden behind the backward pass.",
    ]
    return asked, value, "ms", steps


@_asks("12_zero_and_fsdp", "compare-eight", "principal")
def _memory_per_gpu(draw):
    billions, tp = draw.choice([30, 70, 180]), draw.choice([4, 8])
    pp, dp, stage = draw.choice([2, 4, 8]), draw.choice([8, 16]), draw.choice([0, 1, 3])
    each = billions / tp / pp
    found = cost.zero_memory(each * 1e9, dp, stage)
    parts = found.parameter_bytes, found.gradient_bytes, found.state_bytes
    value = found.total_bytes / GB
    asked = (
        f"{billions} billion parameters are trained in bf16 with Adam and fp32 master "
        f"weights, with TP {tp}, PP {pp}, DP {dp} and ZeRO stage {stage}. How many GB "
        "of parameters, gradients and optimizer state does a GPU hold?"
    )
    steps = [
        f"TP and PP leave {billions}/({tp} · {pp}) = {each:.4g} billion "
        "parameters for each GPU.",
        "Each takes 2 bytes, its gradient 2, and the optimizer 12: 4 of master "
        "weights and 8 of two moments.",
        f"DP divides by {dp} what stage {stage} shards: "
        + " + ".join(f"{part / GB:.3g}" for part in parts)
        + f" = {value:.3g} GB.",
        "Activations and buffers come on top; embeddings make the end stages larger.",
    ]
    return asked, value, "GB", steps


@_asks("14_pipelines", "compare-bubble")
def _bubble(draw):
    p, v = draw.choice([4, 8, 16]), draw.choice([1, 2, 4])
    m = p * draw.choice([1, 2, 4])
    value = 100 * (p - 1) / (v * m + p - 1)
    how = "1F1B" if v == 1 else f"interleaved 1F1B with {v} chunks of layers on each"
    asked = (
        f"A pipeline of {p} stages runs {m} microbatches in {how}. What share of the "
        "time, in percent, is the bubble?"
    )
    steps = [
        f"Filling and draining cost p - 1 = {p - 1} slots.",
        f"The work is v · m = {v} · {m} = {v * m} slots of a chunk.",
        f"(p-1)/(v m + p-1) = {p - 1}/{v * m + p - 1} = {value:.3g} %.",
        "Some papers divide by the work alone: "
        f"{p - 1}/{v * m} = {100 * (p - 1) / (v * m):.3g} %. Say which you use.",
    ]
    return asked, value, "%", steps


@_asks("17_fault_tolerance", "my-interval")
def _checkpoint_interval(draw):
    gpus, years = draw.choice([4096, 8192, 16384]), draw.choice([4, 6])
    save_s = draw.choice([30, 60, 120])
    mtbf_s = cost.job_mtbf(years * 365 * 86400, gpus)
    value = cost.young(save_s, mtbf_s) / 60
    lost = save_s / (60 * value) + 30 * value / mtbf_s
    asked = (
        f"A job runs on {gpus:,} GPUs, each with a mean time between failures of "
        f"{years} years; a save stops it for {save_s} s. How many minutes should "
        "pass between two checkpoints?"
    )
    steps = [
        f"The job's M = {years} · 365 · 24 h / {gpus:,} = {mtbf_s / 3600:.3g} h.",
        "Saves cost δ/τ of the time and lost work τ/2M; the sum is smallest at "
        "τ = √(2 δ M).",
        f"√(2 · {save_s} · {mtbf_s:.4g}) s = {value:.3g} minutes.",
        f"Both together cost {100 * lost:.2g} % of the time, without restarts.",
    ]
    return asked, value, "minutes", steps


@_asks("20_interview", "principal-days", "principal")
def _training_days(draw):
    billions, trillions = draw.choice([70, 180, 405]), draw.choice([2, 8, 15])
    gpus, percent = draw.choice([2048, 8192, 16384]), draw.choice([35, 40, 45])
    rate = gpus * 989e12 * percent / 100
    value = 6 * billions * 1e9 * trillions * 1e12 / rate / 86400
    asked = (
        f"A dense model of {billions} billion parameters sees {trillions} trillion "
        f"tokens on {gpus:,} H100s (989 TFLOP/s in bf16) at an MFU of {percent} %. How "
        "many days does that take?"
    )
    steps = [
        f"6 P D = 6 · {billions}e9 · {trillions}e12 = "
        f"{6 * billions * trillions * 1e21:.3g} FLOP.",
        f"{gpus:,} · 989e12 · {percent / 100:g} = {rate:.3g} FLOP/s.",
        f"The quotient is {value * 86400:.3g} s = {value:.3g} days.",
        "Attention adds to 6 P D with the length of the sequence, and failures "
        "take their share of the days.",
    ]
    return asked, value, "days", steps
