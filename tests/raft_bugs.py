"""Rafts that each lack one rule, and how each is found: `hunt(name, seed)`."""

from functools import cache, partial
from itertools import permutations
from random import Random

from distlab import Call
from distlab.agree.raft import RaftStore
from distlab.agree.raft.monitors import clients_linearizable, raft_monitors
from distlab.agree.raft.scenarios import search_scenarios
from distlab.faults import Crash, Cut
from distlab.network import Client, Delivery, Monitor, Save, fuzz, search, simulate
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


class AddsEmpty(RaftStore):
    """Gives a new member a vote before it has the log."""

    def has_caught_up(self):
        return True


class ExecutesExpired(RaftStore):
    """Executes what a client repeats after its session has expired."""

    def is_expired(self, client, number):
        return False


class AppliesTwice(RaftStore):
    """Executes a call each time that it is in the log."""

    def is_repeated(self, client, number):
        return False


class WallClockLease(RaftStore):
    """Trusts its clock for its lease."""

    def lease_holds(self):
        return self.clock_s < self.sent_s.get(self.confirmed(), -1e9) + self.lease_s


class NewMemberHasLog(Monitor):
    """Node 3 has no vote before it has entries, once it was added."""

    def observe(self, nodes, node):
        one, new = nodes[node], nodes[-1]
        votes = one and new and new.me == 3 and one.members_at and 3 in one.members
        assert not votes or new.log.last, "new member: node 3 votes with an empty log"


def all_monitors():
    return [*raft_monitors(), NewMemberHasLog()]


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


def change(client, op, node):
    return Client(client, [Call(f"{op}_member", None, node)], retries=4)


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
JUMPS = {"clock_jumps": 60, "knobs": {"timeout_s": (0.01, 0.08)}, "lease": True}
JUMPS |= {"clients": [reads(0, 8), reads(1, 8), writes(2, 4)]}
CHANGES = {"clients": [change(0, "remove", 1), change(1, "remove", 2), writes(2, 3)]}
GROWS = {"nodes": 4, "knobs": {"members": (0, 1, 2)}}
GROWS |= {"clients": [writes(0, 3), change(1, "add", 3)]}

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
    AddsEmpty: ALL | GROWS,
    ExecutesExpired: JUDGED
    | {"clients": [appends(0, 3), appends(1, 3), reads(2, 3)]}
    | {"knobs": {"most_sessions": 1}},
    WallClockLease: STALE | JUMPS,
}


def fuzzed(kind, seed, runs, **how):
    """Fuzz a store, with all monitors."""
    how = {"nodes": 3, "knobs": {}, "lease": False, "within_s": 600} | how
    knobs = FAST | {"lease": how.pop("lease")} | how.pop("knobs")
    make, watch = partial(kind, **knobs), all_monitors()
    return fuzz(make, monitors=watch, seed=seed, runs=runs, **how)


_HEARD = ("AppendEntries", "InstallSnapshot", "timer election", "crash", "restart")


def late_election(trace, nodes, longest_s):
    """Return which follower stands for election too late, in words; "" if none does.

    It waits from its last election time-out, its last vote for another node, or the
    last entries that it has sent or got, whichever comes last.
    """
    since = dict.fromkeys(range(nodes), 0.0)
    for event in trace.events:
        node, at_s, label = event.rank, event.start, event.label
        if node >= nodes or label.startswith("cut off"):
            continue
        if at_s > since[node] + longest_s + 1e-9 and label != "restart":
            return f"node {node} should stand by {since[node] + longest_s:.3f} s"
        voted = event.kind == "send" and "granted=True pre=False" in label
        if voted or label.startswith(_HEARD):
            since[node] = at_s
    return ""


def random_faults(chance, nodes):
    """Yield crashes and cuts at random times."""
    for node in chance.sample(range(nodes), 3):
        at_s = chance.uniform(0.0, 0.3)
        yield Crash(node, at_s, at_s + chance.uniform(0, 0.1))
    for src, dst in chance.sample([*permutations(range(nodes), 2)], 4):
        at_s = chance.uniform(0.0, 0.3)
        yield Cut(at_s, src, dst, at_s + chance.uniform(0, 0.2))


def hunt_late_election(kind, seed, runs=1000, nodes=5):
    """Return (faults, why) of a timed run with a late election, without spare faults.

    A schedule has an order and no times, so no `fuzz` or `search` can find one.
    """

    def late(faults):
        how = {"faults": faults, "seed": seed, "until_s": 0.4}
        trace = simulate(partial(kind, **FAST), nodes, [writes(0, 9)], **how).trace
        return late_election(trace, nodes, FAST["timeout_s"][1])

    chance = Random(seed)
    for _ in range(runs):
        faults = [*random_faults(chance, nodes)]
        if late(faults):
            for fault in list(faults):
                fewer = [other for other in faults if other is not fault]
                faults = fewer if late(fewer) else faults
            return faults, late(faults)
    return None


@cache
def hunt(kind, seed, runs=1000):
    """Return the counterexample that fuzz or search finds."""
    if kind in FUZZED:
        return fuzzed(kind, seed, runs, **FUZZED[kind])
    if kind is CommitsOldTerms:
        return search_scenarios(kind, "figure 8")
    make = partial(kind, **FAST, pre_vote=False)
    how = {"monitors": all_monitors(), "seed": seed, "within_s": 600, "steps": 12}
    assert kind is VoteNotSaved
    two = [f"the timer 'election' of node {node} runs out" for node in (0, 2)]
    return search(make, 3, start=two, timers=0, crashes=1, **how)
