"""Exercise 04: a counter and a set that converge, and a read that repairs.

In a plan, "0.1 0 add n 1" is a call at 0.1 s at node 0; 1 stands for a drawn number.
"""

import random
from functools import partial
from typing import NamedTuple

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check, last_reads, listed
from distlab.faults import Crash, Split
from distlab.network import Client, Delivery
from distlab.trace import Call

WITHOUT = kit.modules_of("distlab.agree")
_ROUGH = Delivery((0.001, 0.15), loss=0.1, duplicate=0.3)
_random = random.SystemRandom()


@check("a counter: {}")
def counts(make, case):
    """Check that every read is the sum of the adds that its replica knows of."""
    with kit.on_nodes(make, 5, without=WITHOUT) as nodes:
        _COUNTER[case](nodes)


@check("a set: {}")
def contains(make, case):
    """Check that an item is there if a known add of it is seen by no known remove."""
    with kit.on_nodes(make, 5, without=WITHOUT) as nodes:
        _SET[case](nodes)


@check("a read: {}")
def repairs(make, case):
    """Check that no read goes back, and that reads cost the fewest messages."""
    with kit.on_nodes(make, 7, without=WITHOUT) as nodes:
        _READ[case](nodes)


def _fail(run, found, **facts):
    raise Wrong(found, picture=kit.Played(run.trace, "The run that failed"), **facts)


class Known(NamedTuple):
    """An update that a replica knows of; seen: the adds that a remove had seen."""

    update: tuple
    seen: frozenset = frozenset()


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
                knows[who] |= {_update(calls[step], knows[who])}


def _update(one, known):
    adds = (o for o, _ in known if o.op == "add" and o.value == one.value)
    return Known(one, frozenset(adds if one.op == "remove" else ()))


def _sum(known):
    return sum(one.value for one, _ in known)


def _items(known):
    removed = frozenset().union(*(seen for _, seen in known))
    return {o.value for o, _ in known if o.op == "add" and o not in removed}


def _run(nodes, n, clients, **how):
    return nodes.simulate(n, clients, seed=_random.getrandbits(32), **how)


def _require_sums(run, **facts):
    """Raise `Wrong` for a read of a counter that is not the sum of the known adds."""
    for one, known in _followed(run):
        if one.outcome != "ok" or one.result != (right := _sum(known)):
            adds = sorted((each for each, _ in known), key=lambda each: each.start)
            found = f"{listed(run, [one])}\nIts replica knows of these adds; expected "
            facts["more"] = one.outcome == "ok" and one.result > right
            _fail(run, f"{found}{right}:\n{listed(run, adds)}", kind="sum", **facts)


def _require_items(run, **facts):
    """Raise `Wrong` for a read of a set that has not the items that are there."""
    for one, known in _followed(run):
        right, items = _items(known), one.result
        kinds = type(items) in (list, tuple, set) and {*map(type, items)} <= {str}
        if not kinds or len({*items}) < len(items):
            _fail(run, f"This is no list of items:\n{listed(run, [one])}", kind="list")
        for item in sorted(right ^ {*items}):
            about = (each for each, _ in known if each.value == item)
            about = listed(run, sorted(about, key=lambda each: each.start))
            found = f"{listed(run, [one])}\nExpected {sorted(right)}. "
            found += f"Its replica knows of these updates of {item}:\n{about}"
            _fail(run, found, kind="back" if item in items else "lost", **facts)


def _planned(require, n, plans, nodes):
    """Run plans with numbers, or items, that are drawn; split three nodes at 0.5 s."""
    split = Split(0.5, [0, 1], [2], until_s=1.5) if n > 1 else ()
    for plan, *signs in plans:
        drawn = _drawn(require, 12)
        if signs:
            drawn = [sign * value for sign, value in zip(*signs, drawn, strict=False)]
        clients = kit.clients_of(plan, drawn) + last_reads(n, "n", 3)
        run = _run(nodes, n, clients, faults=split, twice=n == 1)
        require(run, alone=n == 1, down=bool(signs))


def _drawn(require, count):
    numbers = _random.sample(range(100, 1000), count)
    return [f"item{n}" for n in numbers] if require is _require_items else numbers


def _restarts(nodes):
    plan = "0.1 0 add n 0, 0.2 0 add n 1, 0.3 0 remove n 1, 1 0 add n 2, 1.1 0 add n 3"
    for until_s in (0.9, 0.6):
        clients = kit.clients_of(plan, _drawn(_require_items, 4))
        crash = Crash(0, 0.5, until_s=until_s)
        run = _run(nodes, 3, clients + last_reads(3, "n", 2.5), faults=crash)
        _require_items(run, restarted=True)


def _many(require, n, nodes):
    """Run random updates with a partition, a crash, and messages dropped and twice."""
    for _ in range(3):
        drawn, clients = _drawn(require, 4), []
        for _ in range(12):
            value, op = _random.choice(drawn), _random.choice(["add", "add", "remove"])
            if require is _require_sums:
                op, value = "add", _random.choice([1, -1]) * value
            calls, at_s = [Call(op, "n", value), Call("read", "n")], 0.1
            clients.append(Client(_random.randrange(n), calls, _random.uniform(0, 2)))
        order, at_s = _random.sample(range(n), n), _random.uniform(0.3, 1)
        split = Split(at_s, order[:1], order[1:], until_s=at_s + 0.6)
        crash = Crash(order[-1], at_s + 0.2, until_s=at_s + 0.5)
        clients += last_reads(n, "n", 3.5)
        require(_run(nodes, n, clients, faults=[split, crash], delivery=_ROUGH))


class _Objection(NamedTuple):
    violated: bool
    why: str = ""


def _searched(objection, clients, nodes):
    """Search orders in which messages may arrive, one of them twice, for an objection.

    objection: called with an outcome in which nothing is under way; returns words.
    """

    def wrong(run):
        return _Objection(bool(why := objection(run)), why)

    how = {"duplicates": 1, "timers": 0, "settled": True, "within_s": 1.0}
    if found := nodes.search(3, clients(), wrong, **how):
        _fail(found.outcome, f"{found.schedule!r}\n{found.why}", again=objection)


def _adders():
    one, two, three = _drawn(_require_sums, 3)
    adds = [[Call("add", "n", v) for v in some] for some in ([one, -two], [three])]
    return [Client(node, calls) for node, calls in enumerate(adds)]


def _other_sum(run):
    right = sum(one.value for one in run.history)
    values = [node.result_of("value") for node in run.nodes]
    if values != [right] * len(values):
        return f"All has arrived, and the replicas have {values}; expected {right}."


def _removers():
    one, two = _drawn(_require_items, 2)

    def looks_first():
        yield Call("read", "n")
        yield Call("remove", "n", two)

    calls = [Call("add", "n", one), Call("remove", "n", one)], [Call("add", "n", two)]
    return [*(Client(n, some) for n, some in enumerate(calls)), Client(2, looks_first)]


def _other_items(run):
    """Return an objection unless replicas are equal, and have what they must have."""
    held = [sorted(node.result_of("value")) for node in run.nodes]
    adds = [one.value for one in run.history if one.op == "add"]
    removed = [one for one in run.history if one.op == "remove"]
    seen = [item for o in run.history if o.op == "read" for item in o.result or ()]
    must = [a for a in adds if a not in [one.value for one in removed]]
    gone = [o.value for o in removed if o.client == 0 or o.value in seen]
    wrong = [f"without {item}" for item in must if item not in held[0]]
    wrong += [f"with {item}, which was removed" for item in gone if item in held[0]]
    if any(each != held[0] for each in held) or wrong:
        return f"All has arrived, and the replicas have {held}: {wrong or 'not equal'}"


def _much_later(kind, nodes):
    """Compare what replicas send after few and after many updates that cancel out."""
    clients = []
    for node, value in enumerate(_drawn(kind, 3)):
        pairs = [Call("add", "n", value), Call("remove", "n", value)]
        if kind is _require_sums:
            pairs = [Call("add", "n", v) for v in (value, -value)]
        clients.append(Client(node, pairs * 3, 0.1 * node))
        clients.append(Client(node, pairs * 50, 2 + 0.1 * node))
    run = _run(nodes, 3, clients + last_reads(3, "n", 4))
    kind(run)
    sent = [*zip(kit.messages_between(run), nodes.sizes, strict=True)]
    few, many = (max(b for e, b in sent if at <= e.start < at + 1) for at in (1, 3))
    if many > few + 40:
        found = f"A state has {few} bytes after 18 updates, and {many} after 318.\n"
        raise Wrong(f"{found}Expected: 40 bytes more at most.", grows=True)


def _older(history):
    """Return the first read that is older than what was answered before, and that one.

    The writes are one client's, of different values. None if there is no such read.
    """
    values = [None, *(one.value for one in history if one.op == "write")]
    done = [one for one in history if one.outcome == "ok"]
    ages = [_age(values, o.value if o.op == "write" else o.result) for o in done]
    for read, age in zip(done, ages, strict=True):
        aged = zip(ages, range(len(done)), strict=True)
        before = [(a, k) for a, k in aged if done[k].end < read.start and a > age]
        if age < 0:
            return read, read
        if before and read.op == "read":
            return read, done[max(before)[1]]
    return None


def _age(values, value):
    return values.index(value) if value in values else -1


def _require_fresh(run, head=""):
    two = _older(run.history)
    if two and two[0] is two[1]:
        _fail(run, f"{head}Nobody wrote this:\n{listed(run, two[:1])}", strange=True)
    if two:
        found = f"{head}This read is older than what was answered before it began:\n"
        writes = [one for one in run.history if one.op == "write"]
        some = sorted({*writes, *two}, key=lambda one: one.start)
        _fail(run, found + listed(run, some), older=two[1].op)


def _require_answers(run):
    for one in run.history:
        if one.op == "read" and (one.end is None or one.end - one.start > 1):
            found = f"Not answered within a second:\n{listed(run, [one])}"
            _fail(run, found, late=True)


def _written(n, primary, holders, reads, **how):
    """Return clients that write twice, the second to some nodes only, and then read."""
    one, two = _random.sample(range(1, 10**6), 2)
    clients = [Client(primary, [Call("write", "x", one)], 0.1)]
    clients += [Client(primary, [Call("write", "x", two)], 0.3, timeout_s=0.2)]
    for number, node in enumerate(reads):
        clients.append(Client(node, [Call("read", "x")], 1 + number / 5, timeout_s=5))
    others = [node for node in range(n) if node not in holders]
    return clients, [Split(0.2, holders, others, until_s=0.6)] if others else []


def _costs(sizes, stale, nodes):
    """Count the messages of reads, one after another, the first at the writer's node."""
    for n in sizes:
        order, q = _random.sample(range(n), n), n // 2 + 1
        for some in (1, q) if stale else (n,):
            reads = [order[0], *_random.choices(order, k=9)]
            clients, faults = _written(n, order[0], order[:some], reads)
            run = _run(nodes, n, clients, faults=faults)
            _require_answers(run)
            _require_fresh(run)
            asked = 2 * (q - 1)
            _require_few(run, n - some, asked)


def _require_few(run, stale, asked):
    """Raise `Wrong` if one read, or all of them, cost more messages than are needed."""
    sent = [e.start for e in kit.messages_between(run) if e.rank != e.peer]
    starts = [one.start for one in run.history if one.op == "read"]
    costs = [sum(start <= when < start + 0.15 for when in sent) for start in starts]
    most, all_ = asked * (1 + bool(stale)), asked * len(costs) + 2 * stale
    if max(costs) > most or sum(costs) > all_:
        found = f"{run.trace.actors()}; {stale} of the nodes were stale.\nThe reads "
        found += f"cost {costs} messages, {sum(costs)} in all.\nExpected: at most "
        found += f"{most} for one, and {all_} for all."
        _fail(run, found, costs=min(costs) > asked)


def _cut_off(nodes):
    for n in (3, 4, 5):
        order, q = _random.sample(range(n), n), n // 2 + 1
        clients, faults = _written(n, order[0], order[:1], order[:q] * 2)
        faults.append(Split(0.9, order[:q], order[q:]))
        run = _run(nodes, n, clients, faults=faults)
        _require_answers(run)
        _require_fresh(run)


def _drops(nodes):
    for n in (3, 5):
        values = _random.sample(range(1, 10**6), 8)
        primary = _random.randrange(n)
        clients = [Client(primary, [Call("write", "x", v) for v in values], 0.1, 0.1)]
        clients += [
            Client(node, [Call("read", "x")] * 8, 0.1, timeout_s=20)
            for node in range(n)
        ]
        run = _run(nodes, n, clients, delivery=Delivery((0.001, 0.08), 0.15, 0.15))
        _require_fresh(run)
        for one in run.history:
            if one.op == "read" and one.outcome != "ok":
                _fail(run, f"Never answered:\n{listed(run, [one])}", late=True)


def _reads_searched(nodes):
    for writer in _random.sample(range(3), 3):
        value = _random.randrange(1, 10**6)
        clients = [Client(writer, [Call("write", "x", value)])]
        clients += [Client(node, [Call("read", "x")]) for node in range(3)]
        how = {"drops": 2, "duplicates": 1, "timers": 2, "within_s": 0.7}
        if found := nodes.search(
            3, clients, lambda run: not _older(run.history), **how
        ):
            _require_fresh(found.outcome, f"A search found\n{found.schedule!r}\n")


# fmt: off
_UPS = ("0.1 0 add n 0, 0.2 1 add n 1, 0.4 1 read n, 0.7 0 add n 2, 0.8 2 add n 3, "
        "0.9 1 add n 4, 1 2 add n 5, 1.2 2 read n, 1.3 0 read n")
_DOWNS = _UPS, [1, -1, -1, 1, 1, -1]
_ALONE = "0 0 add n 0, 0.1 0 read n, 0.2 0 add n 1, 0.3 0 add n 1, 0.4 0 read n"
_ADDS = (f"{_ALONE}, 0.5 0 remove n 1, 0.6 0 read n, 0.7 0 remove n 0, 0.8 0 remove n 2, "
         "0.9 0 read n, 1 0 add n 0, 1.1 0 add n 2")
_CHANGES = (  # node 2 is cut off from 0.5 on
    ("0.1 0 add n 0, 0.2 1 add n 1, 0.3 2 remove n 0, 0.4 1 read n, 0.7 0 add n 2, "
     "0.8 2 add n 3, 0.9 1 remove n 1, 1 2 add n 0, 1.1 0 remove n 2, 1.3 0 read n",),
    ("0.1 0 add n 0, 0.2 1 add n 1, 0.7 1 remove n 0, 0.8 2 add n 0, 0.9 2 remove n 1, "
     "1 0 add n 1, 1.1 0 remove n 1, 1.2 1 add n 2, 1.3 2 add n 2, 1.4 2 remove n 2",))
_COUNTER = {
    "one replica": partial(_planned, _require_sums, 1, [(_ALONE, [1, -1])]),
    "a partition": partial(_planned, _require_sums, 3, [(_UPS,), _DOWNS]),
    "searched": partial(_searched, _other_sum, _adders),
    "after many adds": partial(_much_later, _require_sums),
    "many runs of 3": partial(_many, _require_sums, 3),
    "many runs of 5": partial(_many, _require_sums, 5)}
_SET = {
    "one replica": partial(_planned, _require_items, 1, [(_ADDS,)]),
    "a partition": partial(_planned, _require_items, 3, _CHANGES),
    "restarts": _restarts,
    "searched": partial(_searched, _other_items, _removers),
    "after many removes": partial(_much_later, _require_items),
    "many runs of 3": partial(_many, _require_items, 3),
    "many runs of 5": partial(_many, _require_items, 5)}
_READ = {
    "nothing is stale": partial(_costs, (2, 3, 4, 5), False),
    "stale nodes": partial(_costs, (3, 4, 5), True),
    "stale nodes of 7": partial(_costs, (7,), True),
    "nodes cut off": _cut_off, "drops": _drops, "searched": _reads_searched}

HINTS = [
    Hint(lambda f: f["kind"] == "list", [
        "value() returns the items that are in the set, as a list of strings, each "
        "once. Which of your data is that made from?",
        "Add tea twice on one replica, by hand. Two adds have two dots, and one item: "
        "what makes it one in value()?"]),
    Hint(lambda f: f["alone"] and f["kind"] == "sum", [
        "One replica alone, and no message: a read is the sum of all adds. They may be "
        "negative, and add up.",
        "Do the adds of the verdict by hand with update and value. Does the second "
        "add replace the first? What happens to a minus sign?"]),
    Hint(lambda f: f["alone"], [
        "One replica alone, and no message. A remove ends the adds of its item that "
        "are there, all of them, and not the item for ever.",
        "Do the updates of the verdict by hand on one replica, and write down the dots "
        "after each. Which does remove take out? Does each add have a dot of its own?"]),
    Hint(lambda f: f["kind"] == "sum" and f["down"], [
        "While adds are positive it is right. The number of a replica can go down, so "
        "the greater of two numbers is not the newer one.",
        "Replica 0 has 5, then 3. Both states arrive, in either order. What could "
        "replica 0 keep beside, or instead of, its sum, so that it only ever grows?"]),
    Hint(lambda f: f["kind"] == "sum" and f["down"] is False and f["more"], [
        "Adds are counted more than once. Each replica sends its state again and "
        "again: merging what is already known must change nothing.",
        "Merge the same state twice by hand. Whose adds does each number in your state "
        "count? A merge should choose between two numbers of one replica, not add "
        "them."]),
    Hint(lambda f: f["kind"] == "sum", [
        "Adds that this replica knew of are missing, or counted twice. After a merge "
        "it knows what both knew; an older state must not replace a newer one.",
        "Replicas 0 and 1 both add, and then merge each other's state. Write down both "
        "states before and after. Then let the older state of replica 0 come last."]),
    Hint(lambda f: f["again"] is _other_sum, [
        "All messages have arrived, in another order, and one of them perhaps twice. "
        "Merging a state twice, or an older one late, must change nothing.",
        "Play the schedule with a pencil: after each message, the state of the replica "
        "that got it. At which message does it forget a newer number, or count one "
        "twice?"]),
    Hint(lambda f: f["restarted"] and f["kind"] == "lost", [
        "After the restart an add got a dot that had been used before it, so the "
        "others take it for one that was removed. Only self.state survives a crash.",
        "Which attribute of yours has the number of the last add? After a restart "
        "__init__ runs, and then merge(saved state). What is that attribute then?"]),
    Hint(lambda f: f["kind"] == "back", [
        "A removed item is there again. A state from before the remove still has its "
        "dot: is it new to this replica, or has this replica seen it already?",
        "Take the dot that comes back. It is in one state and not in the other. What "
        "does the version vector of the state that lacks it say about its number?"]),
    Hint(lambda f: f["kind"] == "lost", [
        "An add is missing that no remove had seen. A remove ends the adds that its "
        "replica knew of; a concurrent or a later add has another dot.",
        "Merge by hand the two states that hold and lack the item. A dot that only one "
        "has was removed only if the other's version vector covers it. Do you compare "
        "with the number of the right replica?"]),
    Hint(lambda f: f["again"], [
        "All messages have arrived, and the replicas differ, or have what was removed. "
        "Both replicas of a merge must end with the same, whoever merges first.",
        "Play the schedule with a pencil: after each message, dots and version vector "
        "of the replica that got it. Which dot is in one state only, and which of the "
        "two version vectors covers it?"]),
    Hint(lambda f: f["grows"], [
        "Updates that cancel out leave something behind in the state. What of them is "
        "needed to recognize an old state?",
        "Print self.state after ten adds and removes on one replica. A number per "
        "replica can stand for all its dots up to that number: which entries does it "
        "make superfluous?"]),
    Hint(lambda f: f["strange"], [
        "A read is answered with the value of the newest copy, None if there is none. "
        "What did you give to self.answer?",
        "A Copy has a version and a value. Print what you answer, on the run of the "
        "cell above."]),
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
        "older copy needs a repair, and only once.",
        "Each confirmation calls on_copy again. What do you send then to a node whose "
        "repair is under way? work.repaired has those."]),
    *kit.NODE_HINTS]
