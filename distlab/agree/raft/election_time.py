"""Election times of Raft for a range of time-outs: the experiment of the paper.

    last heartbeat ─▶ four followers        the leader crashes within a heartbeat's time
           │◀── crash ── time-out ── votes ──▶│ leader of the next term
                    └────── downtime ─────────┘

Source: Ongaro and Ousterhout (2014), section 9.3 and figure 16: five servers, a
broadcast time of 15 ms, and logs of different lengths, so that not every follower can
be elected.
"""

import math
import random
from collections.abc import Iterator
from typing import Any

from distlab.agree.raft.key_value import RaftStore
from distlab.agree.raft.messages import AppendEntries, RaftEntry
from distlab.errors import InvalidArgument
from distlab.network import Delivery, Effect, Node, Send, simulate

__all__ = ["downtimes_s"]

_BROADCAST_S = 0.0055, 0.0085  # one way: there and back, and a sync of 1 ms, is 15 ms


class LastHeartbeat(Node):
    """A leader of term 1 that sends one heartbeat, and nothing more."""

    def on_start(self, saved: dict) -> Iterator[Effect]:
        """Send the heartbeat."""
        for peer in self.peers:
            yield Send(peer, AppendEntries(1, 0, 0, (), 0, 1))


class UnequalFollower(RaftStore):
    """A follower in term 1 whose log has as many entries as its number."""

    def on_start(self, saved: dict) -> Iterator[Effect]:
        """Begin with the log."""
        log = [RaftEntry(1, index, 0, None) for index in range(1, self.me + 1)]
        yield from super().on_start({"vote": (1, 0), "log": log})


def downtimes_s(
    timeout_s: tuple[float, float],
    *,
    delay_s: Any = _BROADCAST_S,
    trials: int = 40,
    limit_s: float = 10.0,
    **how: Any,
) -> list[float]:
    """Return the seconds from a leader's crash to the next leader, for each trial.

    timeout_s: the shortest and the longest election time-out; a heartbeat comes after
        half the shortest. delay_s: of a message, as of a `Delivery`. limit_s: longer
        times are returned as infinite. how: further arguments of `RaftStore`;
        `pre_vote` is off, as in the paper.

    Raises: InvalidArgument.
    """
    if trials < 1:
        raise InvalidArgument(f"trials={trials!r}: give a number from 1.")
    how = {"pre_vote": False, "heartbeat_s": timeout_s[0] / 2, **how}

    def make(me, peers):
        new = UnequalFollower if me else LastHeartbeat
        return new(me, peers, **({"timeout_s": timeout_s, **how} if me else {}))

    times = min(4 * timeout_s[1], limit_s), limit_s
    delivery = Delivery(delay_s)
    return [
        _elected_s(make, delivery, seed, times)
        - random.Random(seed).uniform(0, timeout_s[0] / 2)
        for seed in range(trials)
    ]


def _elected_s(make, delivery, seed, times):
    """Return the time at which a leader begins; short runs are tried first."""
    for until_s in times:
        run = simulate(make, 5, delivery=delivery, seed=seed, until_s=until_s)
        for event in run.trace.events:
            if event.label.startswith("leader of"):
                return event.start
    return math.inf
