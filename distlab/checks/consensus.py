"""Exercise 05: a Raft, its votes, its log, and its clients.

A rule is checked first as a row of text, in a state that the row gives:

    term=3, log='112'    may_vote(1, RequestVote(3, 3, 2))    True

Then whole runs are, planned and at random: by the four properties of figure 3 and by
linearizability. Section and figure numbers are those of Ongaro and Ousterhout (2014).
"""

import random
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


def _follow(text, make):
    """Compare what each rule says in its rows with what it should say."""
    rows = [row.split("  ") for row in text.strip().splitlines()]
    rows = [[part.strip() for part in row if part] for row in rows]
    said = kit.call(_answers, make, [row[:2] for row in rows], without=WITHOUT)
    for (state, rule, right), yours in zip(rows, said, strict=True):
        if yours != right:
            found = f"A node of five with {state}:\n    {rule}\n    expected  {right}"
            raise Wrong(f"{found}\n    yours     {yours}", rule=rule.split("(")[0])


def _answers(make, rows):
    """Return what each rule says in a state, as text; runs where the learner's does."""
    return [called(_answer, make, *row) for row in rows]


def _answer(make, state, rule):
    space = dict(make.may_vote.__globals__)

    def log(terms):
        return [space["Entry"](int(term)) for term in terms]

    def node_with(state):
        node = make(0, (1, 2, 3, 4))
        node.random = random.Random(0)
        for name, value in eval(f"dict({state})").items():
            setattr(node, name, log(value) if name == "log" else value)
        return node

    def then(effects, name):
        list(effects or ())
        return getattr(node, name)

    def restored(value):
        other = make(0, (1, 2, 3, 4))
        other.restore(value)
        return other.term, other.voted_for, "".join(str(e.term) for e in other.log)

    node = node_with(state)
    methods = {name: getattr(node, name) for name in dir(make) if name[0] != "_"}
    space |= methods | {"log": log, "then": then, "restored": restored}
    said = eval(rule, space)
    if rule.startswith(("may_", "fits")):
        return str(bool(said))
    many = type(said) in (list, tuple) and said and hasattr(said[0], "term")
    return "".join(str(entry.term) for entry in said) if many else repr(said)


# whole runs


def _view(node):
    """Return what the monitors read of a node, in the shape that they need."""
    numbers, log = (node.term, node.commit, node.applied), node.log
    fit = all(type(number) is int for number in numbers) and type(log) is tuple
    fit = fit and all(type(e) is tuple and e and type(e[0]) is int for e in log)
    assert fit, "term, commit or applied is no whole number, or log no list of entries"
    return RaftView(node.term, node.role == "leader", log, 0, node.commit, node.applied)


_monitors = partial(raft_monitors, _view)


class _Leaders(Monitor):
    """Who came to lead which term, and when: term -> (node, seconds)."""

    def __init__(self):
        self.of = {}

    def observe(self, nodes, node):
        """Keep a leader of a new term."""
        one = nodes[node]
        if one.role == "leader":
            self.of.setdefault(one.term, (node, one.clock_s))


def _fail(run, found, **facts):
    raise Wrong(found, picture=kit.Played(run.trace, "The run that failed"), **facts)


def _run(nodes, n, clients, **how):
    """Return a run that keeps the four properties and is linearizable, and leaders."""
    leaders, seed = _Leaders(), _random.getrandbits(32)
    watch = [*_monitors(), leaders]
    run = nodes.simulate(n, clients, monitors=watch, seed=seed, **how)
    why = nodes.why or violation(clients_linearizable, run)
    if why:
        _fail(run, f"{n} nodes: {why}\n{listed(run, run.history)}", why=why)
    return run, leaders.of


def _cuts(n, first_s=1.0):
    """Return partitions that cut off each node in turn, 1.2 s in every 2.2 s."""
    for node in range(n):
        at_s, rest = first_s + 2.2 * node, [k for k in range(n) if k != node]
        yield Split(at_s, [node], rest, until_s=at_s + 1.2)


def _elected(nodes):
    """Check that there is a new leader wherever a majority can elect one."""
    for n in (3, 4, 5):
        cuts = [*_cuts(n)]
        run, leaders = _run(nodes, n, [], faults=cuts, until_s=cuts[-1].until_s + 1)
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
        run, leaders = _run(nodes, n, [], until_s=1.0)
        term = min(leaders, default=1)
        sent = [e for e in kit.messages_between(run) if e.start < leaders[term][1]]
        if len(sent) > 2 * (n - 1) * term:
            found = f"{n} nodes sent {len(sent)} messages until term {term} had its "
            found += f"leader.\nExpected: at most {2 * (n - 1)} for each term."
            _fail(run, found, messages="election")


def _answered(run, operations=None):
    for one in operations or run.history:
        if one.outcome != "ok":
            _fail(run, f"Not answered:\n{listed(run, [one])}", late=one.op)


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
        plan = ", ".join(f"{op} {chr(97 + k)}" for k in range(20))
        plan = "append a" + ", read" * 20 if op == "read" else plan
        run, leaders = _run(nodes, n, [_client(0, plan, 1.0, 0.03)])
        _answered(run)
        starts = [one.start for one in run.history]
        sent = [*zip(kit.messages_between(run), nodes.sizes, strict=True)]
        costs = [
            [size for e, size in sent if at <= e.start < at + 0.03] for at in starts[2:]
        ]
        most, count = 2 * (n - 1), max(map(len, costs))
        if count > most:
            found = f"{n} nodes sent {count} messages for one {op}; expected: {most}."
            _fail(run, found, messages=op)
        if max(costs[-1]) > max(costs[0]) + 40:
            found = f"The third {op} took messages of {costs[0]} bytes, and the last "
            _fail(run, f"{found}of {costs[-1]}.", again="all")
        entries, right = len(run.nodes[0].log), starts and len(leaders) + 1
        if op == "read" and entries > right:
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
        clients = [_client(k, "append a, append b, read", 1, 0, 0.004, 60) for k in (0, 1)]
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
        head = f"Found at random, and shrunk: {found.why}\n{found.schedule!r}"
        _fail(found.outcome, head, why=found.why)


# fmt: off
def _writers(plan, retries):
    return [_client(n, plan.format(c), 0, 0, 9, retries) for n, c in enumerate("abc")]


_PARTS = {"splits": 3, "cuts": 3, "pauses": 1, "timeout_s": None}
_POWER = {"crashes": 5, "power_losses": 5, "timeout_s": None, "until_s": 1.5}
_CRASH = {"crashes": 3, "power_losses": 3, "splits": 2, "cuts": 2, "until_s": 4.0,
          "timeout_s": (0.2, 0.5), "delivery": Delivery((0.001, 0.03))}
_WRITES, _CALLS = "append {0}, append {0}", "append {0}, read, append {0}, read"
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
        term=3, log='112'  then(on_request(1, RequestVote(3, 3, 2)), 'voted_for')  1
        term=3, log='113'  then(on_request(1, RequestVote(3, 3, 2)), 'voted_for')  None
        term=3, role='candidate', votes={0, 1}  then(on_vote(2, Vote(3, True)), 'role')  'leader'
        term=3, role='candidate', votes={0, 1}  then(on_vote(2, Vote(2, True)), 'role')  'candidate'
        term=3, role='candidate', votes={0, 1}  then(on_vote(2, Vote(3, False)), 'role')  'candidate'
        term=3, role='candidate', votes={0, 1}  then(on_vote(1, Vote(3, True)), 'role')  'candidate'
        term=3, role='follower', votes={0, 1}  then(on_vote(2, Vote(3, True)), 'role')  'follower'
        term=3, role='leader', voted_for=0  then(see_term(5), 'role')  'follower'
        term=3, role='leader', voted_for=0  then(see_term(5), 'voted_for')  None
        term=3, role='leader', leader=0  then(see_term(5), 'leader')  None
        term=3, voted_for=2  then(stand(), 'term')  4
        term=3, voted_for=2  then(stand(), 'voted_for')  0
        """,
    "leaders cut off": _elected, "few messages": _cheap_elections,
    "random runs": partial(_fuzzed, 3, [], 300, until_s=1.5, **_PARTS),
    "random runs of 5": partial(_fuzzed, 5, [], 100, until_s=1.5, **_PARTS)}
_LOG = {
    "the rules": """
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
        term=3, log='113'  then(on_append(1, AppendEntries(3, 1, 1, (), 3, 1)), 'commit')  1
        term=3, log='113'  then(on_append(1, AppendEntries(2, 1, 1, (), 1, 1)), 'commit')  0
        term=3, log='113', role='candidate'  then(on_append(1, AppendEntries(3, 9, 3, (), 0, 1)), 'role')  'follower'
        """,
    "partitions heal": _heals, "few messages": partial(_cheap, "append"),
    "random runs": partial(_fuzzed, 3, _writers(_WRITES, 3), 200, until_s=3.0, **_PARTS),
    "random runs of 5": partial(_fuzzed, 5, _writers(_WRITES, 3), 60, until_s=3.0, **_PARTS)}
_CLIENTS = {
    "the rules": """
        term=5, voted_for=3, log='1125'  restored(durable())  (5, 3, '1125')
        commit=4, first=6  read_index()  6
        commit=9, first=6  read_index()  9
        applied=6, acked={1: 7, 2: 7}  may_read(Read(1, None, 6, 7))  True
        applied=6, acked={1: 7, 2: 6}  may_read(Read(1, None, 6, 7))  False
        applied=5, acked={1: 7, 2: 7}  may_read(Read(1, None, 6, 7))  False
        """,
    "restarts": _restarts, "retries": _retries, "leaders cut off": _deposed,
    "few messages": partial(_cheap, "read"),
    "random elections": partial(_fuzzed, 3, [], 600, **_POWER),
    "random runs": partial(_fuzzed, 3, _writers(_CALLS, 9), 300, **_CRASH),
    "random runs of 5": partial(_fuzzed, 5, _writers(_CALLS, 9), 100, **_CRASH)}

HINTS = [
    *kit.NODE_HINTS]
