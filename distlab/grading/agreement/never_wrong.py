"""The check of a store that refuses rather than to be wrong.

nothing is broken   ─▶ the answers of a single copy
splits              ─▶ the majority's side answers all, the other refuses all, soon
losses and doubles  ─▶ linearizable, over many seeds
searched schedules  ─▶ linearizable, in any order of events that is found
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from distlab.agree import KeyValue, check_linearizable
from distlab.errors import NodeFailed, NotDeterministic
from distlab.faults import Split
from distlab.grading.agreement.nodes_on_trial import NotEnough, OnTrial, Wrong
from distlab.grading.agreement.register_evidence import HINTS, kind_of_wrong
from distlab.grading.agreement.split_plans import (
    PATIENCE_S,
    SPLIT_S,
    during,
    lanes_of,
    rough,
    shares_told,
    split_clients,
    split_fired,
    told,
)
from distlab.network import Client, Delivery, search
from distlab.trace import Call

__all__ = ["NeverWrong"]

_SIDES = {
    3: [([0, 1], [2]), ([0, 2], [1]), ([1, 2], [0])],
    4: [([0, 1, 2], [3]), ([0, 1], [2, 3])],
    5: [([0, 2, 4], [1, 3]), ([1, 2, 3, 4], [0])],
}
_SEEDS, _SEARCH_S, _LEAST_SCHEDULES = 16, 0.8, 20
_AT_ONCE = 24  # runs; in each other one, writes of one version are told apart
_DOUBLED = Delivery(duplicate=0.5)


@dataclass
class NeverWrong(OnTrial):
    """A register on several nodes, linearizable whatever is cut, lost or doubled.

    case: "nothing is broken", "splits", "losses" or "searched".
    """

    titles: ClassVar[dict[str, str]] = {
        "nothing is broken": "nothing is broken, one call after another",
        "splits of three": "three nodes, each alone in turn",
        "splits of more": "four and five nodes, split",
        "losses": "splits, lost and doubled messages, many runs",
        "searched": "schedules that a search looks for",
    }

    def _try(self):
        if self.case == "nothing is broken":
            self._quiet()
        elif self.case == "searched":
            self._searched()
        elif self.case == "losses":
            self._rough()
            self._at_once()
        else:
            for nodes in (3,) if self.case == "splits of three" else (5, 4):
                for sides in _SIDES[nodes]:
                    self._split(nodes, sides)
            if nodes == 4:
                self._in_turn()

    # ---- nothing is broken -----------------------------------------------------------

    def _quiet(self):
        calls = [(0, 1), (1, None), (2, None), (2, 2), (0, None), (1, 3), (2, None)]
        clients = [
            Client(node, [_call(value)], start_s=0.8 * number, timeout_s=0.7)
            for number, (node, value) in enumerate(calls)
        ]
        clients.append(Client(1, [Call("read", "y")], start_s=0.8 * len(calls)))
        run = self.simulate(3, clients)
        value = None
        for one in run.history:
            if one.outcome != "ok":
                kind = "never" if one.outcome == "unknown" else "refuses"
                raise Wrong(lanes_of(run.history), HINTS[kind], run.trace)
            if one.op == "write":
                value = one.value
                continue
            expected = value if one.key == "x" else None
            if type(one.result) is not type(expected) or one.result != expected:
                found = f"{lanes_of(run.history)}\n{told(one)}, and it is {expected!r}."
                self._fail_for(run, 3, found)

    # ---- planned splits --------------------------------------------------------------

    def _split(self, nodes, sides):
        split = Split(SPLIT_S[0], *sides, until_s=SPLIT_S[1])
        how = {"faults": split, "delivery": _DOUBLED, "seed": self.drawn}
        run = self.simulate(nodes, split_clients(nodes), **how)
        words = " | ".join(" ".join(map(str, side)) for side in sides)
        head = f"{nodes} nodes, split into {words}\n{shares_told(run, sides)}"
        if not split_fired(run):
            raise NotEnough(f"{head}\nNo message met the split.")
        for side in sides:
            majority = 2 * len(side) > nodes
            why = str if majority else partial(self._twice, how, side)
            self._side(run, side, majority, head, why)
        self._judged(run, nodes, head)
        late = [o for o in run.history if o.start > SPLIT_S[1] + PATIENCE_S]
        for one in late:
            if one.outcome != "ok":
                found = f"{head}\nNot answered after the split: {told(one)}."
                raise Wrong(found, HINTS["after"], run.trace)

    def _in_turn(self):
        """Cut off one after another: each call reaches a majority, always another."""
        for calls, splits in _IN_TURN:
            made = {
                rank: Client(node, [_call(value)], start_s, timeout_s=0.15)
                for start_s, node, value, rank in calls
            }
            faults = [Split(at_s, *sides, until_s=end) for at_s, end, *sides in splits]
            how = {"faults": faults, "delivery": Delivery((0.005, 0.005))}
            run = self.simulate(3, [made[rank] for rank in sorted(made)], **how)
            cuts = [f"{a:g} to {b:g} s: {s} | {t}" for a, b, s, t in splits]
            self._judged(run, 3, "3 nodes, split from " + ", ".join(cuts))

    def _side(self, run, side, majority, head, why):
        """Look whether one side of a split answered all, or refused all, in time.

        why: the hint's key -> the one that fits better.
        """
        some = during(run, side)
        silent = [o for o in run.history.of(*side) if o.outcome == "unknown"]
        if silent and not some:
            found = f"{head}\nNever answered: {told(silent[-1])}."
            raise Wrong(found, HINTS[why("never")], run.trace)
        if not some:
            raise NotEnough(f"{head}\nNobody called on one side.")
        wanted = "ok" if majority else "failed"
        for one in some:
            which, kind = "", ""
            if one.outcome == "unknown":
                which, kind = "Never answered", why("never")
            elif one.outcome != wanted and majority:
                which, kind = "Refused by the side with the majority", "strict"
            elif one.outcome != wanted:
                which, kind = "Answered by a side without a majority", why("minority")
            elif one.end - one.start > PATIENCE_S:
                which, kind = "Answered late", "slow"
            if kind:
                found = f"{head}\n{which}: {told(one)}."
                raise Wrong(found, HINTS[kind], run.trace)

    def _twice(self, how, side, kind):
        """Return "twice" if it is only doubled messages that make a side do so."""
        nodes = max(map(max, how["faults"].sides)) + 1
        plain = self.simulate(nodes, split_clients(nodes), faults=how["faults"])
        if kind == "minority":
            outcome, calls = "ok", during(plain, side)
        else:
            outcome, calls = "unknown", plain.history.of(*side)
        return kind if any(one.outcome == outcome for one in calls) else "twice"

    # ---- losses, doubles, searches ---------------------------------------------------

    def _rough(self):
        answered = 0
        for number in range(_SEEDS):
            nodes = 3 if number % 4 else 5
            clients, how = rough(nodes, f"{self.drawn} {number}")
            run = self.simulate(nodes, clients, **how)
            answered += sum(one.outcome == "ok" for one in run.history)
            self._judged(run, nodes, f"{nodes} nodes, run {number}")
        if answered < _SEEDS:
            raise Wrong(f"{answered} calls in {_SEEDS} runs.", HINTS["never"])

    def _at_once(self):
        """Let three clients write through one node at once, then all nodes be asked."""
        writes = [Client(0, [_call(value)], start_s=0.1) for value in (1, 2, 3)]
        reads = [Client(node, [_call(None)], start_s=0.6) for node in range(3)]
        for number in range(_AT_ONCE):
            how = {"delivery": Delivery((0.01, 0.04)), "seed": f"{self.drawn} {number}"}
            run = self.simulate(3, [*writes, *reads], **how)
            head = f"3 nodes, three writes at once through node 0, run {number}"
            self._judged(run, 3, head)

    def _searched(self):
        for clients, faults in _SCENARIOS:
            for times in (1, 5, 25):  # others may be at work on the machine
                found = self._found(clients, faults, times * _SEARCH_S)
                if found or found.explored.schedules >= _LEAST_SCHEDULES:
                    break
            if found:
                run = found.outcome
                steps = f"A search found this schedule, in which {found.why}\n"
                steps = f"{steps}{found.schedule!r}"
                if not _verdict(run).violated:
                    raise Wrong(steps, HINTS["raised"], run.trace)
                self._fail_for(run, 3, steps)
            if found.explored.schedules < _LEAST_SCHEDULES:
                raise NotEnough(f"{found} The machine is busy; try again.")

    def _found(self, clients, faults, within_s):
        def linearizable(run):
            return not _verdict(run).violated or _verdict(run)

        how = {"within_s": within_s, "seed": self.drawn, "timers": 3, **faults}
        try:
            return search(self.trial.copied, 3, clients, linearizable, **how)
        except (NodeFailed, NotDeterministic) as error:
            raise self.failed(error) from None

    def _judged(self, run, nodes, head):
        """Raise what is wrong with a run that no single copy could have given."""
        if not any(one.outcome == "ok" for one in run.history):
            raise Wrong(f"{head}: nothing was answered.", HINTS["never"], run.trace)
        verdict = _verdict(run)
        if verdict.inconclusive and "too short" in verdict.why:
            raise NotEnough(f"{head}: {verdict.why}")
        if verdict.violated:
            self._fail_for(run, nodes, f"{head}\n{verdict.why}")

    def _fail_for(self, run, nodes, found):
        verdict = _verdict(run)
        if verdict.smallest is not None and "schedule" not in found:
            found = f"{found}\nEnough for it:\n{lanes_of(verdict.smallest)}"
        kind = kind_of_wrong(run, nodes, verdict.smallest or run.history)
        kind = self._newest_or_version() if kind == "version" else kind
        if kind == "refused":
            found = f"{found}\nRefused:\n{_refused(run, verdict.smallest)}"
        raise Wrong(found, HINTS[kind], run.trace)

    def _newest_or_version(self):
        """Say which, by a write on two nodes and one on another two, and three reads.

        A version that is not above all others loses everywhere. A read that takes the
        first copy instead of the newest is right at the node that has the newest.
        """
        when = enumerate([0.1, 0.6, 1.1, 1.6, 2.1])
        nodes, values = (0, 2, 0, 1, 2), (1, 2, None, None, None)
        clients = [Client(nodes[n], [_call(values[n])], start_s=s) for n, s in when]
        splits = [Split(0, [0, 1], [2], until_s=0.5)]
        splits.append(Split(0.55, [1, 2], [0], until_s=1))
        history = self.simulate(3, clients, faults=splits).history
        right = [one.result == 2 for one in history if one.op == "read"]
        return "newest" if any(right) and not all(right) else "version"


def _refused(run, smallest):
    """Return the refused writes of what was read all the same."""
    values = [one.result for one in smallest or run.history if one.op == "read"]
    failed = [o for o in run.history if (o.op, o.outcome) == ("write", "failed")]
    return "\n".join(f"  {told(one)}" for one in failed if one.value in values)


def _verdict(run):
    return check_linearizable(run.history, KeyValue(), within_s=4)


def _call(value):
    return Call("read", "x") if value is None else Call("write", "x", value)


_IN_TURN = (  # (second, node, value, rank among the clients); (from, to, sides)
    (
        [(0.1, 0, 1, 0), (0.32, 1, None, 1), (0.62, 2, None, 2), (0.9, 0, None, 3)],
        [(0.111, 0.2, [0], [1, 2]), (0.3, 0.5, [0, 1], [2]), (0.6, 0.8, [1, 2], [0])],
    ),
    (
        [(0.1, 0, 1, 1), (0.62, 2, 2, 0), (0.9, 0, None, 2), (1.2, 1, None, 3)],
        [(0.05, 0.5, [0, 1], [2]), (0.6, 0.8, [1, 2], [0])],
    ),
)
_WRITE = Client(0, [Call("write", "x", 1)])
_READS = [Client(node, [Call("read", "x")]) for node in (1, 2)]
_SCENARIOS = (
    ([_WRITE, *_READS], {"timers": 0}),
    ([_WRITE, Client(0, [Call("write", "x", 2)]), *_READS], {"timers": 0}),
    ([_WRITE, *_READS], {"timers": 0, "duplicates": 1}),
    (
        [_WRITE, Client(1, [Call("read", "x")] * 2)],
        {"splits": [([0], [1, 2])], "timers": 2},
    ),
    ([_WRITE, Client(1, [Call("write", "x", 2)]), _READS[1]], {"drops": 2}),
)
