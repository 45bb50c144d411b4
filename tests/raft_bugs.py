"""Rafts that each lack one rule, and how each is found: `hunt(name, seed)`."""

from functools import cache, partial

from distlab import Call
from distlab.agree.raft import RaftStore
from distlab.agree.raft.monitors import clients_linearizable, raft_monitors
from distlab.agree.raft.scenarios import search_scenarios
from distlab.network import Client, Delivery, Save, fuzz, search
from distlab.network.delays import Mixture, UniformDelay

FAST = {"timeout_s": (0.02, 0.04), "heartbeat_s": 0.007}


class VoteNotSaved(RaftStore):
    """Saves the term without the vote."""

    def persist(self, *writes):
        kept = [Save("vote", (w[1][0], None)) if w[0] == "vote" else w for w in writes]
        return super().persist(*kept)


class TermNotSaved(RaftStore):
    """Saves neither term nor vote."""

    def persist(self, *writes):
        return super().persist(*[write for write in writes if write[0] != "vote"])


class VoteForOlderLog(RaftStore):
    """Votes for a candidate that lacks entries."""

    def is_up_to_date(self, request):
        return True


class NoPreviousTest(RaftStore):
    """Takes entries whatever comes before them here."""

    def fits(self, previous, previous_term):
        return previous <= self.log.last


class AlwaysTruncates(RaftStore):
    """Cuts its log behind each message, also where it agrees."""

    def merged(self, previous, entries):
        return max(previous, self.log.base), entries


class CommitsOldTerms(RaftStore):
    """Commits what a majority has, of whatever term."""

    def may_commit(self, index):
        return True


class StaleReply(RaftStore):
    """Counts replies to requests of an earlier term."""

    def is_current(self, reply):
        return reply.term <= self.term


class MatchIsNext(RaftStore):
    """Takes a reply for one to the last message."""

    def matched(self, peer, reply):
        return self.next[peer] - 1


class LocalRead(RaftStore):
    """Reads without asking if it still leads."""

    def may_read(self, round):
        return True


class AnswersByIndex(RaftStore):
    """Answers with whatever entry comes at the index."""

    def answers(self, entry, term):
        return True


class AnyMessageResets(RaftStore):
    """Resets its election timer for any message."""

    def resets_timer(self, message):
        return True


class NeverStepsDown(RaftStore):
    """Stays leader when it sees a higher term."""

    def step_down(self, term):
        role = self.role
        yield from super().step_down(term)
        self.role = role


class TwoChanges(RaftStore):
    """Changes the members while another change is under way."""

    def may_change(self):
        return True


class AppliesTwice(RaftStore):
    """Executes a call each time that it is in the log."""

    def is_repeated(self, client, number):
        return False


class WallClockLease(RaftStore):
    """Trusts its clock for its lease."""

    def lease_holds(self):
        return self.clock_s < self.sent_s.get(self.confirmed(), -1e9) + self.lease_s


def workload(calls=4):
    """Return clients whose appends, writes and cas can be told apart."""

    def call(client, number):
        value = f"{client}.{number},"
        swap = (f"{client}.{number - 1},", value)
        kinds = [("append", value), ("read", None), ("write", value), ("cas", swap)]
        op, value = kinds[(number + client) % 4]
        return Call(op, "x", value)

    return [
        Client(client, [call(client, n) for n in range(calls)], retries=4)
        for client in range(3)
    ]


def writes(node, count):
    return Client(node, [Call("write", "x", n) for n in range(count)], retries=8)


def reads(node, count):
    return Client(node, [Call("read", "x")] * count, retries=8)


def appends(node, count):
    return Client(node, [Call("append", "x", f"{n}.") for n in range(count)], retries=8)


def remove(node, client):
    return Client(client, [Call("remove_member", None, node)], retries=4)


LATE = Delivery(
    Mixture((0.9, UniformDelay(0.001, 0.003)), (0.1, UniformDelay(0.01, 0.04)))
)
ALL = {"crashes": 3, "power_losses": 3, "splits": 3, "cuts": 2, "pauses": 2}
ALL |= {"loss": 0.1, "duplicates": 0.1, "delivery": LATE, "until_s": 0.5}
ALL |= {"timeout_s": (0.03, 0.3), "clients": workload()}
JUDGED = ALL | {"check": clients_linearizable}
SLOW = {"delivery": Delivery((0.001, 0.03)), "crashes": 3}
STALE = {"splits": 4, "until_s": 1.0, "timeout_s": (0.01, 0.02)}
STALE |= {"clients": [reads(0, 12), reads(1, 12), writes(2, 6)]}
STALE |= {"check": clients_linearizable, "knobs": {"timeout_s": (0.02, 0.08)}}
CHANGES = {"clients": [remove(1, 0), remove(2, 1), writes(2, 3)]}

FUZZED = {
    TermNotSaved: ALL,
    VoteForOlderLog: ALL,
    NoPreviousTest: ALL,
    AlwaysTruncates: ALL,
    StaleReply: SLOW,
    MatchIsNext: ALL | {"duplicates": 0.0},
    LocalRead: STALE,
    AnswersByIndex: JUDGED,
    NeverStepsDown: ALL,
    TwoChanges: CHANGES | {"splits": 4, "crashes": 1},
    AppliesTwice: JUDGED | {"clients": [appends(0, 4), reads(1, 4)]},
    WallClockLease: STALE | {"clock_jumps": 30, "lease": True},
}


def fuzzed(kind, seed, runs, **how):
    """Fuzz a store, with the four monitors."""
    how = {"clients": (), "knobs": {}, "lease": False, "within_s": 600} | how
    knobs = FAST | {"lease": how.pop("lease")} | how.pop("knobs")
    make, monitors = partial(kind, **knobs), raft_monitors()
    return fuzz(make, 3, monitors=monitors, seed=seed, runs=runs, **how)


@cache
def hunt(kind, seed, runs=1000):
    """Return the counterexample that fuzz or search finds."""
    if kind in FUZZED:
        return fuzzed(kind, seed, runs, **FUZZED[kind])
    if kind is CommitsOldTerms:
        return search_scenarios(kind, "figure 8")
    make = partial(kind, **FAST, pre_vote=False)
    how = {"monitors": raft_monitors(), "seed": seed, "within_s": 600, "steps": 30}
    assert kind is VoteNotSaved
    two = [f"the timer 'election' of node {node} runs out" for node in (0, 2)]
    return search(make, 3, start=two, timers=0, crashes=1, **how)
