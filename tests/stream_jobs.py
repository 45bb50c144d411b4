"""Jobs, clients and wrong implementations for the tests of streams."""

import random

from distlab import Call, network
from distlab.agree.stream import (
    BROKER,
    Broker,
    CheckpointCoordinator,
    KeyedCount,
    SourceTask,
    word_count_job,
)
from distlab.agree.stream.channels import ChannelIn
from distlab.faults import Crash, Pause
from distlab.network import Client, Delivery

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]


def lines(count, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=4)) for _ in range(count)]


def storm(job, seed, count=120):
    """Run a job with eight crashes and pauses; return (result, outcome)."""
    draw, faults, at_s = random.Random(seed), [], 0.0
    for _ in range(8):
        at_s += draw.uniform(0.01, 0.08)
        until_s, node = at_s + draw.uniform(0.005, 0.08), draw.randrange(job.nodes)
        loses = draw.choice(["", "unsynced"])
        crash = Crash(node, at_s, until_s, loses)
        faults.append(draw.choice([crash, crash, Pause(node, at_s, until_s)]))
        at_s = until_s
    clients = job.clients(lines(count, seed), pause_s=0.05, timeout_s=0.05)
    how = {"delivery": Delivery(loss=0.02, duplicate=0.05), "until_s": 30.0}
    outcome = network.simulate(job, job.nodes, clients, faults=faults, seed=seed, **how)
    assert all(op.outcome == "ok" for op in outcome.history)
    return job.result(outcome), outcome


def of_broker(calls, *, make=None, faults=(), **how):
    """Run a broker alone; return (results of one client's calls, refusals, outcome)."""
    results = []

    def asking():
        for call in calls:
            results.append((yield call))

    client = Client(BROKER, asking, timeout_s=1.0, retries=20)
    make = make or (lambda me, peers: Broker(me, peers, inputs=2, **how))
    outcome = network.simulate(make, 1, client, faults=faults)
    return results, outcome


def produce(partition, producer, epoch, number, *records, txn=None):
    value = producer, epoch, number, list(records)
    return Call("produce", partition, value if txn is None else (*value, txn))


def read(partition, offset=0, committed=True):
    return Call("read", partition, (offset, committed))


# Wrong ones, each without a rule that is not among the seven of the library.


class AcksBeforeDurable(Broker):
    def when_durable(self, *effects):
        yield from effects
        yield from super().when_durable()


class TakesDuplicates(Broker):
    def admit(self, name, epoch, number, item):
        refused = super().admit(name, epoch, number, item)
        return "" if refused == "duplicate" and hasattr(item, "body") else refused


class ShowsAborted(Broker):
    def open_producer(self, name, epoch, commit):
        for txn, state in self.txns.items():
            if txn[0] == name and state == "open":
                self.txns[txn] = "committed"
        yield from super().open_producer(name, epoch, commit)


class ForgetsRecovery(KeyedCount):
    def open_sink(self, snapshot):
        for effect in super().open_sink(snapshot):
            frame = effect.message
            item = frame.item._replace(commit=None)
            self.out[BROKER].waiting[-1] = frame._replace(item=item)
            yield effect._replace(message=frame._replace(item=item))


class AcksUnsynced(KeyedCount):
    def may_acknowledge(self):
        return self.is_flushed()


class AcksUnflushed(KeyedCount):
    def is_flushed(self):
        return True


class LateSnapshot(KeyedCount):
    """Its snapshot is made from what the state is when the disk is ready."""

    def state(self):
        return super().state() | {"counts": self.counts}


class FirstBarrierOnly(KeyedCount):
    def is_aligned(self):
        return True


class BarrierTooEarly(SourceTask):
    """Counts what is fetched, and not sent yet, as before the barrier."""

    def on_checkpoint(self, checkpoint):
        if self.ready:
            self.offset = self.ready[-1].offset + self.ready[-1].count
        yield from super().on_checkpoint(checkpoint)


class OneMissing(CheckpointCoordinator):
    def is_complete(self):
        return len(self.missing) <= 1


class Unordered(ChannelIn):
    def accept(self, number, item):
        self.queue.append(item)


class TakesAsItComes(KeyedCount):
    def begin(self, snapshot):
        yield from super().begin(snapshot)
        self.inputs = {source: Unordered() for source in self.job.sources}


ONE = {"input": ((["a b"], ["a"]),), "partitions": 1, "workers": 1, "every_s": 0.006}
TWO = {"input": ((["a b"], ["a"]), (["b"], ["c"])), "workers": 1, "every_s": 0.006}
FAULTS = {"crashes": 2, "power_losses": 2}
WIDE = {"delivery": Delivery((0.001, 0.01))}
WRONG = {
    TakesDuplicates: ("broker", ONE, {"loss": 0.3, "duplicates": 0.3}),
    ShowsAborted: ("broker", ONE, FAULTS),
    ForgetsRecovery: ("operator", ONE, FAULTS),
    AcksUnflushed: ("operator", ONE, FAULTS | {"loss": 0.3}),
    LateSnapshot: ("operator", TWO | {"every_s": 0.001}, FAULTS | WIDE),
    FirstBarrierOnly: ("operator", TWO | {"every_s": 0.001}, WIDE),
    BarrierTooEarly: ("source", TWO | {"capacity": 1, "every_s": 0.001}, {}),
    OneMissing: ("coordinator", ONE, FAULTS),
    TakesAsItComes: ("operator", TWO, {"duplicates": 0.3}),
}


def wrong_job(kind):
    """Return (the job with a wrong class, how it is fuzzed)."""
    role, job, faults = WRONG[kind]
    return word_count_job(**job, **{role: kind}), faults
