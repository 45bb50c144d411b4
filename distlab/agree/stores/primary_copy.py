"""A primary-backup store: the primary writes a log, the backups copy it.

    client ─▶ backup ─ Forward ─▶ primary ─ LogLines ▶ backups
    client ◀─ backup ◀─ Answer ── primary ◀─ Copied ─ backups

PostgreSQL, MySQL and Redis ship such a log to their replicas, too. A backup has a
prefix of it, and never anything out of order.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from distlab.agree.stores.store import Store
from distlab.errors import InvalidArgument
from distlab.network import CancelTimer, Effect, Refuse, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["PrimaryCopy"]


class LogEntry(NamedTuple):
    """One line of the log: a request, the key's value after it, and its result."""

    request: int
    key: Any
    value: Any
    result: Any


class Forward(NamedTuple):
    """Backup to primary: a client's call."""

    request: int
    call: Call


class Answer(NamedTuple):
    """Primary to backup: the result of a forwarded call."""

    request: int
    result: Any


class LogLines(NamedTuple):
    """Primary to backup: the log from line `first` on."""

    first: int
    entries: tuple[LogEntry, ...]


class Copied(NamedTuple):
    """Backup to primary: the first `lines` lines of the log are on its disk."""

    lines: int


class PrimaryCopy(Store):
    """A store that writes through node `primary`, and reads there or at any replica.

    synchronous: True if the primary replies to a write only after all backups have
        copied it; else it replies at once and copies later.
    read_at: "primary", or "any": the node that the client calls reads its own copy.
    patience_s: seconds that a backup waits for the primary, and after which a message
        is sent again.

    The primary is fixed. While it is down or cut off no write completes, and if it is
    synchronous, one backup that is down or cut off stops all writes, too. To elect
    another primary takes consensus, which is a protocol of its own.

    Cost: at the primary a read takes no message, and a write 2 one-way delays if it is
    synchronous; at a backup each takes 2 more, but a read at any replica none.
    """

    calls = ("read", "write", "cas")
    patience_s = 0.2

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        *,
        primary: int = 0,
        synchronous: bool = True,
        read_at: Literal["primary", "any"] = "primary",
    ):
        super().__init__(me, peers)
        if primary != me and primary not in self.peers:
            raise InvalidArgument(
                f"primary={primary!r}: the nodes are 0 to {len(self.peers)}."
            )
        if read_at not in ("primary", "any"):
            raise InvalidArgument(f'read_at={read_at!r}: it is "primary" or "any".')
        self.primary, self.synchronous, self.read_at = primary, synchronous, read_at
        self.log: list[LogEntry] = []
        self.values: dict[Any, Any] = {}  # key -> its value after the last line
        self.lines: dict[int, int] = {}  # request -> its line in the log
        self.copied = dict.fromkeys(self.peers, 0)  # backup -> lines it surely has
        self.askers: dict[int, int] = {}  # request -> the node that waits for it
        self.forwarded: dict[int, Call] = {}  # request -> what this backup waits for

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Read the log from the disk, line by line."""
        for number in range(len(saved)):
            self._apply(saved[f"line {number}"])
        if self.me == self.primary:
            yield SetTimer("ship", self.patience_s)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Read this node's copy, or have the primary decide."""
        if call.op == "read" and self.read_at == "any":
            yield Reply(request, self.values.get(call.key))
        elif self.me == self.primary:
            yield from self._decide(self.me, request, call)
        else:
            self.forwarded[request] = call
            yield Send(self.primary, Forward(request, call))
            yield SetTimer(request, self.patience_s)

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """As the primary decide and ship; as a backup copy, and pass results on."""
        match message:
            case Forward(request, call):
                yield from self._decide(sender, request, call)
            case Answer(request, result):
                if self.forwarded.pop(request, None) is not None:
                    yield CancelTimer(request)
                    yield Reply(request, result)
            case LogLines(first, entries):
                if first <= len(self.log):  # more, only if a disk has forgotten lines
                    for entry in entries[len(self.log) - first :]:
                        yield from self._write_down(entry)
                yield Send(sender, Copied(len(self.log)))
            case Copied(lines):
                self.copied[sender] = max(lines, self.copied[sender])
                yield from self._answer_what_is_copied()

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Send again what was dropped; refuse a read that the primary doesn't answer.

        A write that was forwarded must not be refused: it may be in the primary's log,
        and only the response dropped. A client that receives "not done" and writes
        again has then written twice, and others have read a write reported as not done.
        """
        if name == "ship":
            yield from self._ship()
        elif self.forwarded[name].op == "read":
            del self.forwarded[name]
            yield Refuse(name, f"the primary, node {self.primary}, does not answer")
        else:
            yield Send(self.primary, Forward(name, self.forwarded[name]))
            yield SetTimer(name, self.patience_s)

    def _decide(self, asker, request, call):
        if call.op == "read":
            yield from self._answer(asker, request, self.values.get(call.key))
            return
        self.askers[request] = asker
        if request not in self.lines:  # a message may come twice: it is done once
            yield from self._write_down(self._entry(request, call))
            yield from self._ship()
        yield from self._answer_what_is_copied()

    def _entry(self, request, call):
        """Return the line for a call. A "cas" that fails has one, too.

        If it had none, and its message came again after the value had changed, it would
        succeed then, though its client had received a failure.
        """
        if call.op == "write":
            return LogEntry(request, call.key, call.value, None)
        old, new = call.value
        now = self.values.get(call.key)
        return LogEntry(request, call.key, new if now == old else now, now == old)

    def _write_down(self, entry):
        yield Save(f"line {len(self.log)}", entry)
        self._apply(entry)

    def _apply(self, entry):
        self.lines[entry.request] = len(self.log)
        self.log.append(entry)
        self.values[entry.key] = entry.value

    def _ship(self):
        """Send every backup the lines that it may lack; set a timer to repeat it."""
        behind = [peer for peer in self.peers if self.copied[peer] < len(self.log)]
        for peer in behind:
            first = self.copied[peer]
            yield Send(peer, LogLines(first, tuple(self.log[first:])))
        if behind:
            yield SetTimer("ship", self.patience_s)

    def _answer_what_is_copied(self):
        everywhere = min(self.copied.values(), default=len(self.log))
        safe = everywhere if self.synchronous else len(self.log)
        for request, asker in list(self.askers.items()):
            line = self.lines[request]
            if line < safe:
                del self.askers[request]
                yield from self._answer(asker, request, self.log[line].result)

    def _answer(self, asker, request, result):
        if asker == self.me:
            yield Reply(request, result)
        else:
            yield Send(asker, Answer(request, result))
