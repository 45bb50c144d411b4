"""Exercise 02: a CP register, an AP store, and a cart that merges.

In a plan, "0.1 0 write x 1" is a call at 0.1 s at node 0; 1 stands for a drawn number.
"""

import random
from functools import partial

from distlab.agree import KeyValue, check_linearizable
from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check, last_reads, listed
from distlab.faults import Split
from distlab.network import Client, Delivery
from distlab.trace import Call

WITHOUT = kit.modules_of("distlab.agree.stores")
_LACKED = ("distlab.agree", *WITHOUT)  # which names the stores as well
_random = random.SystemRandom()


@check("a register: {}")
def never_wrong(make, case):
    """Check that clients see one copy; a majority answers, others refuse in time."""
    with kit.on_nodes(make, 6, without=_LACKED) as nodes:
        _REGISTER[case](nodes)


@check("a store: {}")
def always_answers(make, case):
    """Check that every call is answered at once, and nodes agree after a partition."""
    with kit.on_nodes(make, 5, without=_LACKED) as nodes:
        _STORE[case](nodes)


@check("a cart: {}")
def heals(make, case):
    """Check that an item is there if it was added, and no remove has seen that add."""
    with kit.on_nodes(make, 3, without=_LACKED) as nodes:
        _CART[case](nodes)


def _run(nodes, n, clients, **how):
    return nodes.simulate(n, clients, seed=_random.getrandbits(32), **how)


def _clients(plan):
    return kit.clients_of(plan, _random.sample(range(1, 10**6), 20))


def _split(at_s, until_s, n):
    order, size = _random.sample(range(n), n), _random.randrange((n + 1) // 2, n)
    return Split(at_s, order[:size], order[size:], until_s=until_s)


def _fail(run, found, **facts):
    raise Wrong(found, picture=kit.Played(run.trace, "The run that failed"), **facts)


def _one_by_one(nodes):
    run = _run(nodes, 3, _clients(_ONE_BY_ONE), twice=True)
    _require_outcomes(run, [("all nodes", True, run.history)])
    _require_one_copy(run, "3 nodes, one call after another")
    for one in run.history:
        if one.op == "write" and one.result is not None:
            found = f"{listed(run, [one])}, answered with {one.result!r}, not None"
            _fail(run, found, valued=True)


def _splits(plans, nodes):
    for n, *sides in plans:
        plan = ", ".join(_AROUND.format(k, 5 + k, 10 + k) for k in range(n))
        clients, how = _clients(plan), {"delivery": Delivery(duplicate=0.5)}
        run = _run(nodes, n, clients, faults=Split(0.2, *sides, until_s=1.2), **how)
        kit.require_loss(run)
        split, later = run.history.between(0.21, 1.2), run.history.between(1.2, 9)
        rows = [("all nodes after it", True, later)]
        for side in sides:
            some = [one for one in split if clients[one.client].node in side]
            rows.append((f"nodes {side}, partitioned", 2 * len(side) > n, some))
        _require_outcomes(run, rows[::-1])
        _require_one_copy(run, f"{n} nodes in a partition, and messages come twice")


def _require_outcomes(run, rows):
    """Raise unless calls on a majority's side are answered, others refused, in time."""
    table, wrong = f"{'':30}expected  answered  refused  unknown", []
    for name, majority, some in rows:
        wanted, word = ("ok", "answered") if majority else ("failed", "refused")
        outcomes = [one.outcome for one in some]
        counts = [outcomes.count(each) for each in ("ok", "failed", "unknown")]
        table += "\n{:30}{:8}  {:8}  {:7}  {:7}".format(name, word, *counts)
        late = [o for o in some if o.outcome != wanted or o.end - o.start > 0.5]
        wrong += [(one, majority) for one in late]
    for one, majority in wrong:
        _fail(run, f"{table}\n{listed(run, [one])}", majority=majority)


def _losses(nodes):
    for version, plan, *cuts in _IN_TURN:
        faults = [Split(at_s, *sides, until_s=end) for at_s, end, *sides in cuts]
        how = {"faults": faults, "delivery": Delivery((0.005, 0.005))}
        said = (f"{a:g} to {b:g} s, {one} from {other}" for a, b, one, other in cuts)
        head = f"3 nodes, partitioned: {'; '.join(said)}"
        _require_one_copy(_run(nodes, 3, _clients(plan), **how), head, version=version)
    for n in range(12):
        rough = Delivery((0.01, 0.04), loss=n % 2 / 20, duplicate=n % 2 / 4)
        run = _run(nodes, 3, _clients(_AT_ONCE), delivery=rough)
        _require_one_copy(run, "3 nodes, three writes at once", version=True)


def _searched(nodes):
    clients = _clients("0 0 write x 1, 0 1 read x, 0 2 read x")
    if found := nodes.search(3, clients, _linearizable, timers=0, within_s=0.5):
        _require_one_copy(found.outcome, f"A search found\n{kit.last_steps(found)}")


def _linearizable(run):
    return check_linearizable(run.history, KeyValue(), within_s=4)


def _require_one_copy(run, head, **facts):
    """Raise `Wrong` for a run that is not linearizable, with the counterexample."""
    verdict = _linearizable(run)
    if verdict.violated:
        smallest = run.history if verdict.smallest is None else verdict.smallest
        found = f"{head}\n{verdict.why}\nEnough for it:\n{listed(run, smallest)}"
        read = [one.result for one in run.history if one.result is not None]
        refused = [o for o in run.history if o.outcome == "failed" and o.value in read]
        found += f"\nRefused:\n{listed(run, refused)}" * bool(refused)
        _fail(run, found, one_copy=False, refused=refused, **facts)


def _answered(nodes, n, clients, **how):
    """Return a run in which every call was answered at once; else raise."""
    run = _run(nodes, n, clients, **how)
    for one in run.history:
        if one.outcome != "ok" or one.end - one.start > 1e-5:
            _fail(run, f"Not answered at once:\n{listed(run, [one])}", waits=True)
    return run


def _at_once(nodes):
    clients = _clients(_WRITES) + last_reads(3, "vx", 0.9)
    _answered(nodes, 3, clients, faults=_split(0.3, 1.2, 3), twice=True)


def _after(nodes):
    for n, sides in ((3, ([0, 1], [2])), (4, ([0, 1], [2, 3]))):
        plan = f"{_WRITES}, 0.9 {n - 1} write y 7"
        split = Split(0.3, *sides, until_s=1.2)
        _agree(nodes, n, plan, {"v": 9, "w": 4, "y": 7, "z": 2}, faults=split)
    how = {"faults": Split(0.3, [0], [1], until_s=_LATE_S), "end_s": _LATE_S + 2}
    _agree(nodes, 2, _APART, {}, delivery=Delivery((0.005, 0.005)), **how)


def _rough(n, nodes):
    faults = _split(0.2, 0.8, n), _split(1, 1.5, n)
    delivery = Delivery((0.001, 0.15), loss=0.3, duplicate=0.3)
    _agree(nodes, n, _WRITES, {}, faults=faults, delivery=delivery)


def _agree(nodes, n, plan, last, end_s=2.6, **how):
    """Raise unless all nodes finally read the same; last: key -> its winner's index."""
    values = _random.sample(range(1, 10**6), 12)
    clients = kit.clients_of(plan, values) + last_reads(n, "vwxyz", end_s + 3.1)
    run = _answered(nodes, n, clients, **how)
    again = any(event.start > end_s + 0.5 for event in kit.messages_between(run))
    for key in "vwxyz":
        writes = [o for o in run.history if (o.op, o.key) == ("write", key)]
        read = [o.result for o in run.history if (o.op, o.key) == ("read", key)]
        right = [values[last[key]]] if key in last else [o.value for o in writes]
        if len({*map(repr, read)}) > 1 or read[0] not in (right or [None]):
            found = f"{listed(run, writes)}\nMuch later the nodes read {key} → {read}; "
            _fail(run, f"{found}expected one of {right} at all.", again=again)
    kit.require_loss(run)


def _later(nodes):
    clients = _clients(_WRITES) + last_reads(3, "x", 10)
    run = _answered(nodes, 3, clients, delivery=Delivery(duplicate=0.1))
    sent = nodes.sent(run)
    old, new = [[b for e, b in sent if t <= e.start < t + 2] for t in (4, 8)]
    if sum(new) > 1.15 * sum(old) or len(new) > 300:
        described = [f"{sum(b):,} bytes in {len(b):,} messages" for b in (old, new)]
        found = "In two seconds long after the last write: {};\nfour seconds later: {}."
        expected = "\nExpected: no more bytes, and at most 300 messages."
        raise Wrong(found.format(*described) + expected, grows=True)


def _planned(n, end_s, plans, nodes):
    split = Split(0.5, [0, 1], [2], until_s=end_s) if n > 1 else ()
    for plan, *left in plans:
        how = {"end_s": end_s, "faults": split, "twice": n == 1}
        _heal(nodes, n, _clients(plan), lambda _, left=left: {*left}, **how)


def _unseen(items, reads):
    asked = [(items[one.client // 2], one.result) for one in reads if one.start < 4]
    return {item for item, cart in asked if item not in cart}


def _many(count, nodes):
    for _ in range(count):
        items, clients = [f"item{n}" for n in _random.sample(range(1000), 8)], []
        for item in items:
            calls = [Call("add", "cart", item)], [_LOOK, Call("remove", "cart", item)]
            for some, at_s in zip(calls, (0.1, 0.6), strict=True):
                at_s += _random.uniform(0, 0.7)
                clients.append(Client(_random.randrange(3), some, at_s))
        split, rough = _split(0.4, 1, 3), Delivery((0.001, 0.15), 0.1, 0.3)
        left = partial(_unseen, items)
        _heal(nodes, 3, clients, left, 1.3, faults=split, delivery=rough)


def _heal(nodes, n, clients, left, end_s, **how):
    """Compare the nodes' final reads with left(reads), the items that must be there."""
    last_s = end_s + 3.1
    run = _answered(nodes, n, [*clients, *last_reads(n, ["cart"], last_s)], **how)
    reads = [one for one in run.history if one.op == "read"]
    for one in reads:
        cart = one.result
        kinds = type(cart) in (list, tuple, set) and {*map(type, cart)} <= {str}
        if not kinds or len({*cart}) < len(cart):
            _fail(run, f"This is no cart:\n{listed(run, [one])}", no_list=True)
    expected = left(reads)
    for cart in ({*one.result} for one in reads if one.start >= last_s):
        for item in sorted(expected ^ cart, key=lambda item: item not in expected):
            about = listed(run, [one for one in run.history if one.value == item])
            found = f"{about}\nMuch later a node reads {sorted(cart)}; "
            facts = {"alone": n == 1, "back": item in cart, "lost": item in expected}
            if n > 1 and all(e.start < end_s for e in kit.messages_between(run)):
                facts["again"] = False
            _fail(run, f"{found}\nexpected {sorted(expected)}.", **facts)


# fmt: off
_LOOK = Call("read", "cart")  # the remove that follows has seen its result
_ONE_BY_ONE = "0 0 write x 1, 1 1 read x, 2 2 write x 2, 3 0 read x, 4 1 read y"
_AT_ONCE = ("0.1 0 write x 1, 0.1 0 write x 2, 0.1 0 write x 3, 0.6 0 read x, "
            "0.6 1 read x, 0.6 2 read x")
_AROUND = (  # a partition from 0.2 to 1.2, at each node
    "0 {0} write x {0}, 0.23 {0} write x {1}, 0.35 {0} read x, 0.5 {0} write x {2}, "
    "1.8 {0} read x")
_IN_TURN = (  # True if a version is missed; calls; (from, to, sides) of partitions
    (False, "0.1 0 write x 1, 0.32 1 read x, 0.62 2 read x, 0.9 0 read x",
     (0.111, 0.2, [0], [1, 2]), (0.3, 0.5, [0, 1], [2]), (0.6, 0.8, [1, 2], [0])),
    (True, "0.62 2 write x 2, 0.1 0 write x 1, 0.9 0 read x, 1.2 1 read x",
     (0.05, 0.5, [0, 1], [2]), (0.6, 0.8, [1, 2], [0])))
_WRITES = (  # a later call may have a lower number
    "2.6 0 write v 9, 1.9 2 write v 10, 0.8 1 write z 2, 0.7 2 write w 4, "
    "0.6 2 write w 3, 0.5 0 write x 5, 0.5 2 write x 6, 0.1 0 write z 1, "
    "0.1 2 write v 8")
_APART = "0.1 0 write v 8, 0.5 0 write x 5, 0.5 1 write x 6"
_LATE_S = 30  # whoever sends again only a few times has stopped by then
_ALONE = ((  # calls, and the items left
    "0 0 add cart tea, 1 0 remove cart tea, 2 0 add cart tea, 0 0 add cart milk, "
    "1 0 add cart milk, 1.5 0 read cart, 2 0 remove cart milk, 3 0 remove cart jam",
    "tea"),)
_PARTED = (  # in the partition node 2 is cut off, from 0.5 on
    ("0.1 0 add cart milk, 0.2 0 add cart tea, 0.8 1 remove cart milk, "
     "0.8 1 add cart egg, 0.9 1 add cart tea, 0.8 2 add cart jam, 0.9 2 add cart egg",
     "tea", "egg", "jam"),
    ("0.1 0 add cart milk, 0.8 1 remove cart milk, 0.8 2 add cart milk, "
     "0.1 1 add cart tea, 0.8 1 remove cart tea, 0.9 1 add cart tea, "
     "0.8 2 remove cart tea", "milk", "tea"))
_REGISTER = {
    "nothing is broken": _one_by_one, "drops": _losses, "searched": _searched,
    "partitions of three": partial(_splits, ((3, [0, 1], [2]), (3, [1, 2], [0]))),
    "partitions of six": partial(_splits, ((6, [0, 2, 4], [1, 3, 5]),)),
    "partitions of more": partial(
        _splits, ((5, [0, 2, 4], [1, 3]), (4, [0, 1], [2, 3])))}
_STORE = {"at once": _at_once, "after a partition": _after, "drops": partial(_rough, 3),
          "drops of more": partial(_rough, 5), "much later": _later}
_CART = {"one node": partial(_planned, 1, 1.3, _ALONE), "two runs": partial(_many, 2),
         "many runs": partial(_many, 3),
         "a partition": partial(_planned, 3, 10, _PARTED)}

HINTS = [
    Hint(lambda f: not f["majority"], [
        "This side has no majority of the nodes, so all that begins here is refused in "
        "time. Two answers of one node are one node. How many are enough?",
        "Look at the line that counts. work.answers has a duplicated reply twice, so "
        "count different nodes. Then look at on_silence: in which phase, and for "
        "which op, is a refusal always true?"]),
    Hint(lambda f: f["majority"], [
        "A majority of the nodes was there, and the call was refused, or nothing came. "
        "How many are a majority, of three, of four? The node that was asked is one.",
        "Work out your threshold for 3, 4 and 5 nodes: it must be 2, 3 and 3. Then "
        "see whether phase 2 counts its own replies; work.answers is empty when it "
        "begins."]),
    Hint(lambda f: f["refused"], [
        "A client was told that its write was not done, and then a client read it. "
        "What was sent to be kept may have been kept, though no node said so.",
        "Look at on_silence for a write with work.kept set. A node may hold that "
        "copy already, so 'nothing was done' could be false. What does the client "
        "hear if you yield nothing?"]),
    Hint(lambda f: f["version"], [
        "Two writes are mixed up. A write's version is above all that were heard of, "
        "and no other write may have the same. A read takes the newest copy.",
        "Look at the line that makes the new version. Its first part depends on all "
        "copies heard, not on the coordinator's own; its second part must differ for "
        "two writes that heard the same copies."]),
    Hint(lambda f: f["valued"], [
        "A write has no value to tell: it is answered with None, and a read with what "
        "is there. Which of the two is this call?",
        "Look at each self.answer(request, result) of yours: which of them can be "
        "reached by a write, and with which result?"]),
    Hint(lambda f: not f["one_copy"], [
        "An answer was given too early. Before a read answers, a majority has to have "
        "what it is about to tell; so it is with a write.",
        "In the player, find the first read that returned the new value. How many "
        "nodes held that value when it was answered? Phase 2 is there for reads, "
        "too."]),
    Hint(lambda f: f["waits"], [
        "A call was refused, or answered after others were heard. An isolated node "
        "hears from no other. Answer in on_client, from what is here.",
        "Go through on_client: does every branch yield a Reply, for a write, for a "
        "read, and for a key that was never written? A Reply in on_message comes too "
        "late."]),
    Hint(lambda f: not f["again"], [
        "After the partition no node sends. What was sent during it was dropped, so it "
        "has to be said again, now and then, on a timer that is set again.",
        "Look at on_timer: a timer runs out once, so which line sets it again? Then "
        "see what it sends: if only news is sent, what was dropped never comes."]),
    Hint(lambda f: f["again"], [
        "The nodes differ, or an old value has won. A write's version is above that of "
        "what it replaces. Can different writes have versions that are equal?",
        "Copies A and B have one version, and reach node 0 as A, B and node 1 as B, A. "
        "Which does each node keep? What differs between A and B for sure?"]),
    Hint(lambda f: f["grows"], [
        "Nothing new is written, and what the nodes tell each other grows, or never "
        "pauses. Send what a node has now, not all that it has heard, on a timer.",
        "Compare the two numbers of the verdict. If messages increase, look for a "
        "Send in on_message. If bytes increase, look for something in your message "
        "that is appended to and never replaced."]),
    Hint(lambda f: f["no_list"] or f["alone"], [
        "A read answers with the list of the items, each once. A remove ends the adds "
        "of its item that it has seen, all of them, and not the item for ever.",
        "Do the calls of the verdict by hand on one node, and write down the tags "
        "after each. Which tags does remove name? Does the next add of the item make "
        "a new tag?"]),
    Hint(lambda f: f["back"], [
        "What was removed after it was seen came back. Another node still had it, and "
        "told the rest. They need to know that it was removed.",
        "In the player, find the message that brings the item back. A node that "
        "deletes a tag cannot tell 'removed' from 'never seen'. What else has to be "
        "in that message?"]),
    Hint(lambda f: f["lost"], [
        "What one side added is lost. Put together what both did: no two adds have the "
        "same tag, and a remove ends only adds that it has seen.",
        "Look at on_message: does it replace what the node had, or unite the two? "
        "Then look at the tag: which argument of on_client differs in all calls, on "
        "all nodes?"]), *kit.NODE_HINTS]
