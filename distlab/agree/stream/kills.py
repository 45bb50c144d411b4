"""`run_with_kills`: a job in real processes, killed at random moments."""

import random
import time
from collections.abc import Iterator

from distlab.agree.stream.job import StreamJob, StreamResult
from distlab.agree.stream.tasks import BROKER, COORDINATOR
from distlab.errors import EngineFailed
from distlab.network import Client, Cluster, Delivery
from distlab.patience import patience
from distlab.trace import Call

__all__ = ["run_with_kills"]

_WORDS = ("the", "cat", "and", "a", "quick", "dog")


def run_with_kills(
    job: StreamJob,
    kills: int = 3,
    *,
    seed: int = 0,
    pause_s: float = 0.05,
    loses: tuple = ("", "unsynced"),
    nodes: tuple = (),
) -> StreamResult:
    """Feed a job while its nodes are killed (SIGKILL) and restarted; count the words.

    Clients append lines of random words until the last restart; then it may finish.

    kills: how many. pause_s: the longest between a restart and the next kill. loses:
    what a killed node's disk loses, one of them each time: see `Cluster.kill`. nodes:
    those that are killed, all if empty.

    Raises: EngineFailed if the job has not read its log after a minute.
    """
    chance, feeding, fed, ends = random.Random(seed), [True], [], {}
    how = {"pause_s": 0.01, "timeout_s": 0.5, "retries": 9999}
    clients = [
        Client(BROKER, _feed(p, seed, feeding, fed, ends), **how)
        for p in range(job.partitions)
    ]
    how = {"delivery": Delivery((0.0, 0.0005)), "seed": seed}
    with Cluster(job, job.nodes, **how) as cluster:
        cluster.start(clients)
        for _ in range(kills):
            time.sleep(chance.uniform(0, pause_s))
            node = chance.choice(nodes or range(job.nodes))
            cluster.kill(node, loses=chance.choice(loses))
            cluster.restart(node)
        feeding.clear()
        limit = time.monotonic() + patience(60)
        while (
            len(fed) < job.partitions  # the last append is not answered yet
            or cluster.call(COORDINATOR, "wait", None, dict(ends)).outcome != "ok"
        ):
            time.sleep(0.005)
            if time.monotonic() > limit:
                raise EngineFailed(f"the job has not read its log, up to {ends}")
    return job.result(cluster.outcome())


def _feed(partition, seed, feeding, fed, ends):
    def calls() -> Iterator[Call]:
        chance, number = random.Random(f"{seed} {partition}"), 0
        while feeding:
            lines = [" ".join(chance.choices(_WORDS, k=5)) for _ in range(5)]
            value = f"input {partition}", 0, number, lines
            ends[partition] = yield Call("produce", partition, value)
            number += 1
        fed.append(partition)

    return calls
