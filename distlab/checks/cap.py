"""Exercise 02: a register that refuses, a store that answers, a cart that heals.

In a plan, "0.1 0 write x 1" is a call at 0.1 s at node 0; 1 stands for a number that is
drawn anew in each run, so that no node can know it.
"""

import random
from dataclasses import replace
from functools import partial
from itertools import pairwise

from distlab.agree import KeyValue, check_linearizable, workload
from distlab.checks import kit
from distlab.checks.kit import Hint, Inconclusive, Wrong, check, last_reads, listed
from distlab.faults import Split
from distlab.network import Client, Delivery
from distlab.trace import Call

WITHOUT = kit.modules_of("distlab.agree.stores")
_SEARCH_S, _LEAST = (0.25, 2.5, 15), 5  # schedules; a busy machine gets longer
_MOST_MESSAGES = 3 * 2 * 3 * 25  # nodes, peers, seconds, times a second
_random = random.SystemRandom()


@check("a register: {}")
def never_wrong(make, case):
    """Clients see a single copy; a majority answers every call, others refuse, soon."""
    with kit.on_nodes(make, 5, without=("distlab.agree", *WITHOUT)) as nodes:
        _REGISTER[case](nodes)


@check("a store: {}")
def always_answers(make, case):
    """Every call is answered at once, and all nodes agree some time after a split."""
    with kit.on_nodes(make, 5, without=("distlab.agree", *WITHOUT)) as nodes:
        _STORE[case](nodes)


@check("a cart: {}")
def heals(make, case):
    """An item is there if it was added, and no remove has seen that add."""
    with kit.on_nodes(make, 3, without=("distlab.agree", *WITHOUT)) as nodes:
        _CART[case](nodes)


def _run(nodes, n, clients, **how):
    return nodes.simulate(n, clients, seed=_random.getrandbits(32), **how)


def _clients(plan, **how):
    return kit.clients_of(plan, _drawn(20), **how)


def _drawn(count):
    return _random.sample(range(1, 10**6), count)


def _sides(n):
    """Draw the sides of a split, the first one the larger if n is 3."""
    order = _random.sample(range(n), n)
    size = _random.randrange((n + 1) // 2, n)
    return order[:size], order[size:]


def _fail(run, found, **facts):
    raise Wrong(found, picture=kit.Played(run.trace, "The run that failed"), **facts)


# ---- step 1: a register that refuses -------------------------------------------------


def _one_by_one(nodes):
    run = _run(nodes, 3, _clients(_ONE_BY_ONE), twice=True)
    for one in run.history:
        if one.outcome != "ok":
            _fail(run, listed(run, run.history), outcome=one.outcome, majority=True)
    _judge(run, "3 nodes, one call after another")


def _splits(plans, nodes):
    for number, (n, *sides) in enumerate([*plans, plans[0]]):
        doubled = number >= len(plans)  # what is wrong only now is for that reason
        pairs = [(Call("write", "x", v), Call("read", "x")) for v in _drawn(3 * n)]
        calls = [sum(pairs[node::n], ()) for node in range(n)]
        clients = [Client(k, each[:1], 0.01 * k) for k, each in enumerate(calls)]
        clients += [Client(k, c, 0.23, 0.08, 0.6) for k, c in enumerate(calls)]
        clients += last_reads(n, "x", 1.8)
        how = {"delivery": Delivery(duplicate=doubled / 2)}
        run = _run(nodes, n, clients, faults=Split(0.2, *sides, until_s=1.2), **how)
        head = f"{n} nodes{', messages come twice' * doubled}"
        _judge_sides(run, n, sides, head, doubled=doubled or None)
        _judge(run, head)


def _judge_sides(run, n, sides, head, **facts):
    """Raise if a majority has not answered all in a split, or others not refused."""
    kit.require_loss(run)
    head += "\n  during the split   answered   refused   never answered"
    asked = run.history.between(0.22, 0.6)
    during = [[one for one in asked if one.client % n in side] for side in sides]
    for side, some in zip(sides, during, strict=True):
        outcomes = [one.outcome for one in some]
        counts = [outcomes.count(each) for each in ("ok", "failed", "unknown")]
        name = "nodes " + " ".join(map(str, side))
        head += "\n  {:17}  {:8}   {:7}   {:14}".format(name, *counts)
    for side, some in zip(sides, during, strict=True):
        majority = 2 * len(side) > n
        for one in some:
            slow = one.end is not None and one.end - one.start > 0.5
            if slow or one.outcome != ("ok" if majority else "failed"):
                facts |= {"outcome": one.outcome, "slow": slow or None}
                _fail(run, f"{head}\n{listed(run, [one])}", majority=majority, **facts)
    late = [one for one in run.history if one.start >= 1.8 and one.outcome != "ok"]
    if late:
        _fail(run, f"{head}\nAfter the split:\n{listed(run, late)}", slow=True)


def _losses(nodes):
    for kind, plan, *cuts in _IN_TURN:
        faults = [Split(at_s, *sides, until_s=end) for at_s, end, *sides in cuts]
        how = {"faults": faults, "delivery": Delivery((0.005, 0.005))}
        words = [f"{a:g} to {b:g} s: {s} | {t}" for a, b, s, t in cuts]
        head = "3 nodes, split from " + ", ".join(words)
        _judge(_run(nodes, 3, _clients(plan, timeout_s=0.15), **how), head, kind=kind)
    for _ in range(10):
        run = _run(nodes, 3, _clients(_AT_ONCE), delivery=Delivery((0.01, 0.04)))
        _judge(run, "3 nodes, three writes at once through node 0", kind="version")
    for n in (3, 3, 5):
        at_s, seed = _random.uniform(0, 0.2), _random.getrandbits(32)
        made = workload(n, 2 * n, operations=3, keys=1, seed=seed)
        clients = [replace(one, pause_s=_random.uniform(0, 0.03)) for one in made]
        split = Split(at_s, *_sides(n), until_s=at_s + 0.3)
        delivery = Delivery((0.001, 0.04), loss=0.08, duplicate=0.25)
        run = _run(nodes, n, clients, faults=split, delivery=delivery)
        _judge(run, f"{n} nodes, messages lost, doubled and late")


def _searched(nodes):
    for plan, faults in _SEARCHED:
        for within_s in _SEARCH_S:
            how = {"timers": 0, **faults, "within_s": within_s}
            found = nodes.search(3, _clients(plan), _linearizable, **how)
            if found or found.explored.schedules >= _LEAST:
                break
        if found:
            _judge(found.outcome, f"A search found this schedule:\n{found.schedule!r}")
        if found.explored.schedules < _LEAST:
            raise Inconclusive(f"{found} The machine is busy: run this cell again.")


def _verdict(run):
    return check_linearizable(run.history, KeyValue(), within_s=4)


def _linearizable(run):
    return not (verdict := _verdict(run)).violated or verdict


def _judge(run, head, **facts):
    """Raise what is wrong with a run that no single copy could have given."""
    ok = [one for one in run.history if one.outcome == "ok"]
    if not ok:
        found = f"{head}: nothing was answered.\n{listed(run, run.history)}"
        _fail(run, found, outcome="unknown")
    verdict = _verdict(run)
    if verdict.inconclusive and "too short" in verdict.why:
        raise Inconclusive(f"{head}: {verdict.why}")
    if verdict.violated:
        smallest = run.history if verdict.smallest is None else verdict.smallest
        found = f"{head}\n{verdict.why}\nEnough for it:\n{listed(run, smallest)}"
        read = [one.result for one in ok if one.op == "read"]
        refused = [o for o in run.history if o.outcome == "failed" and o.value in read]
        if refused := [one for one in refused if one.op == "write"]:
            found += f"\nRefused:\n{listed(run, refused)}"
        _fail(run, found, not_one_copy=True, refused=refused or None, **facts)


# ---- step 2: a store that answers ----------------------------------------------------


def _answered(nodes, n, clients, **how):
    """Return a run in which every call was answered at once; else raise."""
    run = _run(nodes, n, clients, **how)
    for one in run.history:
        if one.outcome != "ok" or one.end - one.start > 1e-5:
            _fail(run, f"Not answered at once:\n{listed(run, [one])}", waits=True)
    return run


def _at_once(nodes):
    split = Split(0.3, [0, 1], [2], until_s=0.8)
    _answered(nodes, 3, _clients(_TURNS), faults=split, twice=True)


def _after(nodes):
    for n, sides in ((3, ([0, 1], [2])), (4, ([0, 1], [2, 3]))):
        plan = f"{_WRITES}, 0.9 {n - 1} write y 7"
        split = Split(0.3, *sides, until_s=1.2)
        _agree(nodes, n, plan, {"v": 9, "w": 4, "y": 7, "z": 2}, faults=split)


def _rough(nodes):
    for _ in range(2):
        cuts = (0.2, 0.8), (1, 1.5)
        faults = [Split(at_s, *_sides(5), until_s=end) for at_s, end in cuts]
        plan = [f"{_random.uniform(0, 1.5)} {_random.randrange(5)}" for _ in range(12)]
        plan = [f"{p} write {_random.choice('xy')} {v}" for v, p in enumerate(plan)]
        delivery = Delivery((0.001, 0.15), loss=0.3, duplicate=0.3)
        _agree(nodes, 5, ", ".join(plan), {}, faults=faults, delivery=delivery)


def _agree(nodes, n, plan, last, **how):
    """Write, wait, and see whether all nodes read the same; last: what has to win."""
    values = _drawn(12)
    clients = kit.clients_of(plan, values) + last_reads(n, "vwxyz", 5.7)
    run = _answered(nodes, n, clients, **how)
    again = any(event.start > 3.1 for event in kit.messages_between(run))
    for key in "vwxyz":
        writes = [o for o in run.history if (o.op, o.key) == ("write", key)]
        read = [o.result for o in run.history if (o.op, o.key) == ("read", key)]
        right = [values[last[key]]] if key in last else [o.value for o in writes]
        if len({*map(repr, read)}) > 1 or read[0] not in (right or [None]):
            found = f"{listed(run, writes)}\nMuch later the nodes read {key} → {read}."
            facts = {"old": key in last or None, "ties": bool(last) or None}
            _fail(run, found, silent=not again or None, **facts, differ=True)
    kit.require_loss(run)


def _later(nodes):
    clients = _clients(_TURNS) + last_reads(3, "xy", 13)
    run = _answered(nodes, 3, clients, delivery=Delivery(duplicate=0.1))
    whens = [event.start for event in kit.messages_between(run)]
    sent = [*zip(whens, nodes.sizes, strict=True)]
    windows = [[b for s, b in sent if t <= s < t + 3] for t in (4, 7, 10)]
    grows = all(sum(new) > 1.15 * sum(old) for old, new in pairwise(windows))
    if grows or len(windows[-1]) > _MOST_MESSAGES:
        told = [f"{sum(each):,} bytes in {len(each):,} messages" for each in windows]
        found = "Between nodes in three seconds each, long after the last write:\n  "
        raise Wrong(found + "\n  ".join(told), grows=True)


# ---- step 3: a cart that heals -------------------------------------------------------


def _planned(n, plans, nodes):
    split = Split(0.5, [0, 1], [2], until_s=1.2) if n > 1 else ()
    for plan, needed, gone in plans:
        wanted = {*needed.split()}, {*gone.split()}
        how = {"faults": split, "twice": n == 1}
        _heal(nodes, n, plan, lambda _, wanted=wanted: wanted, **how)


def _many(nodes):
    for _ in range(5):
        plan = []
        for number in range(12):
            at = f"{_random.uniform(0, 1.4)} {number % 3}"
            item = "cart " + _random.choice(("tea", "milk", "jam"))
            plan.append(f"{at} {_random.choice(('add', 'add', 'remove'))} {item}")
        at_s = _random.uniform(0, 0.6)
        split = Split(at_s, *_sides(3), until_s=at_s + _random.uniform(0.2, 0.8))
        delivery = Delivery((0.001, 0.15), loss=0.1, duplicate=0.3)
        _heal(nodes, 3, ", ".join(plan), _wanted, faults=split, delivery=delivery)


def _heal(nodes, n, plan, wanted, **how):
    """Compare what all nodes read in the end with what has to be there, and must not.

    wanted: run -> (items that are needed, items that are gone).
    """
    clients = _clients(plan) + last_reads(n, ["cart"], 4.5)
    run = _answered(nodes, n, clients, **how)
    needed, gone = wanted(run)
    calls = [one for one in run.history if one.op != "read"]
    read = [one.result for one in run.history if one.op == "read"]
    found = f"{listed(run, calls)}\nMuch later the nodes read "
    found += f"{', '.join(map(str, read))}."
    for cart in read:
        kinds = type(cart) in (list, tuple, set) and {*map(type, cart)} <= {str}
        if not kinds or len({*cart}) < len(cart):
            _fail(run, found, no_list=True)
    ended = {one.value for one in calls if one.op == "remove"}
    differ = any({*cart} != {*read[0]} for cart in read)
    one_node = n == 1 and any(item in ended for item in needed | gone)
    for item in sorted(needed - set.intersection(*map(set, read))):
        facts = {"lost": item not in ended, "ended": not differ, "differ": differ}
        _fail(run, f"{found}\n{item} should be there.", one_node=one_node, **facts)
    for item in sorted(gone & set.union(*map(set, read))):
        _fail(
            run, f"{found}\n{item} should not be there.", one_node=one_node, back=True
        )
    if differ:
        _fail(run, found, one_node=False, lost=False, ended=False, differ=True)


def _wanted(run):
    """Return what has to be in a cart, and what must not be, by the definition.

    A remove can have seen the adds that had reached its node by whichever messages,
    which the trace knows. It has seen for sure those that were made at its node.
    """
    known, sent, adds, seen, ended = [set(), set(), set()], {}, set(), set(), set()
    calls = {(one.client, one.start): one for one in run.history}
    for event in run.trace.events:
        at, peer = event.rank, event.peer
        if at >= 3 or peer is None:
            continue
        if event.kind == "send":
            sent[event.step] = {*known[at]}
        elif peer < 3:
            known[at] |= sent[event.step]
        else:
            one = calls[peer - 3, event.start]
            new = {(one.value, at, event.step)} if one.op == "add" else set()
            known[at] |= new
            adds |= new
            if one.op == "remove":
                some = {add for add in known[at] if add[0] == one.value}
                seen |= some
                ended |= {add for add in some if add[1] == at}
    left = {item for item, *_ in adds - ended}
    return {item for item, *_ in adds - seen}, {item for item, *_ in adds} - left


# ---- plans ---------------------------------------------------------------------------

# fmt: off
_ONE_BY_ONE = (
    "0 0 write x 1, 0.8 1 read x, 1.6 2 read x, 2.4 2 write x 2, 3.2 0 read x, "
    "4 1 write x 3, 4.8 2 read x, 5.6 1 read y")
_AT_ONCE = (
    "0.1 0 write x 1, 0.1 0 write x 2, 0.1 0 write x 3, "
    "0.6 0 read x, 0.6 1 read x, 0.6 2 read x")
_IN_TURN = (  # what is missed; calls; (from, to, sides) of each split
    ("early", "0.1 0 write x 1, 0.2 1 read x, 0.7 0 read x, 0.9 1 read x",
     (0.111, 0.6, [0], [1, 2])),
    ("write-back", "0.1 0 write x 1, 0.32 1 read x, 0.62 2 read x, 0.9 0 read x",
     (0.111, 0.2, [0], [1, 2]), (0.3, 0.5, [0, 1], [2]), (0.6, 0.8, [1, 2], [0])),
    ("version", "0.62 2 write x 2, 0.1 0 write x 1, 0.9 0 read x, 1.2 1 read x",
     (0.05, 0.5, [0, 1], [2]), (0.6, 0.8, [1, 2], [0])))
_SEARCHED = (
    ("0 0 write x 1, 0 1 read x, 0 2 read x", {}),
    ("0 0 write x 1, 0 0 write x 2, 0 1 read x, 0 2 read x", {}),
    ("0 0 write x 1, 0 1 read x, 0 1 read x", {"splits": [([0], [1, 2])], "timers": 2}))
_THREE = (3, [0, 1], [2]), (3, [0, 2], [1]), (3, [1, 2], [0])
_MORE = (5, [0, 2, 4], [1, 3]), (4, [0, 1, 2], [3]), (4, [0, 1], [2, 3])
_TURNS = ", ".join(
    f"0.0{n} {n} read x, 0.1{n} {n} write x {n}, 0.2{n} {n} read x, "
    f"0.4{n} {n} write y {n + 3}, 0.5{n} {n} read y, 0.6{n} {n} write x {n + 6}"
    for n in range(3))
_WRITES = (
    "0.1 0 write z 1, 0.1 2 write v 8, 0.8 1 write z 2, 0.6 2 write w 3, "
    "0.7 2 write w 4, 0.5 0 write x 5, 0.5 2 write x 6, 1.9 2 write v 10, "
    "2.6 0 write v 9")
_ALONE = (  # calls; needed; gone
    ("0 0 add cart tea, 1 0 add cart milk", "tea milk", ""),
    ("0 0 add cart tea, 1 0 remove cart tea, 2 0 add cart tea", "tea", ""),
    ("0 0 add cart tea, 1 0 add cart tea, 2 0 add cart milk, 3 0 remove cart tea, "
     "4 0 remove cart jam", "milk", "tea"))
_PARTED = (  # in the split node 2 is cut off, from 0.5 to 1.2
    ("0.8 1 add cart tea, 0.9 1 add cart egg, 0.8 2 add cart jam, 0.9 2 add cart salt, "
     "1 2 add cart rice", "tea egg jam salt rice", ""),
    ("0.1 0 add cart milk, 0.2 0 add cart tea, 0.8 1 remove cart milk, "
     "0.8 2 add cart salt", "tea salt", "milk"),
    ("0.1 0 add cart milk, 0.8 1 remove cart milk, 0.8 2 add cart milk", "milk", ""),
    ("0.1 0 add cart milk, 0.8 1 remove cart milk, 0.9 1 add cart milk, "
     "0.8 2 remove cart milk", "milk", ""),
    ("0.1 0 add cart milk, 0.8 1 add cart milk, 0.9 1 remove cart milk, "
     "0.8 2 remove cart milk", "", "milk"))
_REGISTER = {
    "nothing is broken": _one_by_one,
    "losses": _losses,
    "searched": _searched,
    "splits of three": partial(_splits, _THREE),
    "splits of more": partial(_splits, _MORE),
}
_STORE = {
    "at once": _at_once,
    "after a split": _after,
    "losses": _rough,
    "much later": _later,
}
_CART = {
    "one node": partial(_planned, 1, _ALONE),
    "a split": partial(_planned, 3, _PARTED),
    "many runs": _many,
}

HINTS = [
    Hint(lambda f: f["doubled"] and f["outcome"] != "failed", [
        "A message may arrive twice. Two answers of one node are one node: count who "
        "has answered, not how many answers there are.",
        "In the player look for two messages from the same node to the one that was "
        "asked. How many pairs is that in the answers, and how many nodes have "
        "spoken?"]),
    Hint(lambda f: f["outcome"] == "unknown" or f["slow"], [
        "A client waits, and nothing comes. If not enough nodes answer, the call ends "
        "in on_silence: what can you say of a call of which nothing was sent to keep?",
        "Node 2 is alone and is asked to read. When the time is over, has anything "
        "been sent that others may have kept? What may it then promise, and why not "
        "the same in the second phase of a write?"]),
    Hint(lambda f: f["majority"], [
        "A majority of the nodes was there, and the call was refused. How many are a "
        "majority? The node that was asked is one of them.",
        "Of three nodes two are a majority; of four, three; of five, three. Work out "
        "what your condition demands in these three cases."]),
    Hint(lambda f: f["outcome"], [
        "This side has no majority of the nodes, and answered. On the other side "
        "another client may be answered at the same time. How many are enough, of "
        "three, of four, of five?",
        "Four nodes are split two and two. If two answers were enough, both sides "
        "could take a write of one key at once. What would a read on either side "
        "return?"]),
    Hint(lambda f: f["refused"], [
        "A client was told that its write was not done, and then a client read it. "
        "What was sent to be kept may have been kept, though no node said so: nothing "
        "true can be said of it.",
        "A node asks the others to keep a copy, and hears nothing before the time is "
        "over. Perhaps none got the message; perhaps all did, and their answers were "
        "lost. Can the node tell these two apart?"]),
    Hint(lambda f: f["kind"] == "early", [
        "A call was answered before a majority had kept its copy. That they were asked "
        "is not enough: wait until so many have said that they have it.",
        "A write has two phases, and in both nodes answer. In which of them was the "
        "client told, and what had the other nodes done by then?"]),
    Hint(lambda f: f["kind"] == "version", [
        "Two writes are mixed up here. A write's version is above all that were heard "
        "of, and no other write may have the same, also if two clients write through "
        "one node at once. A read takes the newest copy, which may not be the first to "
        "arrive.",
        "Two clients write through node 0 at once. Both hear of version 3. If both "
        "make version 4, do all nodes say the same? What differs between the two for "
        "sure?"]),
    Hint(lambda f: f["not_one_copy"], [
        "A read returned the new value, and a later one the old one: the write had "
        "reached only one of the nodes that the first had asked. Before a read "
        "answers, a majority has to have what it is about to tell.",
        "Find the two reads in the listing. Which nodes had the new copy when the "
        "first answered, and which nodes did the second one hear?"]),
    Hint(lambda f: f["waits"], [
        "A call was not answered, refused, or answered after others were heard. "
        "Whoever is cut off hears nobody. Answer in on_client, from what is here.",
        "In the player follow the call that is named: which message goes out before "
        "the answer does, and to whom? In a split that message may get no answer."]),
    Hint(lambda f: f["silent"], [
        "After the split nobody says anything. What was sent during it is lost, so it "
        "has to be said again, now and then, on a timer that is set again.",
        "Look at the right end of the player. Which messages travel there? A timer "
        "runs out once: after its first round of gossip, who sets it again?"]),
    Hint(lambda f: f["old"], [
        "An old value has won over one that was written where it was known. A write's "
        "version is above that of what it replaces, and what is sent again does not "
        "replace what is newer.",
        "In the listing look at the node where the newer value was written: what "
        "version had the copy under this key there, and what version did the new one "
        "get?"]),
    Hint(lambda f: f["ties"], [
        "Two sides wrote once each, and their writes have versions that are equal. "
        "Every node has to decide alike between the two: what differs for sure?",
        "Each side had seen the same before the split, so both count one further. "
        "Which copy does a node keep, and does another node keep the same?"]),
    Hint(lambda f: f["grows"], [
        "Nothing new is written, and what the nodes tell each other grows, or never "
        "pauses. Send what a node has now, not all that it has heard, and only on a "
        "timer.",
        "Print what one node sends in two rounds of gossip. Which part of it is longer "
        "the second time? And does hearing make a node tell?"]),
    Hint(lambda f: f["no_list"], [
        "A read answers with the list of the items in the cart, each once, in any "
        "order."]),
    Hint(lambda f: f["one_node"], [
        "What was removed is there, or what was added again is not. A remove ends the "
        "adds of its item that it has seen, all of them, and not the item for ever.",
        "add milk, remove milk, add milk. Give each add a tag of its own, and write "
        "down after each call which tags are there and which are removed."]),
    Hint(lambda f: f["back"], [
        "What was removed after it was seen came back. Another node still had it, and "
        "told the rest. They need to know that it was removed.",
        "Node 0 has forgotten milk, and node 2 still has it. From their messages "
        "alone, was milk added at node 2, or removed at node 0? What would node 0 have "
        "to say?"]),
    Hint(lambda f: f["lost"], [
        "What one side added is lost. What one side did has to be put together with "
        "what the other did, and no two adds, on any two nodes, may have the same tag.",
        "When a message arrives, what happens to what this node had before? If it is "
        "replaced, the side that speaks last wins, and the other side's items go."]),
    Hint(lambda f: f["ended"], [
        "An item was removed on one node and added on another, and neither knew of the "
        "other. The add wins: a remove ends only the adds that it has seen.",
        "Milk was added with tag a. One side removes milk, which it knows as a. The "
        "other adds milk with tag b. Which tags are there, and which are removed?"]),
    Hint(lambda f: f["differ"], [
        "The nodes differ for ever. Whatever arrives, in whichever order and however "
        "often, the same has to come of it; and what was lost has to be said again.",
        "Copies A and B reach node 0 as A, B and node 1 as B, A. What must be in a "
        "copy so that both come to the same?"]),
    *kit.NODE_HINTS,
]
