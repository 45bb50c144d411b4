"""From a run that no single copy could have given to what its nodes did wrong.

Only the trace is looked at: who was heard by the node of a call, between the call and
its answer, and after it had last asked all.
"""

from collections.abc import Iterable

from distlab.network import Outcome
from distlab.trace import Operation

__all__ = ["HINTS", "kind_of_wrong"]


def kind_of_wrong(run: Outcome, nodes: int, smallest: Iterable[Operation]) -> str:
    """Return the key of the hint for a run; `smallest`: what contradicts itself."""
    smallest = list(smallest)
    refused = [o.value for o in run.history if (o.op, o.outcome) == ("write", "failed")]
    written = [o.value for o in run.history if o.op == "write"]
    results = [o.result for o in smallest if o.op == "read" and o.outcome == "ok"]
    if any(result in refused for result in results):
        return "refused"
    if any(result is not None and result not in written for result in results):
        return "no value"
    calls = [_Heard(run, nodes, one) for one in smallest if one.outcome == "ok"]
    majority = nodes // 2 + 1
    for call in calls:
        if len(call.senders) < majority:
            return "twice" if len(call.received) + 1 >= majority else "few"
    if any(len(c.kept) < majority for c in calls if c.one.op == "write"):
        return "early"
    if any(c.one.op == "read" and not c.asked_again for c in calls):
        back = results[:1] != [None] and len({repr(r) for r in results}) > 1
        return "write-back" if back else "newest"
    return "version" if len(written) > 1 else "newest"


class _Heard:
    """Whom the node of a call had heard when it answered.

    received: the senders, one for each message. senders: of them and the node itself.
    kept: the same, after it last asked all. asked_again: whether it asked all twice.
    """

    def __init__(self, run, nodes, one):
        self.one = one
        client = nodes + one.client
        events = run.trace.events
        begun = _place(events, "recv", client, one.start)
        node = events[begun].rank if begun is not None else 0
        ended = _place(events, "send", client, one.end)
        between = [
            event
            for event in events[begun or 0 : ended]
            if event.rank == node and event.peer is not None and event.peer < nodes
        ]
        between = [event for event in between if event.peer != node]
        number = str(_request(run, one))
        its = [e for e in between if number == _second_word(e.label)]
        between = its or between
        self.received = [e.peer for e in between if e.kind == "recv"]
        self.senders = {node, *self.received}
        last, rounds = 0, 0
        for at in range(len(between)):
            group = between[at : at + nodes - 1]
            if len({e.peer for e in group if e.kind == "send"}) == nodes - 1:
                last, rounds = at, rounds + 1
        self.asked_again = rounds > 1
        self.kept = {node, *(e.peer for e in between[last:] if e.kind == "recv")}


def _second_word(label):
    return "".join(label.removeprefix("dropped: ").split(" ")[1:2])


def _request(run, one):
    """Return the number of a call, as whoever runs the nodes has counted."""
    before = [o for o in run.history if o.client == one.client and o.start < one.start]
    return 1 + one.client + run.trace.clients * len(before)


def _place(events, kind, client, when):
    """Return where a client's call arrived, or its answer left."""
    for place, event in enumerate(events):
        if (event.kind, event.peer, event.start) == (kind, client, when):
            return place
    return None


HINTS = {
    "never": "Somebody waits, and nothing comes. If not enough nodes answer, the call "
    "ends in on_silence: what can you say of a call of which nothing was sent to keep?",
    "refuses": "All nodes run and all messages arrive, so nothing is to be refused. "
    "How many answers do you wait for, and what comes after them?",
    "strict": "This side has a majority of the nodes, and refused. How many are a "
    "majority? The node that was asked is one of them.",
    "minority": "This side has no majority of the nodes, and answered. On the other "
    "side somebody else may be answered at the same time. How many are enough, of "
    "three, of four, of five?",
    "slow": "Somebody waited for more than half a second. When the timer runs out, say "
    "so.",
    "after": "The split is over, and calls are still not answered. What is left from "
    "before?",
    "refused": "A client was told that its write was not done, and then somebody read "
    "it. What was sent to be kept may have been kept, though nobody said so: there is "
    "nothing true that you can say of it.",
    "no value": "A read returned what nobody has written. The answer to a read is the "
    "value alone.",
    "twice": "A message may arrive twice. Two answers of one node are one node: count "
    "who has answered, not how many answers there are.",
    "few": "A call was answered before a majority of the nodes was heard. Two "
    "majorities have a node in common, and that is how a read meets the last write.",
    "early": "A write was answered before a majority had kept it. That they were asked "
    "is not enough: wait until so many have said that they have it.",
    "write-back": "A read returned the new value, and a later one the old one: the "
    "write had reached only one of the nodes that the first had asked. Before a read "
    "answers, a majority has to have what it is about to tell.",
    "newest": "The nodes that were heard do not have the same copy. The last one that "
    "was written has the greatest version, and it is not always the first to arrive.",
    "version": "Two writes are mixed up here. A write's version is above all that were "
    "heard of, and no other write may have the same, also if two clients write "
    "through one node at once.",
    "raised": "The message above names the line, and what the node was given.",
}
