"""The relay: it carries and records the messages of untrusted ranks.

    rank 0 ──▶ call: to 1 ───▶ ┌───────┐
                               │ Relay │ both sides posted: deliver, record, reply
    rank 1 ──▶ call: from 0 ─▶ └───────┘
                                   └─▶ Recorders of ranks 0 and 1 ─▶ SharedTrace, Trace

It runs in the process that called `run`, and no rank can reach the memory of its
records. A message is delivered only when its receiver waits for it, so the records
show exactly what a rank can know, and when.
"""

import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable

from distlab.launch.clocks import RealClock
from distlab.launch.in_flight import AnyWait, InFlightOp, Side
from distlab.peers import check_color, check_group_name, in_new_group
from distlab.recorder import DESTROYED, IN, OUT, THREADED, Recorder, any_words
from distlab.trace import group_name

__all__ = ["ProtocolViolation", "Relay"]

MOST_CALLS = 200_000  # of one rank; each can be two events of its trace
_MOST_WORDS = 500
_MOST_ROOM_BYTES = 2**40
_KINDS = {(True, False): "send", (False, True): "recv", (True, True): "sendrecv"}
_TOLD_BY_RANKS = ("mark", "collective", "fault")


class ProtocolViolation(Exception):
    """An invalid request of a rank, which no Comm sends."""


class Relay:
    """The carrier of one call's messages; `handle` processes a rank's request.

    reply: called with a rank and a frame for it.
    answers: called with (rank, question, step) for a rank's `comm.ask`, where step is
    the number of its Comm's calls so far; question and answer are plain data.
    """

    def __init__(
        self,
        recorders: list[Recorder],
        reply: Callable[[int, bytes], None],
        *,
        answers: Callable[[int, object, int], object] | None = None,
        clock=None,
    ):
        self._recorders, self._reply = recorders, reply
        self._answers = answers
        self.clock = clock or RealClock()
        self._world_size = len(recorders)
        everyone = range(self._world_size)
        self._ops = [{} for _ in everyone]
        self._calls = [0 for _ in everyone]
        self._works = [{} for _ in everyone]
        self._sends, self._recvs, self._recvs_any = {}, {}, {}
        self._meeting, self._gone = defaultdict(list), set()
        self._groups = {"": list(everyone)}  # name -> members, as ranks in the world
        self._splits = Counter()
        self._still, self._matched = [set() for _ in everyone], []  # requests, by rank
        self._polls, self._asked = [], {}
        self.refused = {}  # rank -> the mismatch of a message of its
        self.disagreed = set()  # ranks that entered another collective than others
        self._does = {
            "call": self._call,
            "wait": self._wait,
            "any": self._wait_any,
            "done": self._done,
            "point": self._point,
            "flag": self._flag,
            "work": self._work,
            "worked": self._worked,
            "ask": self._ask,
        }

    def handle(self, rank: int, payload: memoryview) -> None:
        """Process a request of a rank.

        Raises: ProtocolViolation if it is invalid.
        """
        self._calls[rank] += 1
        if self._calls[rank] > MOST_CALLS:
            raise ProtocolViolation(f"more than {MOST_CALLS:,} calls and marks")
        try:
            head, _, data = bytes(payload).partition(b"\n")
            said = json.loads(head)
            self._does[said["do"]](rank, said, data)
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ProtocolViolation("what is no request of a Comm") from None
        self._deliver()

    def ended(self, rank: int, well: bool) -> None:
        """Record that a rank's call has ended.

        Its messages that it did not wait for are delivered all the same.
        """
        self._gone.add(rank)
        for op in [op for op in self._ops[rank].values() if not op.left]:
            self._note(op)
        self._recorders[rank].now("done" if well else "raised")
        self._deliver()

    # ---- calls ----------------------------------------------------------------------

    def _call(self, rank, said, data):
        number, kind = said["call"], said["kind"]
        if type(number) is not int or number in self._ops[rank]:
            raise ValueError
        recorder = self._recorders[rank]
        recorder.step += 1
        group = said["group"]
        if rank not in self._groups[group]:
            raise ValueError
        op = InFlightOp(
            rank, number, kind, self.clock.moment(rank), said["asks"], group
        )
        if kind == "barrier":
            self._enter(op, _words(said["words"]), said.get("split"))
            return
        if kind != _KINDS["out" in said, "into" in said]:
            raise ValueError
        if "into" in said:
            peer, type_, size = said["into"]
            if peer == -1 and said["waits"] is True:
                self._take_any(op, type_, size)
                return
            self._check(op, peer, type_, size)
            op.into = self._side(op, IN, peer, type_, size)
        if "out" in said:
            peer, type_ = said["out"]
            self._check(op, peer, type_, len(data))
            op.out = self._side(op, OUT, peer, type_, len(data), data)
        self._ops[rank][number] = op
        if not all(self._offer(op, way, side) for way, side in op.ways()):
            return
        op.waits = said["waits"] is True  # only now: both its sides are known
        if op.waits:
            self._stand_still(op)
        else:
            self._answer(rank, op.asks, {})

    def _take_any(self, op, type_, size):
        """Block a rank in a receive from any member, until the first message."""
        rank, group = op.rank, op.group
        peers = [peer for peer in self._groups[group] if peer != rank]
        self._check(op, peers[0], type_, size)
        op.into, op.waits, op.left = Side(-1, 0, type_, size), True, 1
        self._ops[rank][op.number] = self._recvs_any[rank, group] = op
        posted = self._recorders[rank].posted
        sides = [(p, IN, posted(rank, p, IN, group) + 1, group) for p in peers]
        self._stand_for_any(rank, op.asks, op.since, any_words("recv_any", sides))
        if not self.clock.virtual:
            self._match_any()

    def _match_any(self, before=math.inf):
        """Match a receive from any with the message that was offered first.

        before: on a virtual clock, the limit of the time when both sides were posted.
        Returns: True if there was such a message.
        """
        found = min(
            (
                (max(op.since, sends[0].since), sender, rank, group)
                for (rank, group), op in self._recvs_any.items()
                for sender in self._groups[group]
                if (sends := self._sends.get((sender, rank, group)))
            ),
            default=(math.inf,),
        )
        if found[0] > before or found[0] == math.inf:
            return False
        _, sender, rank, group = found
        op = self._recvs_any.pop((rank, group))
        op.into = self._side(op, IN, sender, op.into.type, op.into.bytes)
        op.left = 0
        if not self._offer(op, IN, op.into):
            self._release(rank, op.asks)
        return True

    def _check(self, op, peer, type_, size):
        if type(peer) is not int or type(size) is not int or type(type_) is not str:
            raise ValueError
        if peer not in self._groups[op.group] or peer == op.rank or len(type_) > 20:
            raise ValueError
        if not -(type_ == "object") <= size <= _MOST_ROOM_BYTES:
            raise ValueError

    def _side(self, op, way, peer, type_, size, data=b""):
        noted = size if size >= 0 else 2**64 - 1
        recorder = self._recorders[op.rank]
        number = recorder.offer(peer, way, noted, type_, op.group)
        return Side(peer, number, type_, size, data)

    def _offer(self, op, way, side):
        """Match a message's side with its partner if posted; return False if unfit."""
        op.left += 1
        pair = (op.rank, side.peer) if way == OUT else (side.peer, op.rank)
        pair = *pair, op.group
        here, there = (self._sends, self._recvs)[:: 1 if way == OUT else -1]
        partners = there.get(pair)
        if not partners:
            here.setdefault(pair, deque()).append(op)
            if not self.clock.virtual:
                self._match_any()
            return True
        other = partners.popleft()
        sender, receiver = (op, other) if way == OUT else (other, op)
        out, into = sender.out, receiver.into
        if out.type != into.type or into.bytes not in (-1, out.bytes):
            self._refuse(op, pair, out, into)
            return False
        into.bytes, receiver.arrived, out.data = out.bytes, out.data, b""
        ready = max(sender.since, receiver.since)
        if self.clock.virtual:
            self._matched.append((ready, pair, sender, receiver))
        else:
            self._arrive(self.clock.moment(sender.rank), sender, receiver)
        return True

    def _deliver(self):
        """Begin and end messages in order of virtual time, once all ranks are blocked.

        A rank that still computes may yet send an earlier message.
        """
        while self.clock.virtual:
            still = {rank for rank, asks in enumerate(self._still) if asks}
            if len(still | self._gone) < self._world_size:
                return
            begins = min(self._matched, key=lambda each: each[:2], default=None)
            ops, end = self.clock.first_to_end() or (None, math.inf)
            if self._match_any(min(begins[0], end) if begins else end):
                continue
            if begins and begins[0] <= end:
                self._matched.remove(begins)
                ready, (src, dst, _), *ops = begins
                self.clock.begin(src, dst, ops[0].out.bytes, ready, tuple(ops))
            elif ops:
                self.clock.end(ops)
                self._arrive(end, *ops)
                self._answer_polls(end)
            else:
                return

    def _arrive(self, end, sender, receiver):
        """Record a message's arrival; release a rank that waits for no others."""
        sender.out.end = receiver.into.end = end
        for each in (sender, receiver):
            each.left -= 1
            each.end = max(each.end, end)
            if each.rank in self._gone and not each.left:
                self._note(each)
            elif each.waits and not each.left:
                self._finish(each)
            elif each.first and not each.left:
                self._end_any(each.first)

    def _refuse(self, op, pair, out, into):
        message = (
            f"message {out.number} from rank {pair[0]} to rank {pair[1]} does not fit: "
            f"rank {pair[0]} sends {out.described()}, "
            f"rank {pair[1]} has room for {into.described()}."
        )
        self.refused.setdefault(op.rank, message)  # even if its code catches the error
        wrong = {"error": "MessageMismatch", "message": message}
        self._answer(op.rank, op.asks, wrong)

    def _wait(self, rank, said, _):
        op = self._ops[rank][said["call"]]
        op.waits, op.asks = True, said["asks"]
        self._stand_still(op)

    def _wait_any(self, rank, said, _):
        ops = [self._ops[rank].get(number) for number in said["calls"]]
        if None in ops:  # its wait has returned
            self._answer(rank, said["asks"], {"place": ops.index(None)})
            return
        first = AnyWait(said["asks"], ops)
        if all(op.left for op in ops):
            words = any_words("wait_any", first.sides())
            self._stand_for_any(rank, first.asks, self.clock.moment(rank), words)
        else:
            self._end_any(first)

    def _end_any(self, first):
        """Reply to a rank with the place of its call that ended first."""
        op = min((op for op in first.ops if not op.left), key=lambda op: op.end)
        for each in first.ops:
            each.first = None
        self.clock.reached(op.rank, op.end)
        self._release(op.rank, first.asks)
        self._answer(op.rank, first.asks, {"place": first.ops.index(op)})

    def _done(self, rank, said, _):
        """Reply; on a virtual clock, defer a repeated question until a message ends."""
        op, now = self._ops[rank].get(said["call"]), self.clock.moment(rank)
        over = op is None or (not op.left and op.end <= now)
        if over or not self.clock.virtual or self._asked.get(rank) != now:
            self._asked[rank] = now
            self._answer(rank, said["asks"], {"done": over})
        else:
            self._polls.append((rank, said))
            self._still[rank].add(said["asks"])

    def _answer_polls(self, end):
        polls, self._polls = self._polls, []
        for rank, said in polls:
            self.clock.reached(rank, end)
            self._still[rank].discard(said["asks"])
            self._done(rank, said, b"")

    def _stand_for_any(self, rank, asks, since, words):
        self._still[rank].add(asks)
        self._recorders[rank].now("blocked", "any", label=words, since=since, lane=asks)

    def _release(self, rank, asks):
        self._still[rank].discard(asks)
        self._recorders[rank].running(asks)

    def _stand_still(self, op):
        """Reply if the call is over; else record that its rank is blocked in it."""
        if not op.left:
            self._finish(op)
            return
        out, into = op.out, op.into
        self._still[op.rank].add(op.asks)
        self._recorders[op.rank].now(
            "blocked",
            op.kind,
            send=(out.peer, out.number) if out else (-1, -1),
            recv=(into.peer, into.number) if into else (-1, -1),
            sizes=(out.bytes if out else 0, max(0, into.bytes) if into else 0),
            since=op.since,
            group=op.group,
            lane=op.asks,
        )

    def _finish(self, op):
        """Record a finished call, and release its rank."""
        self._note(op)
        self._release(op.rank, op.asks)
        source = {"from": op.into.peer} if op.into else {}
        self._answer(op.rank, op.asks, source, op.arrived)

    def _note(self, op):
        """Record the events of a call, and remove it."""
        recorder = self._recorders[op.rank]
        reached = self.clock.reached(op.rank, op.end)
        for kind, side in (("send", op.out), ("recv", op.into)):
            if side:
                end = side.end if self.clock.virtual else reached
                size, group = side.bytes, op.group
                recorder.event(kind, op.since, end, side.peer, size, group=group)
        del self._ops[op.rank][op.number]

    def _enter(self, op, words, split):
        """Enter a barrier; the last rank of the group to enter releases all.

        split: the (color, key, name) that it gives, if this is a split.
        """
        inside, group = self._meeting[op.group], op.group
        if any(other.rank == op.rank for other, *_ in inside):
            raise ValueError
        if split is not None:
            color, key, name = split
            check_color(color, key)
            check_group_name(name)
        recorder = self._recorders[op.rank]
        number = recorder.enter_call(words, group)
        if inside and words != inside[0][2]:
            self.disagreed.add(op.rank)
            self._answer(op.rank, op.asks, {"error": "Disagreement", "message": words})
            return
        where = {"call": number, "group": group}
        recorder.now("blocked", "barrier", **where, since=op.since, lane=op.asks)
        inside.append((op, split, words))
        self._still[op.rank].add(op.asks)
        if len(inside) < len(self._groups[group]):
            return
        end = max(op.since for op, *_ in inside)
        made = self._split(inside) if split is not None else {}
        label = "split" if made else ""
        for each, *_ in inside:
            reached = self.clock.reached(each.rank, end)
            recorder = self._recorders[each.rank]
            recorder.event("barrier", each.since, reached, label=label, group=group)
            self._release(each.rank, each.asks)
            self._answer(each.rank, each.asks, made.get(each.rank, {}))
        self._meeting[group] = []

    def _split(self, inside):
        """Make the groups of a split; return rank -> reply."""
        said = {op.rank: split for op, split, _ in inside}
        ranks = self._groups[inside[0][0].group]
        said = [said[rank] for rank in ranks]
        made = {rank: {"ranks": [], "group": ""} for rank in ranks}
        for color, _, name in said:
            members = in_new_group(color, [split[:2] for split in said], ranks)
            if color is None or made[members[0]]["group"]:
                continue
            among = frozenset(members)
            self._splits[among] += 1
            group = group_name(members, self._splits[among], name)
            self._groups[group] = members
            for rank in members:
                if not self._recorders[rank].knows(group):
                    raise ValueError
                made[rank] = {"ranks": members, "group": group}
        return made

    # ---- notes ----------------------------------------------------------------------

    def _point(self, rank, said, _):
        kind, label = said["kind"], _words(said["label"])
        if kind not in _TOLD_BY_RANKS:
            raise ValueError
        now = self.clock.moment(rank)
        self._recorders[rank].event(kind, now, now, label=label)

    def _flag(self, rank, said, _):
        if said["flag"] not in (THREADED, DESTROYED):
            raise ValueError
        self._recorders[rank].raise_flag(said["flag"])

    def _work(self, rank, said, _):
        self._works[rank][said["number"]] = self.clock.moment(rank)

    def _worked(self, rank, said, _):
        start, seconds = self._works[rank].pop(said["number"]), said["seconds"]
        if type(seconds) is not float or not 0 <= seconds < math.inf:
            raise ValueError
        self.clock.reached(rank, start + seconds)
        end = self.clock.moment(rank)
        self._recorders[rank].event("work", start, end, label=_words(said["label"]))

    def _ask(self, rank, said, _):
        if self._answers is None:
            raise ValueError
        step = self._recorders[rank].step
        try:
            answer = {"answer": self._answers(rank, said["question"], step)}
        except ValueError as error:
            answer = {"error": "ValueError", "message": str(error)}
        self._answer(rank, said["asks"], answer)

    def _answer(self, rank, asks, answer, data=b""):
        if type(asks) is not int:
            raise ValueError
        self._reply(rank, json.dumps(answer | {"to": asks}).encode() + b"\n" + data)


def _words(text):
    if not isinstance(text, str):
        raise ValueError
    return text[:_MOST_WORDS]
