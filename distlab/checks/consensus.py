"""Exercise 05: a Raft, its votes, its log, and its clients.

The rules are asked one by one, see consensus_rules. Then whole runs are checked,
planned and at random: by the four properties of figure 3 and by linearizability.
Section and figure numbers are those of Ongaro and Ousterhout (2014).
"""

import random
from functools import partial

from distlab.agree.raft.monitors import RaftView, clients_linearizable, raft_monitors
from distlab.checks import kit
from distlab.checks.consensus_rules import (
    CLIENT_ROWS,
    LOG_ROWS,
    RULE_HINTS,
    VOTE_ROWS,
    follow_rows,
)
from distlab.checks.kit import Hint, Wrong, check, listed
from distlab.faults import Crash, Split
from distlab.network import Client, Delivery, Monitor
from distlab.network.schedules.monitors import violation
from distlab.trace import Call

WITHOUT = kit.modules_of("distlab.agree") + kit.modules_of("distlab.agree.raft")
_SHOWS = ("term", "role", "log", "commit", "applied")
_random = random.SystemRandom()


@check("votes: {}")
def elects(make, case):
    """Check that a term has one leader at most, and that one is elected in time."""
    _judge(_VOTES[case], make)


@check("the log: {}")
def replicates(make, case):
    """Check that nodes apply the same entries in the same order, and in time."""
    _judge(_LOG[case], make)


@check("clients: {}")
def serves(make, case):
    """Check that clients see one copy, whatever crashes, and that reads are cheap."""
    _judge(_CLIENTS[case], make)


def _judge(case, make):
    if type(case) is str:
        follow_rows(case, make, WITHOUT)
        return
    with kit.on_nodes(make, 5, without=WITHOUT, shows=_SHOWS) as nodes:
        case(nodes)


# whole runs


def _view(node):
    """Return the view of a node, which the monitors read."""
    numbers, log = (node.term, node.commit, node.applied), node.log
    fit = all(type(number) is int for number in numbers) and type(log) is tuple
    fit = fit and all(type(e) is tuple and e and type(e[0]) is int for e in log)
    assert fit, "term, commit or applied is no whole number, or log no list of entries"
    return RaftView(node.term, node.role == "leader", log, 0, node.commit, node.applied)


_monitors = partial(raft_monitors, _view)


class _Elections(Monitor):
    """Leaders, term -> (node, seconds), and candidates, (term, node)."""

    def __init__(self):
        self.leaders, self.candidates = {}, set()

    def observe(self, nodes, node):
        """Keep a leader or candidate of a new term."""
        one = nodes[node]
        if one.role == "leader":
            self.leaders.setdefault(one.term, (node, one.clock_s))
        if one.role == "candidate":
            self.candidates.add((one.term, node))


def _fail(run, found, **facts):
    raise Wrong(found, picture=kit.Played(run.trace, "The run that failed"), **facts)


def _run(nodes, n, clients, **how):
    """Return a run and its elections, if it keeps the properties; else raise."""
    elections, seed = _Elections(), _random.getrandbits(32)
    watch = [*_monitors(), elections]
    run = nodes.simulate(n, clients, monitors=watch, seed=seed, **how)
    decisive = []

    def objection(run):
        verdict = clients_linearizable(run)
        decisive.extend(verdict.smallest or ())
        return verdict

    why = nodes.why or violation(objection, run)
    if why := why.rpartition("AssertionError: ")[2]:
        _fail(run, f"{n} nodes: {why}\n{listed(run, decisive or run.history)}", why=why)
    return run, elections


def _cuts(n, first_s=1.0):
    """Return partitions that cut off each node in turn, 1.2 s in every 2.2 s."""
    for node in range(n):
        at_s, rest = first_s + 2.2 * node, [k for k in range(n) if k != node]
        yield Split(at_s, [node], rest, until_s=at_s + 1.2)


def _elected(nodes):
    """Check that there is a new leader wherever a majority can elect one."""
    for n in (3, 4, 5):
        cuts = [*_cuts(n)]
        until_s = cuts[-1].until_s + 1
        run, elections = _run(nodes, n, [], faults=cuts, until_s=until_s)
        leaders = elections.leaders
        for at_s, out in [(1.0, None), *((c.until_s, c.sides[0][0]) for c in cuts)]:
            known = [term for term, (_, when) in leaders.items() if when < at_s]
            if not known or leaders[max(known)][0] == out:
                found = f"{n} nodes; node {out} was cut off for 1.2 s, and at {at_s:g} "
                found = found if known else f"{n} nodes, and at {at_s:g} "
                _fail(run, f"{found}s the others have no leader.", leaderless=n)
        terms = [(node.term, node.role) for node in run.nodes]
        if len({term for term, _ in terms}) > 1 or str(terms).count("'leader'") != 1:
            found = f"A second after the last partition: (term, role) {terms}."
            _fail(run, f"{found}\nExpected: one term, and one leader.", apart=True)


def _cheap_elections(nodes):
    for n in (2, 3, 5):
        run, elections = _run(nodes, n, [], until_s=1.0)
        _, first_s = min(elections.leaders.values(), key=lambda one: one[1])
        sent = sum(each.start < first_s for each in kit.messages_between(run))
        most = 2 * (n - 1) * len(elections.candidates)
        if sent > most:
            found = f"{n} nodes sent {sent} messages until one of them was elected; "
            found += f"candidates, as (term, node): {sorted(elections.candidates)}."
            _fail(run, f"{found}\nExpected: at most {most}.", messages="election")


def _answered(run, operations=None):
    for one in operations or run.history:
        if one.outcome != "ok":
            _fail(run, f"Not answered:\n{listed(run, [one])}", late=True)
        if one.op == "append" and one.result is not None:
            found = f"{listed(run, [one])}, answered with {one.result!r}, not None"
            _fail(run, found, valued=True)


def _client(node, plan, start_s, pause_s=0.0, timeout_s=3.0, retries=3):
    """Return a client of a plan such as "append a, read"."""
    calls = [Call(op, "x", *value) for op, *value in map(str.split, plan.split(", "))]
    return Client(node, calls, start_s, pause_s, timeout_s, retries)


_APART = (", ".join(["append a"] * 25), 2.2), ("append z", 5.0)


def _heals(nodes):
    """Check that a node which was cut off catches up, and is sent nothing twice.

    A leader that was there before the partition knows what the node lacks; a new one
    has to ask. Four runs at least, until there were new ones in three.
    """
    asked, cases = 0, ((3, 0), (3, 1), (3, 2), (5, _random.randrange(5)))
    for count in range(1, 17):
        n, out = cases[count % 4]
        rest = [node for node in range(n) if node != out]
        split = Split(1, [out], rest, until_s=3.5)
        clients = [_client(rest[0], plan, at_s, 0.03) for plan, at_s in _APART]
        clients.append(_client(out, "append !", 1.5))
        run, elections = _run(nodes, n, clients, faults=split, until_s=8.0)
        _answered(run, [one for one in run.history if one.client != 2])
        commits = [node.commit for node in run.nodes]
        if max(commits) - min(commits) > 1 or min(map(len, _logs(run))) < 26:
            found = f"1.5 s after node {out} was back, logs and commit indexes are"
            _fail(run, f"{found}\n{_logs(run)}\n{commits}", behind=True)
        _sent_once(nodes, run, out)
        asked += any(3.5 <= at_s < 4.5 for _, at_s in elections.leaders.values())
        if count >= 4 and asked >= 3:
            return


def _logs(run):
    return ["".join(str(entry[0]) for entry in node.log) for node in run.nodes]


def _sent_once(nodes, run, out):
    sent = nodes.sent(run)
    back = [size for e, size in sent if e.peer == out and 3.5 <= e.start < 4.9]
    long = [size for size in back if size > max(back) / 2]
    if len(long) > 3:
        found = f"Node {out} lacked 25 entries, and was sent {len(long)} messages with "
        found += f"entries, {sum(long) / 1000:.0f} kB together."
        expected = "Expected: one refusal, and then all that it lacks, once."
        _fail(run, f"{found}\n{expected}", again="missing")


def _cheap(op, nodes):
    """Check that a call costs 2 (n - 1) messages, none longer than the first ones."""
    for n in (2, 3, 5):
        plan = "append a" + (", read" if op == "read" else ", append a") * 20
        run, elections = _run(nodes, n, [_client(0, plan, 1.0, 0.03)])
        _answered(run)
        sent = nodes.sent(run)
        starts = [one.start for one in run.history][2:]
        costs = [[b for e, b in sent if at <= e.start < at + 0.03] for at in starts]
        most, count = 2 * (n - 1), max(map(len, costs))
        if count > most:
            found = f"{n} nodes sent {count} messages for one {op}; expected: {most}."
            _fail(run, found, messages=op)
        if max(costs[-1]) > max(costs[0]) + 40:
            found = f"The second {op} took messages of {costs[0]} bytes, the last of "
            _fail(run, f"{found}{costs[-1]}.", again="all")
        entries = max(len(node.log) for node in run.nodes)
        if op == "read" and entries > len(elections.leaders) + 1:
            found = f"1 append and 20 reads made {entries} entries of the log."
            _fail(run, found, entries=entries)


def _restarts(nodes):
    """Check that what was answered is there after all nodes have lost power."""
    for loses in ("", "unsynced"):
        faults = [Crash(n, 2 + n / 50, 2.3 + n / 50, loses) for n in range(3)]
        plan = "append a, append b, read"
        clients = [_client(0, plan, 1.0), _client(1, plan, 3.5), _client(2, plan, 4.5)]
        run, _ = _run(nodes, 3, clients, faults=faults)
        _answered(run)


def _retries(nodes):
    """Check that a call which a client repeats is executed once."""
    for n in (3, 5):
        plan = "append a, append b, read"
        clients = [_client(k, plan, 1, 0, 0.004, 60) for k in (0, 1)]
        run, _ = _run(nodes, n, clients)
        _answered(run)


def _deposed(nodes):
    """Check that a leader which was cut off answers no read with an old value."""
    for n in (3, 5):
        cuts, clients = [*_cuts(n)], []
        for k, cut in enumerate(cuts):
            clients.append(_client((k + 1) % n, f"append {k}", cut.at_s + 0.9))
            clients += [
                _client(node, "read", cut.at_s + 1.1 + more, timeout_s=0.3, retries=0)
                for node in range(n)
                for more in (0, 0.08)
            ]
        _run(nodes, n, clients, faults=cuts)


def _fuzzed(n, clients, runs, nodes, **how):
    """Look for a random run that breaks a property, and play it in few steps."""
    rough = {"loss": 0.3, "duplicates": 0.3, "delivery": Delivery((0.001, 0.2))} | how
    found = nodes.fuzz(n, clients, clients_linearizable, _monitors, runs=runs, **rough)
    if found:
        why = found.why.rpartition("AssertionError: ")[2]
        head = f"Found at random, and shrunk: {why}\n{kit.last_steps(found)}"
        _fail(found.outcome, head, why=why)


# fmt: off
def _writers(plan, retries):
    return [_client(n, plan.format(c), 0, 0, 9, retries) for n, c in enumerate("abc")]


_PARTS = {"splits": 3, "cuts": 3, "pauses": 1, "timeout_s": None}
_POWER = {"crashes": 5, "power_losses": 5, "timeout_s": None, "until_s": 1.5}
_CRASH = {"crashes": 3, "power_losses": 3, "splits": 2, "cuts": 2, "until_s": 4.0,
          "timeout_s": (0.2, 0.5), "delivery": Delivery((0.001, 0.03))}
_WRITERS = _writers("append {0}, append {0}", 3)
_CALLERS = _writers("append {0}, read, append {0}, read", 9)
_VOTES = {
    "the rules": VOTE_ROWS,
    "leaders cut off": _elected, "few messages": _cheap_elections,
    "random runs": partial(_fuzzed, 3, [], 300, until_s=1.5, **_PARTS),
    "random runs of 5": partial(_fuzzed, 5, [], 100, until_s=1.5, **_PARTS)}
_LOG = {
    "the rules": VOTE_ROWS + LOG_ROWS,
    "partitions heal": _heals, "few messages": partial(_cheap, "append"),
    "random runs": partial(_fuzzed, 3, _WRITERS, 200, until_s=3.0, **_PARTS),
    "random runs of 5": partial(_fuzzed, 5, _WRITERS, 60, until_s=3.0, **_PARTS)}
_CLIENTS = {
    "the rules": VOTE_ROWS + LOG_ROWS + CLIENT_ROWS,
    "restarts": _restarts, "retries": _retries, "leaders cut off": _deposed,
    "few messages": partial(_cheap, "read"),
    "random elections": partial(_fuzzed, 3, [], 400, **_POWER),
    "random runs": partial(_fuzzed, 3, _CALLERS, 300, **_CRASH),
    "random runs of 5": partial(_fuzzed, 5, _CALLERS, 50, **_CRASH)}

HINTS = [
    *RULE_HINTS,
    Hint(lambda f: "election safety" in f["why"], [
        "Two nodes have led the same term, so one node has voted for both, or a vote "
        "was counted that was none for this term.",
        "Find the two elections in the player. Which node's vote is in both? What did "
        "it know of its first vote when it gave the second: was it on disk?"]),
    Hint(lambda f: "log matching" in f["why"] or "state machine" in f["why"], [
        "Two logs differ where they must not. One node took entries that do not fit "
        "behind its own, or removed some that it had promised to hold.",
        "Find the last message to the node named, in the player. What was at its index "
        "`previous`? Up to which index does the message vouch for this log?"]),
    Hint(lambda f: "leader completeness" in f["why"], [
        "An entry was committed that a later leader lacks: counted where it was not "
        "held, or held by voters who elected a log without it.",
        "Who held the entry when the leader counted it? Compare with what their "
        "responses said: `last` is of what was sent, and not of what is here now."]),
    Hint(lambda f: f["why"] and "read of" in f["why"], [
        "A client has seen what one copy could not show: an old value, or a call that "
        "was executed twice.",
        "If a letter is there twice, follow the request that a client repeated to "
        "apply. If one is missing, ask who led when the read was answered."]),
    Hint(lambda f: f["leaderless"] or f["apart"], [
        "Nodes that are a majority elect a leader in a few time-outs, also after "
        "others have failed to.",
        "Write down term, role and vote of each node before and after one election "
        "that fails. Which of the three keeps the next one from succeeding?"]),
    Hint(lambda f: f["messages"], [
        "A request to each other node, and a response from each, are all it takes: "
        "2 (n - 1).",
        "Count by kind in the player. Is something sent again that was not lost, or "
        "sent to all in response to one?"]),
    Hint(lambda f: f["again"], [
        "A follower is sent again what it holds, or what it lacks is found too slowly.",
        "Which index does your response to entries that do not fit name? A follower "
        "with 5 entries, asked for the one before 30, knows where to go on."]),
    Hint(lambda f: f["valued"], [
        "A call is answered with the result that `execute` returned for it.",
        "What do you keep of a call in self.sessions, and which part of it do you "
        "return?"]),
    Hint(lambda f: f["entries"], [
        "A read changes nothing, so it needs no entry: it needs to know that no other "
        "node leads.", "Which of your methods appends to the log?"]),
    Hint(lambda f: f["late"] or f["behind"], [
        "Nothing is wrong, and nothing goes on: a majority is there, and an entry is "
        "not committed, applied or answered.",
        "Follow one entry in the player: sent, response, `match` of the leader, commit "
        "index of the leader, commit index of the followers. Where does it stop?"]),
    *kit.NODE_HINTS]
