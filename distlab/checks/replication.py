"""Exercise 04: a counter and a set that converge, and a read that repairs.

In a plan, "0.1 0 add n 1" is a call at 0.1 s at node 0; 1 stands for a drawn value.
"""

import random
import re
from functools import partial, reduce
from inspect import isgeneratorfunction
from types import SimpleNamespace

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check, last_reads, listed
from distlab.faults import Crash, Split
from distlab.network import Client, Delivery
from distlab.trace import Call

WITHOUT = kit.modules_of("distlab.agree") + kit.modules_of("distlab.agree.stores")
_random = random.SystemRandom()


@check("a counter: {}")
def counts(make, case):
    """Check that every read is the sum of the adds that its replica knows of."""
    _merges(_sum, make, case)


@check("a set: {}")
def contains(make, case):
    """Check that an item is there if a known add of it is seen by no known remove."""
    _merges(_items, make, case)


@check("a read: {}")
def repairs(make, case):
    """Check that no read goes back, and that reads cost the fewest messages."""
    with kit.on_nodes(make, 7, without=WITHOUT) as nodes:
        _READ[case](nodes)


def _merges(right, make, case):
    for name in ("update", "value", "merge"):
        if isgeneratorfunction(getattr(make, name, None)):
            raise Wrong(f"`{name}` has a `yield`: a call runs nothing.", yields=True)
    with kit.on_nodes(make, 5, without=WITHOUT) as nodes:
        _CRDT[case](right, nodes)


def _run(nodes, n, clients, **how):
    return nodes.simulate(n, clients, seed=_random.getrandbits(32), **how)


def _fail(run, found, **facts):
    picture = kit.Played(run.trace, "The run that failed")  # of hundreds: unreadable
    raise Wrong(found, picture=picture if len(run.history) < 60 else None, **facts)


def _with(known, one):
    """Return the known (update, adds that a remove had seen) after an update."""
    adds = (o for o, _ in known if o.op == "add" and o.value == one.value)
    seen = frozenset(adds if one.op == "remove" else ())
    return known | {(one._replace(result=None), seen)}


def _sum(known):
    return sum(one.value for one, _ in known)


def _items(known):
    removed = frozenset().union(*(seen for _, seen in known))
    return {o.value for o, _ in known if o.op == "add" and o not in removed}


def _followed(run):
    """Yield each read, and the updates that its replica knew of then, in order.

    A message carries all that its sender knows when it sends it.
    """
    n, told, calls = run.trace.world_size - run.trace.clients, {}, {}
    knows = [frozenset()] * n
    asked = [iter(run.history.of(number)) for number in range(run.trace.clients)]
    for event in run.trace.events:
        who, kind, peer, step = event.rank, event.kind, event.peer, event.step
        if kind == "send" and who >= n:
            calls[step] = next(asked[who - n])
        elif kind == "send" and peer < n:
            told[step] = knows[who]
        elif kind == "recv" and step in told:
            knows[who] |= told[step]
        elif kind == "recv" and step in calls:
            if calls[step].op == "read":
                yield calls[step], knows[who]
            else:
                knows[who] = _with(knows[who], calls[step])


def _wrong(right, want, got):
    """Return the items in which a result differs; {""} for another sum, or no list."""
    if right is _sum:
        return {""} if got != want else set()
    kinds = type(got) in (list, tuple, set) and {*map(type, got)} <= {str}
    return want ^ {*got} if kinds and len({*got}) == len(got) else {""}


def _require(right, run, **facts):
    """Raise `Wrong` for a read that is not `right` of the updates known at its node."""
    for one, known in _followed(run):
        want, got = right(known), one.result
        for item in sorted(_wrong(right, want, got)):
            updates = [one for one, _ in known if item in ("", one.value)]
            updates.sort(key=lambda update: update.start)
            shown = want if right is _sum else sorted(want)
            found = (
                f"{listed(run, [one])}\nExpected {shown}. Its replica knew of these "
            )
            found += f"updates{item and f' of {item}'}:\n"
            found += f"  ... and {len(updates) - 6} before\n" * (len(updates) > 6)
            found += listed(run, updates[-6:])
            down = right is _sum and any(each.value < 0 for each in updates)
            _fail(run, found, **_kind(right, want, got), down=down, **facts)


def _kind(right, want, got):
    """Return the facts about a wrong result."""
    if right is _sum:
        return {"kind": "sum", "more": isinstance(got, int | float) and got > want}
    item = min(_wrong(right, want, got))
    return {"kind": item and ["lost", "back"][item in got]}


def _drawn(right, count=6):
    """Return drawn items; or drawn numbers, and the same numbers negative."""
    numbers = _random.sample(range(100, 1000), count)
    if right is _items:
        return [f"item{number}" for number in numbers]
    return [*numbers, *(-number for number in numbers)]


def _planned(n, plans, right, nodes, faults=(), **facts):
    for plan in plans[right]:
        clients = kit.clients_of(plan, _drawn(right)) + last_reads(n, "n", 3)
        run = _run(nodes, n, clients, faults=faults, twice=n == 1)
        _require(right, run, planned=n, **facts)


def _many(sizes, right, nodes):
    """Run random updates with a partition, a crash, and messages dropped and twice."""
    ops, rough = ["add", "add", "remove"], Delivery((0.001, 0.15), 0.1, 0.3)
    for n in sizes:
        drawn, clients = _random.sample(_drawn(right), 4), last_reads(n, "n", 3.5)
        for _ in range(12):
            op = "add" if right is _sum else _random.choice(ops)
            calls = [Call(op, "n", _random.choice(drawn)), Call("read", "n")]
            clients.append(Client(_random.randrange(n), calls, _random.uniform(0, 2)))
        order, at_s = _random.sample(range(n), n), _random.uniform(0.3, 1)
        split = Split(at_s, order[:1], order[1:], until_s=at_s + 0.6)
        crash = Crash(order[-1], at_s + 0.2, until_s=at_s + 0.5)
        _require(right, _run(nodes, n, clients, faults=[split, crash], delivery=rough))


def _pair(right, value):
    return [
        Call(op, "n", value) for op in ("add", "add" if right is _sum else "remove")
    ]


def _searched(right, nodes):
    """Search for an order of messages, one of them twice, that a merge cannot bear."""
    one, two, *_ = _drawn(right)
    clients = [Client(0, _pair(right, one)), Client(1, [Call("add", "n", two)])]

    def objection(run):
        # Of each item one client alone makes all updates, so they are in order.
        known = reduce(_with, run.history, frozenset())
        want, values = right(known), [node.result_of("value") for node in run.nodes]
        shown = want if right is _sum else sorted(want)
        found = f"All has arrived, and the replicas have {values}; expected {shown}."
        wrong = [_kind(right, want, got) for got in values if _wrong(right, want, got)]
        return SimpleNamespace(violated=wrong, why=found, facts=wrong[:1])

    how = {"duplicates": 1, "timers": 0, "settled": True, "within_s": 1.0}
    if found := nodes.search(3, clients, objection, **how):
        (facts,) = objection(found.outcome).facts
        why = f"{kit.last_steps(found)}\n{found.why}"
        _fail(found.outcome, why, down=False, **facts)


def _much_later(right, nodes):
    """Compare what replicas send after few updates and after many, of other items."""
    clients, drawn = last_reads(3, "n", 4), _drawn(right, 123)
    for node in range(3):
        own, *others = drawn[node::3]
        for start_s, some in ((0.1, others[:2]), (2, others)):
            calls = [c for v in some for c in [*_pair(right, v), Call("add", "n", own)]]
            clients.append(Client(node, calls, start_s))
    run = _run(nodes, 3, clients)
    _require(right, run)
    sent = nodes.sent(run)
    few, many = (max(b for e, b in sent if at <= e.start < at + 1) for at in (1, 3))
    if many > few + 40:
        found = f"A state has {few} bytes after 18 updates, and {many} after 378.\n"
        raise Wrong(f"{found}Expected: 40 bytes more at most.", grows=True)


def _older(history):
    """Return the first read that is older than what was answered before, and that one.

    The writes are one client's, of different values. None if there is no such read.
    """
    values = [None, *(one.value for one in history if one.op == "write")]
    done = [one for one in history if one.outcome == "ok"]
    seen = [one.value if one.op == "write" else one.result for one in done]
    ages = [values.index(value) if value in values else -1 for value in seen]
    for read, age in zip(done, ages, strict=True):
        pairs = zip(done, ages, strict=True)
        newer = [one for one, a in pairs if a > age and one.end < read.start]
        if newer and read.op == "read":
            return read, max(newer, key=lambda one: one.op)
    return None


def _require_fresh(run, head=""):
    if two := _older(run.history):
        writes = [one for one in run.history if one.op == "write"]
        found = f"{head}The last of these is older than what was answered before it:\n"
        found += listed(run, [*writes, *(o for o in two[::-1] if o.op == "read")])
        known = two[0].result in [one.value for one in writes] + [None]
        at_once = two[0].start == two[0].end
        _fail(run, found, older=two[1].op, known=known, at_once=at_once)


def _reads(nodes, n, some, reads, gap_s=0.2, most_s=1, cuts=(), **how):
    """Return a run in which writes reach some nodes only, and then nodes read.

    All read the first write. Of 4 nodes or more the second reaches the first and last
    of a drawn order, the third the first `some`. reads: places in it, 0 is the writer.
    cuts: (from, the number of nodes of that order on one side, until).
    """
    order, values = _random.sample(range(n), n), _random.sample(range(10**6), 3)
    writes = [f"{at} {order[0]} write x {k}" for k, at in enumerate((0.1, 0.5, 0.75))]
    asked = [f"0.25 {node} read x" for node in order]
    asked += [f"{1 + k * gap_s} {order[place]} read x" for k, place in enumerate(reads)]
    clients = kit.clients_of(", ".join(writes), values, timeout_s=0.2)
    clients += kit.clients_of(", ".join(asked), [], timeout_s=20)
    faults = [Split(at, order[:k], order[k:], until_s=end) for at, k, end in cuts]
    if some < n:
        faults.append(Split(0.7, order[:some], order[some:], until_s=0.9))
    if 3 < n > some:
        faults.append(Split(0.4, [order[0], order[-1]], order[1:-1], until_s=0.7))
    run = _run(nodes, n, clients, faults=faults, **how)
    _require_fresh(run)
    for one in run.history:
        if one.op == "read" and (one.end is None or one.end - one.start > most_s):
            found = f"Not answered within {most_s} s:\n{listed(run, [one])}"
            asked = any("show" in e.label for e in kit.messages_between(run))
            _fail(run, found, late=True, asked=asked)
    return run


def _costs(plan, nodes):
    for n, some, count in plan:
        first = 0 if some == 1 else n - 1  # a node that holds it, or not
        reads = [first, *_random.choices(range(n), k=count)]
        _require_few(_reads(nodes, n, some, reads), n - some, 2 * (n // 2))


def _require_few(run, stale, asked):
    """Raise `Wrong` if one read, or all of them, cost more messages than are needed."""
    sent = [e.start for e in kit.messages_between(run) if e.rank != e.peer]
    starts = [o.start for o in run.history if o.op == "read" and o.start > 0.9]
    costs = [sum(start <= when < start + 0.199 for when in sent) for start in starts]
    most, total = asked * (1 + bool(stale)), asked * len(costs) + 2 * stale
    if max(costs) > most or sum(costs) > total:
        found = f"{run.trace.actors()}; {stale} of the nodes were stale. The reads cost"
        found += f"\n{costs} messages, {sum(costs)} in all.\nExpected: at most {most} "
        facts = {"costs": min(costs) > asked, "asked": min(costs) > 0}
        _fail(run, f"{found}for one, and {total} for all.", **facts)


def _cut_off(nodes):
    how = {"most_s": 2, "delivery": Delivery((0.01, 0.01))}
    for n in (3, 4, 5):
        q = n // 2 + 1
        _reads(nodes, n, 1, [*range(q)] * 2, cuts=[(0.95, q, None)])
    # What the first read sends after it has heard others is dropped, or one part of it.
    for n, side in ((3, 1), (4, 1), (5, 1), *[(5, 2)] * 8):
        _reads(nodes, n, 1, [*range(n)], cuts=[(1.025, side, 2)], **how)


def _drops(nodes):
    for n in (2, 2, 3, 3, 4, 5, 5, 5):
        reads, rough = _random.choices(range(n), k=20), Delivery((0.001, 0.1), 0.3, 0.2)
        _reads(nodes, n, 1, [0, *reads], 0.03, 20, delivery=rough)


def _reads_searched(nodes):
    """Search all orders of the messages of a write and two reads."""
    # Asking the first others, the last or a neighbour fails with (0, 2) or (2, 0).
    for writer, reader in ((0, 2), (2, 0), (1, _random.choice([0, 2]))):
        calls = [Call("write", "x", _random.randrange(1, 10**6)), Call("read", "x")]
        clients = [Client(writer, calls[:1]), Client(writer, calls[1:])]
        clients.append(Client(reader, calls[1:]))
        found = nodes.search(3, clients, lambda run: not _older(run.history), timers=0)
        if found:
            _require_fresh(found.outcome, f"A search found\n{kit.last_steps(found)}\n")


# fmt: off
_PLANS = {  # node 2 is cut off from 0.5 on; for the sum 6 to 11 are negative
    _sum: [
        "0.1 0 add n 0, 0.2 1 add n 1, 0.4 1 read n, 0.7 0 add n 2, 0.8 2 add n 3, "
        "0.9 1 add n 4, 1 2 add n 5, 1.2 2 read n, 1.3 0 read n",
        "0.1 0 add n 0, 0.2 1 add n 7, 0.4 1 read n, 0.7 0 add n 8, 0.8 2 add n 3, "
        "0.9 1 add n 4, 1 2 add n 11, 1.2 2 read n, 1.3 0 read n"],
    _items: [
        "0.1 0 add n 0, 0.2 1 add n 1, 0.3 2 remove n 0, 0.4 1 read n, 0.4 1 add n 4, "
        "0.7 0 add n 2, 0.8 2 add n 3, 0.9 1 remove n 1, 1 2 add n 0, "
        "1.1 0 remove n 2, 1.2 1 add n 4, 1.2 2 add n 4, 1.3 0 read n",
        "0.1 0 add n 0, 0.2 1 add n 1, 0.7 1 remove n 0, 0.8 2 add n 0, "
        "0.9 2 remove n 1, 1 0 add n 1, 1.1 0 remove n 1, 1.2 1 add n 2, "
        "1.3 2 add n 2, 1.4 2 remove n 2"]}
_ALONE = {
    _sum: ["0 0 add n 0, 0.1 0 read n, 0.2 0 add n 7, 0.3 0 add n 7, 0.4 0 read n"],
    _items: [
        "0 0 add n 0, 0.1 0 read n, 0.2 0 add n 1, 0.3 0 add n 1, 0.4 0 read n, "
        "0.5 0 remove n 1, 0.6 0 read n, 0.7 0 remove n 0, 0.8 0 remove n 2, "
        "0.9 0 read n, 1 0 add n 0, 1.1 0 add n 2"]}
_AGAIN = {  # a crash at 0.5
    _sum: ["0.1 0 add n 0, 0.2 0 add n 1, 1 0 add n 2, 1.2 0 add n 3"],
    _items: [
        "0.1 0 add n 0, 0.2 0 add n 1, 0.3 0 remove n 1, 1 0 add n 2, 1.1 0 add n 3"]}
_SPLIT, _CRASH = Split(0.5, [0, 1], [2], until_s=1.5), Crash(0, 0.5, until_s=0.6)
_CRDT = {
    "one replica": partial(_planned, 1, _ALONE),
    "a partition": partial(_planned, 3, _PLANS, faults=_SPLIT),
    "restarts": partial(_planned, 3, _AGAIN, faults=_CRASH, restarted=True),
    "searched": _searched, "after many updates": _much_later,
    "many runs of 3 and 5": partial(_many, (3, 5, 3, 5)),
    "many runs of 4": partial(_many, (4, 4))}
_READ = {
    "nothing is stale": partial(_costs, [(n, n, 9) for n in (2, 3, 4, 5)]),
    "stale nodes": partial(_costs, [
        *[(n, 1, 9) for n in (3, 4, 5, 5)], (3, 2, 2), (4, 3, 2), *[(5, 3, 2)] * 24]),
    "stale nodes of 7": partial(_costs, [(7, 1, 9), *[(7, 4, 2)] * 6]),
    "nodes cut off": _cut_off, "drops": _drops, "searched": _reads_searched}

HINTS = [
    Hint(lambda f: f["yields"], [
        "These three methods send nothing, so they need no `yield`: what they change "
        "in self.state is sent by Replica.",
        "Python makes a generator of each function with a yield in it, and runs none "
        "of it before a value is asked for. Search the method for the word."]),
    Hint(lambda f: re.search(r"(er|Set)\) .*write this step", str(f["failure"])), [
        "Begin with `update`: what does one add change in self.state? Then `value`, "
        "then `merge`.",
        "Take two replicas that have added once each, and write down both states, and "
        "the state after a merge of the two. What does `value` make of each?"]),
    Hint(lambda f: f["failure"].cause.args[0] > 10**6, [
        "The call is over after `answer`, and `self.work` has forgotten it. What is "
        "still to be sent must come before.",
        "Which line comes after self.answer(...) in your method? Before it, that "
        "is sent; and the answer waits until enough nodes have confirmed it."]),
    Hint(lambda f: re.search(r"(Counter|ORSet)\) raised KeyError", str(f["failure"])), [
        "A replica starts with an empty state: what does it do for a replica that it "
        "has no entry of?",
        "self.state.get(node, 0) is 0 where there is no entry. The line is named "
        "above: what should be there before the first add?"]),
    Hint(lambda f: re.search("pickle|no plain", str(f["failure"])), [
        "self.state must be plain data: numbers, strings, tuples, lists, dicts and "
        "sets; no lambda, and no class of your own.",
        "A defaultdict(lambda: ...) is neither sent nor saved; state.get(key, 0) does "
        "the same with a dict. A tuple takes the place of a class with fields."]),
    Hint(lambda f: f["kind"] == "", [
        "value() returns the items that are in the set, as a list of strings, each "
        "once. Which of your data is that made from?",
        "Add tea twice on one replica, by hand. Two adds have two dots, and one item: "
        "what makes it one in value()?"]),
    Hint(lambda f: f["planned"] == 1 and f["kind"] == "sum", [
        "One replica alone, and no message: a read is the sum of all adds. They may be "
        "negative, and add up.",
        "Do the adds of the verdict by hand with update and value. Does the second "
        "add replace the first? What happens to a minus sign?"]),
    Hint(lambda f: f["planned"] == 1, [
        "One replica alone, and no message. A remove ends the adds of its item that "
        "are there, all of them, and not the item for ever.",
        "Do the updates of the verdict by hand on one replica, and write down the "
        "dots after each. Which does remove take out? Has each add its own dot?"]),
    Hint(lambda f: f["restarted"] and f["kind"] in ("sum", "lost"), [
        "An update after the restart is lost, as if it were known already. Only "
        "self.state survives a crash. From which number does the replica go on?",
        "Which attribute of yours has the sum so far, or the number of the last add? "
        "After a restart __init__ runs, and then merge(saved state). What is that "
        "attribute then? Or does merge leave out this replica's own entry? After a "
        "restart it is in the saved state only."]),
    Hint(lambda f: f["kind"] == "sum" and f["planned"] and f["down"], [
        "While adds are positive it is right. A replica's number can go down, so the "
        "greater of two numbers is not the newer one.",
        "Replica 0 has 5, then 3. Both states arrive, in either order. What could "
        "replica 0 keep beside, or instead of, its sum, so that it only ever grows?"]),
    Hint(lambda f: f["kind"] == "sum" and f["more"] and not f["down"], [
        "Adds are counted more than once. Each replica sends its state again and "
        "again: merging what is already known must change nothing.",
        "Merge the same state twice by hand. Whose adds does each number in your state "
        "count? A merge should choose between two numbers of one replica, not add "
        "them."]),
    Hint(lambda f: f["kind"] == "sum", [
        "Adds that this replica knew of are missing, or counted twice. After a merge "
        "it knows what both knew; an older state must not replace a newer one.",
        "Replicas 0 and 1 both add, and then merge each other's state. Write down both "
        "states before and after. Then let the older state of replica 0 come last. "
        "What merge returns is not used: it has to change self.state."]),
    Hint(lambda f: f["kind"] == "back", [
        "A removed item is still there, or there again. One state has its dot, and "
        "another lacks it: has that one not seen the add yet, or the remove already?",
        "Take that dot, at the merge after which it should be gone. What does the "
        "version vector of the state that lacks it say about its number?"]),
    Hint(lambda f: f["kind"] == "lost", [
        "An add is missing that no remove had seen. A remove ends the adds that its "
        "replica knew of; a concurrent or a later add has another dot.",
        "Merge by hand the two states that hold and lack the item. A dot that only one "
        "has was removed only if the other's version vector covers it. Do you compare "
        "with the number of the right replica? Or has a new add a number that was used "
        "before? Look at the last number in the vector, not at the dots that are "
        "left."]),
    Hint(lambda f: f["grows"], [
        "Each update leaves something behind in the state. What of it is needed to "
        "recognize an old state?",
        "Print self.state after ten updates on one replica. One number per replica can "
        "stand for all its updates up to that number: which entries does it make "
        "superfluous? In a set: what is kept of an item that is gone, and of the first "
        "of two adds of one item?"]),
    Hint(lambda f: not f["known"], [
        "A read is answered with the value of the newest copy, None if there is none. "
        "What did you give to self.answer?",
        "A Copy has a version and a value. Print what you answer, on the run of the "
        "cell above."]),
    Hint(lambda f: f["at_once"], [
        "This read was answered at once: no other node was asked. What a node holds, "
        "or has read before, tells it nothing about later writes.",
        "Let the node be cut off while the others write, and read there afterwards. "
        "How many nodes must every read ask to meet the write?"]),
    Hint(lambda f: f["older"] == "write", [
        "A write was answered when a majority held it, and this read has met none of "
        "these. How many nodes, the coordinator included, meet every majority?",
        "Count for 3, 4 and 5 nodes: copies that must be known before an answer, and "
        "nodes to ask for that. Then see which copy of those known you answer with."]),
    Hint(lambda f: f["older"] == "read", [
        "An earlier read returned a value that too few nodes held, so a later one "
        "missed it. What must a majority hold before a read is answered?",
        "In the player, stop where the newer value is answered, and count the nodes "
        "that hold it then. A repair that is under way has not arrived."]),
    Hint(lambda f: not f["asked"], [
        "on_read sent nothing. `self.ask(...)` alone only makes a generator: write "
        "`yield from self.ask(...)`.",
        "The same is true of self.repair(...) and self.answer(...): without `yield "
        "from`, nothing that they yield is sent."]),
    Hint(lambda f: f["late"], [
        "A read was not answered, although a majority could be reached. Who was asked "
        "may be cut off, and an answer may be dropped.",
        "In the player, see what happens each time the coordinator's timer runs out. "
        "Who has not been asked yet? Which repairs have not been confirmed, and are "
        "they sent again? Does on_silence lead to an answer if all copies are there?"]),
    Hint(lambda f: f["costs"], [
        "Reads cost too much although nothing is stale. Whom need a read ask, and what "
        "need it send if all that it hears is equal?",
        "Of five nodes three are a majority, and one of these is the coordinator. Two "
        "asked, two answers: which messages of yours go beyond these four?"]),
    Hint(lambda f: f["costs"] is False, [
        "Reads that meet stale nodes cost too much. Only a node that has shown an "
        "older copy needs a repair, and only once; and only by version: copies compare "
        "by it.",
        "Have you heard all that you have asked before you repair? More than two "
        "versions may be about, and the newest may come last.",
        "Each confirmation calls on_copy again. What do you send then to a node whose "
        "repair is under way? work.repaired has those."]),
    *kit.NODE_HINTS]
