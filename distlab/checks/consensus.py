"""Exercise 05: a Raft, its votes, its log, and its clients.

A rule is checked first as a row of text, in a state that the row gives:

    term=3, log='112'    may_vote(1, RequestVote(3, 3, 2))    True

Then whole runs are, planned and at random: by the four properties of figure 3 and by
linearizability. Section and figure numbers are those of Ongaro and Ousterhout (2014).
"""

import random
import re
from functools import partial

from distlab.agree.raft.monitors import RaftView, clients_linearizable, raft_monitors
from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, called, check, listed
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
        _follow(case, make)
        return
    with kit.on_nodes(make, 5, without=WITHOUT, shows=_SHOWS) as nodes:
        case(nodes)


# the rules, one by one


def _rows(text):
    """Return (state, rule, right) of each line."""
    lines = filter(None, map(str.strip, text.splitlines()))
    return [re.split(r"\s{2,}", line) for line in lines]


def _follow(text, make):
    """Compare what each rule says in its rows with what it should say."""
    rows = _rows(text)
    said = kit.call(_answers, make, [row[:2] for row in rows], without=WITHOUT)
    for (state, rule, right), yours in zip(rows, said, strict=True):
        if yours != right:
            found = f"A node of five with {state}:\n    {rule}\n    expected  {right}"
            name = re.search(r"on_\w+|(?!sent)\b\w+", rule).group()
            raise Wrong(f"{found}\n    yours     {yours}", rule=name)


def _answers(make, rows):
    """Return the answers of rules in their states, as text; runs in a process."""
    return [called(_answer, make, *row) for row in rows]


def _answer(make, state, rule):
    space = dict(make.may_vote.__globals__)
    node, other = (make(0, (1, 2, 3, 4)) for _ in range(2))
    node.random = random.Random(0)

    def log(terms):
        return [space["Entry"](int(term)) for term in terms]

    def restored(value):
        other.restore(value)
        return other.term, other.voted_for, "".join(str(e.term) for e in other.log)

    def sent(effects):
        sends = (tuple(e.message) for e in effects if hasattr(e, "message"))
        return next(sends, (None,) * 4)

    for name, value in eval(f"dict({state})", space).items():
        value = dict.fromkeys(node.peers, 0) | value if name == "match" else value
        setattr(node, name, log(value) if name == "log" else value)
    node.next = dict.fromkeys(node.peers, len(node.log) + 1) | node.next
    methods = {name: getattr(node, name) for name in dir(make) if name[0] != "_"}
    space |= methods | {"log": log, "restored": restored, "sent": sent}
    *events, asked = rule.split("; ")
    for event in events:
        list(eval(event, space) or ())
    said = eval(asked, space | vars(node) if events else space)
    if asked.startswith("on_"):
        return " ".join(sorted({type(effect).__name__ for effect in said or ()}))
    if asked.startswith(("may_", "fits")):
        return str(bool(said))
    many = type(said) in (list, tuple) and said and hasattr(said[0], "term")
    return "".join(str(entry.term) for entry in said) if many else str(said)


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
    why = nodes.why or violation(clients_linearizable, run)
    if why := why.rpartition("AssertionError: ")[2]:
        _fail(run, f"{n} nodes: {why}\n{listed(run, run.history)}", why=why)
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
    """Check that a node which was cut off catches up, and is sent nothing twice."""
    for n, out in ((3, 0), (3, 1), (3, 2), (5, _random.randrange(5))):
        rest = [node for node in range(n) if node != out]
        split = Split(1, [out], rest, until_s=3.5)
        clients = [_client(rest[0], plan, at_s, 0.03) for plan, at_s in _APART]
        clients.append(_client(out, "append !", 1.5))
        run, _ = _run(nodes, n, clients, faults=split, until_s=8.0)
        _answered(run, [one for one in run.history if one.client != 2])
        commits = [node.commit for node in run.nodes]
        if max(commits) - min(commits) > 1 or min(map(len, _logs(run))) < 26:
            found = f"1.5 s after node {out} was back, logs and commit indexes are"
            _fail(run, f"{found}\n{_logs(run)}\n{commits}", behind=True)
        _sent_once(nodes, run, out)


def _logs(run):
    return ["".join(str(entry[0]) for entry in node.log) for node in run.nodes]


def _sent_once(nodes, run, out):
    sent = [*zip(kit.messages_between(run), nodes.sizes, strict=True)]
    back = [size for e, size in sent if e.peer == out and 3.5 <= e.start < 4.9]
    long = [size for size in back if size > max(back) / 2]
    if len(long) > 3:
        found = f"Node {out} lacked 25 entries, and was sent messages of {long} bytes."
        _fail(run, f"{found}\nExpected: all that it lacks, once.", again="missing")


def _cheap(op, nodes):
    """Check that a call costs 2 (n - 1) messages, none longer than the first ones."""
    for n in (2, 3, 5):
        plan = "append a" + (", read" if op == "read" else ", append a") * 20
        run, elections = _run(nodes, n, [_client(0, plan, 1.0, 0.03)])
        _answered(run)
        sent = [*zip(kit.messages_between(run), nodes.sizes, strict=True)]
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
        head = f"Found at random, and shrunk: {why}\n{found.schedule!r}"
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
    "the rules": """
term=1, log=''  may_vote(1, RequestVote(1, 0, 0))  True
term=3, log='112'  may_vote(1, RequestVote(3, 3, 2))  True
term=3, log='112', voted_for=1  may_vote(1, RequestVote(3, 3, 2))  True
term=3, log='112', voted_for=2  may_vote(1, RequestVote(3, 3, 2))  False
term=3, log='112', voted_for=0  may_vote(1, RequestVote(3, 3, 2))  False
term=3, log='112'  may_vote(1, RequestVote(2, 3, 2))  False
term=3, log='112'  may_vote(1, RequestVote(3, 2, 2))  False
term=3, log='112'  may_vote(1, RequestVote(3, 9, 1))  False
term=3, log='111'  may_vote(1, RequestVote(3, 2, 2))  True
term=3, log='112'  may_vote(1, RequestVote(3, 4, 2))  True
term=3, log='112'  on_request(1, RequestVote(3, 3, 2)); voted_for  1
term=3, log='113'  on_request(1, RequestVote(3, 3, 2)); voted_for  None
term=3, log='112'  on_request(1, RequestVote(3, 3, 2))  Send SetTimer
term=3, log='113'  on_request(1, RequestVote(3, 3, 2))  Send
term=3, log='113'  sent(on_request(1, RequestVote(3, 3, 2)))  (3, False)
term=3, log='112'  sent(on_request(1, RequestVote(2, 3, 2)))  (3, False)
term=3, role=CANDIDATE, votes={0, 1}  on_vote(2, Vote(3, True)); role  leader
term=3, role=CANDIDATE, votes={0, 1}  on_vote(2, Vote(2, True)); role  candidate
term=3, role=CANDIDATE, votes={0, 1}  on_vote(2, Vote(3, False)); role  candidate
term=3, role=CANDIDATE, votes={0, 1}  on_vote(1, Vote(3, True)); role  candidate
term=3, role=FOLLOWER, votes={0, 1}  on_vote(2, Vote(3, True)); role  follower
term=3, role=LEADER, voted_for=0  see_term(5); role  follower
term=3, role=LEADER, voted_for=0  see_term(5); voted_for  None
term=3, role=LEADER, leader=0  see_term(5); leader  None
term=3, voted_for=2  stand(); term  4
term=3, voted_for=2  stand(); voted_for  0
""",
    "leaders cut off": _elected, "few messages": _cheap_elections,
    "random runs": partial(_fuzzed, 3, [], 300, until_s=1.5, **_PARTS),
    "random runs of 5": partial(_fuzzed, 5, [], 100, until_s=1.5, **_PARTS)}
_LOG = {
    "the rules": _VOTES["the rules"] + """
log=''  fits(0, 0)  True
log='111445566'  fits(10, 6)  False
log='1114'  fits(10, 6)  False
log='11144556666'  fits(10, 6)  True
log='111445566677'  fits(10, 6)  True
log='1114444'  fits(10, 6)  False
log='11122233333'  fits(10, 6)  False
log='1114444'  fits(5, 4)  True
log='11122233333'  fits(3, 1)  True
log='11144556666'  merged(10, log('8'))  11144556668
log='111445566677'  merged(10, log('8'))  11144556668
log='1114444'  merged(5, log('55666'))  1114455666
log='11122233333'  merged(3, log('4455666'))  1114455666
log='111'  merged(3, log('44'))  11144
log='1114455666'  merged(3, log('44'))  1114455666
log='11144556666'  merged(10, ())  11144556666
term=4, log='124', match={1: 2, 2: 2, 3: 1, 4: 1}  may_commit(2)  False
term=4, log='124', match={1: 3, 2: 2, 3: 1, 4: 1}  may_commit(3)  False
term=4, log='124', match={1: 3, 2: 3, 3: 1, 4: 1}  may_commit(3)  True
term=3, log='113'  on_append(1, AppendEntries(3, 1, 1, (), 3, 1)); commit  1
term=3, log='113'  on_append(1, AppendEntries(2, 1, 1, (), 1, 1)); commit  0
term=3, log='113'  on_append(1, AppendEntries(2, 1, 1, (), 1, 1))  Send
term=3, log='113'  on_append(1, AppendEntries(3, 9, 3, (), 0, 1))  Send SetTimer
term=3, log='113'  sent(on_append(1, AppendEntries(2, 1, 1, (), 1, 7)))  (3, False, 0, 7)
term=3, log='112'  sent(on_append(1, AppendEntries(3, 2, 1, (), 0, 7)))  (3, True, 2, 7)
term=3, log='1'  sent(on_append(1, AppendEntries(3, 1, 3, (), 0, 7)))[2] < 1  True
log='55', role=LEADER, match={1: 0}  on_reply(1, AppendReply(0, True, 2, 1)); next[1]  3
log='00', role=LEADER, match={1: 2, 2: 2, 3: 0}  on_reply(3, AppendReply(0, True, 2, 1)); commit  2
log='00', role=LEADER, match={1: 0, 2: 0, 3: 0}  on_reply(3, AppendReply(0, True, 2, 1)); commit  0
log='55', role=LEADER, match={1: 0}, next={1: 3}  sent(on_reply(1, AppendReply(0, False, 1, 1)))[1]  1
term=5, role=LEADER, match={1: 0}  on_reply(1, AppendReply(3, True, 4, 1)); match[1]  0
term=3, role=CANDIDATE  on_append(1, AppendEntries(3, 9, 3, (), 0, 1)); role  follower
""",  # noqa: E501, one row is one line
    "partitions heal": _heals, "few messages": partial(_cheap, "append"),
    "random runs": partial(_fuzzed, 3, _WRITERS, 200, until_s=3.0, **_PARTS),
    "random runs of 5": partial(_fuzzed, 5, _WRITERS, 60, until_s=3.0, **_PARTS)}
_CLIENTS = {
    "the rules": _LOG["the rules"] + """
term=5, voted_for=3, log='1125'  restored(durable())  (5, 3, '1125')
commit=4, first=6  read_index()  6
commit=9, first=6  read_index()  9
applied=6, acked={1: 7, 2: 7}  may_read(Read(1, None, 6, 7))  True
applied=6, acked={1: 7, 2: 6}  may_read(Read(1, None, 6, 7))  False
applied=5, acked={1: 7, 2: 7}  may_read(Read(1, None, 6, 7))  False
""",
    "restarts": _restarts, "retries": _retries, "leaders cut off": _deposed,
    "few messages": partial(_cheap, "read"),
    "random elections": partial(_fuzzed, 3, [], 400, **_POWER),
    "random runs": partial(_fuzzed, 3, _CALLERS, 300, **_CRASH),
    "random runs of 5": partial(_fuzzed, 5, _CALLERS, 50, **_CRASH)}

_BY_HAND = (
    "In a cell of its own, make a node of five, give it the attributes of the verdict, "
    "and call the rule. Which condition in the rule's row of the table is decided by "
    "this state, and which line of yours stands for it?")
_RULES = {
    "may_vote": "One vote in a term, for a log that has at least all of this one's. "
    "Which of two logs is newer: the longer one, or the one with the later last term?",
    "on_request": "A vote is remembered, or the term's next candidate gets it, too. It "
    "restarts the timer; a request that is refused does not.",
    "on_vote": "Count each voter once, while a candidate, and only votes of this term: "
    "a response to the last election may come now.",
    "see_term": "A higher term ends what this node was in the old one: its role, its "
    "vote, and who leads.",
    "stand": "A candidate begins the next term, and its own vote in it is its own.",
    "fits": "The log matching property is an induction: new entries fit if the entry "
    "just before them is here. What stands before the first entry of all?",
    "merged": "Only a conflict removes entries. A message that is late has a part of "
    "what is here, and the rest of it may be committed.",
    "may_commit": "Figure 8: a majority holds an entry of an old term, and a later "
    "leader still replaces it. Which entries can no later leader lack?",
    "on_append": "Is the message of this term's leader, or of an old one, who is told "
    "so? It vouches for what it has itself, and for what is before that; a "
    "refusal names an index before the one that did not fit.",
    "on_reply": "Messages are late and come twice. Of which term is this response, and "
    "up to which index does the follower hold all that this leader has?",
    "restored": "What must a node know after a restart, so that it does not vote twice "
    "in a term, and lacks nothing that a leader has counted it for?",
    "read_index": "A new leader has all committed entries, and does not yet know which "
    "they are: it does with the first entry of its own term.",
    "may_read": "While a read waits, a majority must say that this node leads still, "
    "in response to what was sent after the read came. And its index must be applied.",
}
HINTS = [
    *(Hint(lambda f, name=name: f["rule"] == name, [words, _BY_HAND])
      for name, words in _RULES.items()),
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
