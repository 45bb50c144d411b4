"""`Broker`: the node that holds the log: producers, transactions, readers.

    producer ─ Produce 0, 1, 2 … ─▶ is_fenced? is_duplicate? ─▶ log ─ Sync ─▶ Credit
    reader ◀─ up to the first open transaction, without aborted ones ─ log

A broker of Kafka in small: one node, without replicas. An **idempotent producer** has a
name, an epoch and a sequence number for each write, so a write that is sent again is
written once. A **zombie** is a producer that was replaced and does not know it: its
epoch is over, so it is fenced. A **transaction** makes writes to several partitions and
consumer offsets visible at once, or never.

Source: Kafka's KIP-98, "Exactly Once Delivery and Transactional Messaging" (2017). Here
one record holds a decision, where Kafka then writes a marker to each partition.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.agree.stream.channels import (
    ChannelFrame,
    Credit,
    EndTransaction,
    Fetch,
    Fetched,
    OpenProducer,
    Produce,
)
from distlab.agree.stream.groups import GROUP_CALLS, ConsumerGroups
from distlab.agree.stream.log import PartitionLog, decode, encode
from distlab.errors import InvalidArgument
from distlab.network import Append, Effect, Note, Refuse, Reply, Send, Sync
from distlab.trace import Call

__all__ = ["COMMITTED", "Broker", "Producer"]

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Producer(NamedTuple):
    """The broker's memory of a producer: its epoch, and the number that is next."""

    epoch: int = 0
    next: int = 0


class Broker(ConsumerGroups):
    """A node with a log of several partitions; a rule is one method.

    Calls of clients, besides those of consumer groups: "produce" to partition `key` of
    (producer, epoch, number, records), or with a transaction's number behind; reply:
    the offset after it. "open" of producer `key`: reply: its new epoch, whose first
    number is 1. "end" of producer `key` with (epoch, number, transaction, whether to
    commit, offsets by group). "read" of partition `key` from (offset, whether only
    committed records): reply: (the offset to go on from, records).

    capacity_bytes: of its disk; beyond that it refuses to append, and keeps the rest.
    producers: name -> `Producer`. txns: (producer, epoch, number) -> its state.
    seen: ids of idempotent writes, by partition. fetches: of sources that wait.
    waiting: token of a sync -> effects that have to wait for it. early: of tasks,
    (epoch, number) -> item that others come before.

    Invariant: nothing is acknowledged or read before it is durable.
    """

    most_batches = 16  # in one message
    input: tuple = ()  # partition -> batches of records, of a log that is filled

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        *,
        inputs: int = 1,
        outputs: int = 0,
        capacity_bytes: float = float("inf"),
    ):
        super().__init__(me, peers)
        self.inputs, self.capacity_bytes = inputs, capacity_bytes
        self.logs = [PartitionLog(number) for number in range(inputs + outputs)]
        self.producers, self.txns, self.fetches = {}, {}, {}
        self.seen = [set() for _ in self.logs]
        self.used_bytes, self.token, self.waiting, self.early = 0, 0, {}, {}

    # rules

    def is_fenced(self, name: Any, epoch: int) -> bool:
        """Return True if a newer epoch of this producer has begun."""
        return epoch < self.producers.get(name, Producer()).epoch

    def is_duplicate(self, name: Any, number: int) -> bool:
        """Return True if the write of this number is in the log."""
        return number < self.producers.get(name, Producer()).next

    def is_seen(self, partition: int, write_id: Any) -> bool:
        """Return True if an idempotent write of this id is in the log."""
        return write_id is not None and write_id in self.seen[partition]

    def has_room(self, size: int) -> bool:
        """Return True if the disk has room for so many bytes."""
        return self.used_bytes + size <= self.capacity_bytes

    def is_visible(self, batch: Any) -> bool:
        """Return True if a batch is read by those who read committed records."""
        return batch.txn is None or self.txns[batch.txn] == COMMITTED

    def committed_end(self, partition: int) -> int:
        """Return the offset of the first open transaction (last stable offset)."""
        log = self.logs[partition]
        open_ = (b.offset for b in log.batches if self.txns.get(b.txn) == OPEN)
        return min(next(open_, log.end), log.durable)

    # start, disk

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load the log, and learn from it what producers have written."""
        yield from self.load_groups(saved)
        for number in range(len(self.logs)):
            log, cuts = PartitionLog.load(number, saved)
            self.logs[number], log.durable = log, log.start
            yield from cuts
            for batch in log.batches:
                self._learn(number, batch)
        for name, epoch, number, states in saved.get("producers", ()):
            self._advance(name, epoch, number)
            self.txns.update(states)
        if not saved:
            for partition, batches in enumerate(self.input):
                for number, records in enumerate(batches):
                    item = Produce(partition, encode(records), len(records))
                    yield from self.append(f"input {partition}", 0, number, item)
        yield from self.when_durable()  # what a crash has left may not be synced

    def _learn(self, partition, batch):
        self.used_bytes += batch.size
        self._advance(*batch.producer)
        if batch.txn is not None:
            self.txns.setdefault(batch.txn, OPEN)
        if batch.write_id is not None:
            self.seen[partition].add(batch.write_id)

    def _advance(self, name, epoch, number):
        known = self.producers.get(name, Producer())
        self.producers[name] = max(known, Producer(epoch, number + 1))

    def when_durable(self, *effects: Effect) -> Iterator[Effect]:
        """Sync what was written so far, and carry out effects after that."""
        self.token += 1
        self.waiting[self.token] = effects, [log.end for log in self.logs]
        yield Sync(self.token)

    def on_synced(self, token: Hashable) -> Iterator[Effect]:
        """Acknowledge what is durable, and serve the readers that wait for it."""
        effects, ends = self.waiting.pop(token)
        for log, end in zip(self.logs, ends, strict=True):
            log.durable = max(log.durable, end)
        yield from effects
        for sender, fetch in list(self.fetches.items()):
            yield from self.serve(sender, fetch)

    # producers

    def append(self, name: Any, epoch: int, number: int, item: Produce) -> Iterator:
        """Append a write, unless its id was seen."""
        if self.is_seen(item.partition, item.write_id):
            yield from self.note(name, epoch, number)
            return
        txn = item.txn if item.txn is None else (name, epoch, item.txn)
        log, by = self.logs[item.partition], (name, epoch, number)
        yield log.append(item.body, item.count, by, txn=txn, write_id=item.write_id)
        self._learn(item.partition, log.batches[-1])

    def note(self, name: Any, epoch: int, number: int, states: dict | None = None):
        """Write that a producer has done something else, and what of transactions."""
        self._advance(name, epoch, number)
        self.txns.update(states or {})
        yield Append("producers", (name, epoch, number, states or {}))

    def open_producer(self, name: Any, epoch: int, commit: tuple | None) -> Iterator:
        """Begin an epoch: commit one transaction of an earlier one, abort others."""
        mine = [t for t, s in self.txns.items() if t[0] == name and s == OPEN]
        kept = (name, *commit) if commit else None
        states = {txn: COMMITTED if txn == kept else ABORTED for txn in mine}
        self.producers[name] = Producer(epoch, 0)
        yield from self.note(name, epoch, 0, states)

    def end_transaction(self, name, epoch, number, item: EndTransaction) -> Iterator:
        """Decide a transaction, with one write for all partitions and offsets."""
        txn = name, epoch, item.txn
        open_ = self.txns.get(txn) == OPEN
        states = {txn: COMMITTED if item.commit else ABORTED} if open_ else {}
        yield from self.note(name, epoch, number, states)
        if item.commit and item.offsets:
            yield from self.save_offsets(item.offsets)

    def admit(self, name: Any, epoch: int, number: int, item: Any) -> str:
        """Return "" for a write that is next, else the reason to refuse it."""
        known = self.producers.get(name, Producer())
        opens = type(item) is OpenProducer and number == 0 and epoch > known.epoch
        if self.is_fenced(name, epoch):
            return "fenced"
        if not opens and epoch <= known.epoch and self.is_duplicate(name, number):
            return "duplicate"
        if not opens and (epoch > known.epoch or number > known.next):
            return "gap"
        room = type(item) is not Produce or self.has_room(len(item.body))
        return "" if room else "full"

    def take(self, name: Any, epoch: int, number: int, item: Any) -> Iterator[Effect]:
        """Carry out an admitted item of a producer."""
        if type(item) is OpenProducer:
            return self.open_producer(name, epoch, item.commit)
        if type(item) is EndTransaction:
            return self.end_transaction(name, epoch, number, item)
        return self.append(name, epoch, number, item)

    # tasks

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """Take a producer's frame, or a source's request for batches."""
        if type(message) is Fetch:
            yield from self.serve(sender, message)
        elif type(message) is ChannelFrame:
            self.early.setdefault(sender, {})[message[:2]] = message.item
            yield from self.on_frames(sender)

    def on_frames(self, sender: int) -> Iterator[Effect]:
        """Take a producer's frames that are next; refuse others, or keep them."""
        early = self.early[sender]
        for epoch, number in sorted(early):
            item = early[epoch, number]
            refused = self.admit(sender, epoch, number, item)
            if refused == "gap":
                continue
            del early[epoch, number]
            if not refused:
                yield from self.take(sender, epoch, number, item)
            if refused in ("fenced", "full"):
                yield Note(f"{refused}: write {number} of node {sender}, epoch {epoch}")
            else:
                next_ = self.producers[sender].next
                yield from self.when_durable(Send(sender, Credit(epoch, next_)))

    def serve(self, sender: int, fetch: Fetch) -> Iterator[Effect]:
        """Send a source the next batches, once there are any."""
        batches = self.logs[fetch.partition].read(fetch.offset, self.most_batches)
        if batches:
            self.fetches.pop(sender, None)
            yield Send(sender, Fetched(fetch.attempt, fetch.offset, tuple(batches)))
        else:
            self.fetches[sender] = fetch

    # clients

    def group_partitions(self) -> Sequence[int]:
        """Return the input partitions."""
        return range(self.inputs)

    def log_of(self, partition: int) -> PartitionLog:
        """Return the log of a partition.

        Raises: InvalidArgument if there is none.
        """
        if type(partition) is not int or not 0 <= partition < len(self.logs):
            raise InvalidArgument(f"there is no partition {partition!r}")
        return self.logs[partition]

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Serve a producer, a reader, or a member of a consumer group."""
        serve = {
            "produce": self.on_produce,
            "open": self.on_open,
            "end": self.on_end,
            "read": self.on_read,
            **dict.fromkeys(GROUP_CALLS, self.on_group_call),
        }.get(call.op)
        if serve is None:
            to = 1 if self.peers else None
            yield Refuse(request, f"a broker knows no {call.op!r}", to)
            return
        try:
            yield from serve(request, call)
        except (InvalidArgument, TypeError, ValueError, IndexError) as error:
            yield Refuse(request, f"{call.op} of {call.value!r}: {error}")

    def on_produce(self, request: int, call: Call) -> Iterator[Effect]:
        """Append a client's records."""
        name, epoch, number, records, *txn = call.value
        item = Produce(call.key, encode(records), len(records), *txn)
        log = self.log_of(call.key)
        refused = self.admit(name, epoch, number, item)
        if not refused:
            yield from self.append(name, epoch, number, item)
        yield from self._answer(request, refused, name, log.end)

    def on_open(self, request: int, call: Call) -> Iterator[Effect]:
        """Begin the next epoch of a client's producer."""
        epoch = self.producers.get(call.key, Producer()).epoch + 1
        yield from self.open_producer(call.key, epoch, None)
        yield from self.when_durable(Reply(request, epoch))

    def on_end(self, request: int, call: Call) -> Iterator[Effect]:
        """End a client's transaction."""
        epoch, number, txn, commit, offsets = call.value
        item = EndTransaction(txn, offsets, commit)
        refused = self.admit(call.key, epoch, number, item)
        if not refused:
            yield from self.end_transaction(call.key, epoch, number, item)
        yield from self._answer(request, refused, call.key, None)

    def _answer(self, request, refused, name, result):
        known = self.producers.get(name, Producer())
        why = {
            "fenced": f"fenced: {name!r} is in epoch {known.epoch} now",
            "gap": f"the next write of {name!r} is number {known.next}",
            "full": f"the disk is full: {self.used_bytes:,} of {self.capacity_bytes:,} "
            "bytes; all that was acknowledged is kept",
        }.get(refused)
        if why:
            yield Refuse(request, why)
        else:
            yield from self.when_durable(Reply(request, result))

    def on_read(self, request: int, call: Call) -> Iterator[Effect]:
        """Send a client records from an offset on."""
        offset, only_committed = call.value
        log = self.log_of(call.key)
        end = self.committed_end(call.key) if only_committed else None
        batches = log.read(offset, self.most_batches, end)
        records, next_ = [], offset
        for batch in batches:
            next_ = batch.offset + batch.count
            if not only_committed or self.is_visible(batch):
                records += decode(batch.body)[max(0, offset - batch.offset) :]
        yield Reply(request, (next_, records))
