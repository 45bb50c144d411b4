"""Gossip: a rumor spreads to all nodes by messages between pairs drawn at random.

    PushGossip       who has heard it tells one other node in every round
    PullGossip       who has not heard it asks one other node in every round
    PushPullGossip   every node does the one or the other

All nodes begin their rounds at the same time. A message and the response to it arrive
within the round if no delay is above half of it.

Source: Demers et al. 1987; Pittel 1987; Karp, Schindelhauer, Shenker and Voecking 2000.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from distlab.network import Effect, Node, Save, Send, SetTimer
from distlab.trace import Event, Trace

__all__ = [
    "GossipNode",
    "PullGossip",
    "PushGossip",
    "PushPullGossip",
    "in_rounds",
    "messages_per_round",
    "push_pull_rounds",
    "push_rounds",
    "spread",
]


class GossipNode(Node):
    """A node that may hear a rumor; node 0 has heard it at the start.

    heard: the round in which it heard, None if it has not. round: the number of rounds
    begun; one that starts again takes it from the first message that it gets.
    tells, asks: whether a node that has heard, and one that has not, contacts another
    in every round. round_s: the length of a round.
    """

    tells, asks = True, True
    round_s = 1.0

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.round, self.heard = 0, 0 if me == 0 else None

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load what was saved, and wait for a round."""
        self.heard = saved.get("heard", self.heard)
        yield SetTimer("round", self.round_s)

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Begin a round: contact one other node, drawn at random, or none."""
        self.round += 1
        yield SetTimer("round", self.round_s)
        contacts = self.asks if self.heard is None else self.tells
        if self.peers and contacts:
            yield Send(self.random.choice(self.peers), self._message())

    def on_message(self, sender: int, message: tuple[str, int]) -> Iterator[Effect]:
        """Hear the rumor; tell it to a node that asks, if heard in an earlier round."""
        words, round = message
        self.round = max(self.round, round)
        if words == "rumor" and self.heard is None:
            self.heard = self.round
            yield Save("heard", self.heard)
        elif words == "any news" and self.heard not in (None, self.round):
            yield Send(sender, self._message())

    def _message(self):
        return ("any news" if self.heard is None else "rumor", self.round)


class PushGossip(GossipNode):
    """Gossip by push.

    Cost: `push_rounds`, and a message a round from each node that has heard.
    """

    asks = False


class PullGossip(GossipNode):
    """Gossip by pull: slow while few have heard, and fast when most have."""

    tells = False


class PushPullGossip(GossipNode):
    """Gossip both ways: as anti-entropy does, it goes on when all have heard.

    Cost: `push_pull_rounds`, and n messages in every round, without the responses.
    """


def push_rounds(nodes: int) -> float:
    """Return the rounds until all have heard by push: log2 n + ln n (Pittel 1987)."""
    return math.log2(nodes) + math.log(nodes)


def push_pull_rounds(nodes: int) -> float:
    """Return the rounds until all have heard by push-pull, about log3 n + ln ln n.

    In Karp et al. 2000 the second term is some multiple of ln ln n.
    """
    return math.log(nodes, 3) + math.log(max(1.0, math.log(nodes)))


def spread(nodes: Iterable[GossipNode | None]) -> list[int]:
    """Count the nodes that have heard after round 0, 1, 2, to the last one that heard.

    It is one longer than the rounds needed, if its last number is that of all alive.
    """
    heard = Counter(node.heard for node in nodes if node and node.heard is not None)
    return list(accumulate(heard[round] for round in range(max(heard, default=-1) + 1)))


def in_rounds(trace: Trace, round_s: float = 1.0) -> Trace:
    """Return the messages of a run by push, without loss, as rounds of ranks.

    A player shows it round by round. A message is one byte, so that bytes count them.
    """
    events = []
    for event in trace.events:
        if event.kind == "recv":
            step, here, there = int(event.start / round_s), event.rank, event.peer
            during = step * round_s, (step + 1) * round_s
            events.append(Event(there, *during, "send", here, 1, step, event.label))
            events.append(Event(here, *during, "recv", there, 1, step, event.label))
    return Trace(trace.world_size, events)


def messages_per_round(trace: Trace, round_s: float = 1.0) -> list[int]:
    """Count the messages sent in round 0, 1, 2, and so on; in 0 there are none."""
    sent = Counter(int(e.start / round_s) for e in trace.events if e.kind == "send")
    return [sent[round] for round in range(max(sent, default=0) + 1)]
