"""`PartitionLog`: one partition of a log, in segments on the disk of its node.

    segment "log 0 000000"      │ batch at 0 │ batch at 3 │
    segment "log 0 000007"      │ batch at 7 │ batch at 8 │ ◀── append
                                                          end: 9

A batch is a number of records that a producer has sent together. It is written with
one `Append`, read whole, and has a checksum. A record's **offset** is its number in the
partition, from 0; it never changes, also when older segments are dropped.
"""

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from distlab.errors import CorruptLog, InvalidArgument
from distlab.network import Append, Effect, Save, Truncate

__all__ = ["LogBatch", "PartitionLog", "decode", "encode"]


class LogBatch(NamedTuple):
    """Records that were appended together.

    offset: of the first of them. count: their number. size, checksum: of `body`, the
    records as JSON; the checksum covers the other fields, too.
    producer: (name, epoch, sequence number) of who sent it.
    txn: the transaction that it is part of, None if of none. write_id: the id of an
    idempotent write, None without one.
    """

    offset: int
    count: int
    size: int
    checksum: int
    body: bytes
    producer: tuple
    txn: Any = None
    write_id: Any = None

    def __repr__(self):
        return f"{self.offset}: {self.body.decode(errors='replace')}"


def encode(records: Sequence) -> bytes:
    """Return records as bytes.

    Raises: InvalidArgument for a record that is not made of strings, numbers, None,
    lists and dicts.
    """
    try:
        return json.dumps(records, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"a record is made of strings, numbers, None, lists and dicts: {error}"
        ) from None


def decode(body: bytes) -> list:
    """Return the records of a batch."""
    return json.loads(body)


def _checksum(batch):
    return zlib.crc32(repr((*batch[:3], *batch[5:])).encode(), zlib.crc32(batch.body))


class PartitionLog:
    """The log of one partition; its methods return the effects that write it.

    number: of the partition. batches: all that are here, by offset.
    start: the first offset that is here. end: the offset of the next record.
    durable: the offset up to which a finished `Sync` covers the log; readers get no
        more, as a power loss could take it back. Invariant: start <= durable <= end.
    segments: (offset of its first batch, index of that among `batches`).
    """

    segment_batches = 1000

    def __init__(self, number: int):
        self.number, self.batches, self.segments = number, [], []
        self.start = self.end = self.durable = 0

    @classmethod
    def load(cls, number: int, saved: dict[str, Any]) -> tuple["PartitionLog", list]:
        """Return the log that a disk holds, and the effects that cut off a torn end.

        The last batch may be incomplete, as its write was cut off by a crash: nobody
        was told that it is there.

        Raises: CorruptLog naming a batch that was changed after it had been written.
        """
        log, cuts = cls(number), []
        names = sorted(name for name in saved if name.startswith(f"log {number} "))
        for name in names:
            for at, batch in enumerate(saved[name]):
                sound = batch.size == len(batch.body)
                if sound and batch.checksum == _checksum(batch):
                    log._add(batch, int(name.split()[2]))
                elif not sound and name == names[-1] and at == len(saved[name]) - 1:
                    cuts.append(Truncate(name, at))
                else:
                    raise CorruptLog(
                        f"partition {number}: the batch at offset {batch.offset}, "
                        f"number {at} of segment {name!r}, does not match its "
                        "checksum: a byte of it was changed after it had been written."
                    )
        log.durable = log.end
        return log, cuts

    def _add(self, batch, segment):
        if not self.batches:
            self.start = batch.offset
        if not self.segments or self.segments[-1][0] != segment:
            self.segments.append((segment, len(self.batches)))
        self.batches.append(batch)
        self.end = batch.offset + batch.count

    def append(
        self, body: bytes, count: int, producer: tuple, *, txn=None, write_id=None
    ) -> Effect:
        """Add a batch at the end; return the effect that writes it."""
        batch = LogBatch(self.end, count, len(body), 0, body, producer, txn, write_id)
        batch = batch._replace(checksum=_checksum(batch))
        segment = self.segments[-1] if self.segments else (self.end, 0)
        if len(self.batches) - segment[1] >= self.segment_batches:
            segment = self.end, len(self.batches)
        self._add(batch, segment[0])
        return Append(f"log {self.number} {segment[0]:020}", batch)

    def read(self, offset: int, most: int = 1, end: int | None = None) -> list:
        """Return up to `most` batches from the one with an offset on, below `end`.

        end: the durable end of the log, if not given.

        Raises: InvalidArgument for an offset that was dropped, or is not reached yet.
        """
        end = self.durable if end is None else end
        if not self.start <= offset <= self.end:
            raise InvalidArgument(
                f"partition {self.number} holds the offsets from {self.start} to "
                f"{self.end - 1}, and was asked for {offset}."
            )
        at = max(0, bisect_right(self.batches, offset, key=lambda b: b.offset) - 1)
        some = self.batches[at : at + most]
        return [b for b in some if offset < b.offset + b.count <= end]

    def drop_before(self, offset: int) -> Iterable[Effect]:
        """Drop the segments that end before an offset (retention); the last one stays.

        A log without retention keeps everything, and can be replayed from offset 0.
        """
        while len(self.segments) > 1 and self.segments[1][0] <= offset:
            (first, _), (self.start, count) = self.segments[:2]
            del self.batches[:count]
            self.segments = [(of, at - count) for of, at in self.segments[1:]]
            yield Save(f"log {self.number} {first:020}", [])
