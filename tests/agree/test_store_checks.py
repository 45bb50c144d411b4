"""Wrong stores each meet the hint that fits, and nothing gets past their checks.

The exercise's own variants are graded as notebooks; here are more, and quicker.
"""

import json
import os
import time
from pathlib import Path

import pytest

from distlab.faults import Split
from distlab.grading import AlwaysAnswers, HealedCart, NeverWrong
from distlab.network import Client, Node, Reply, simulate
from distlab.network.trial import Trial
from distlab.trace import Call

NOTEBOOK = Path(__file__).parents[2] / "solutions" / "02_cap" / "02_cap.ipynb"
CELLS = ["imports", "copies", "coordinator", "replica", "refusing", "answering", "cart"]


def learner(source=""):
    """Return what a notebook has: the given cells, the answers, and some more code."""
    notebook = json.loads(NOTEBOOK.read_text())
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    space = {"__name__": "a notebook"}
    exec("\n\n".join([*(cells[name] for name in CELLS), source]), space)
    return space


def hint_of(check, make, cases):
    for case in cases:
        verdict = check(make, case).judge()
        if verdict.outcome != "pass":
            assert verdict.outcome == "fail", verdict
            return verdict.hint + verdict.found
    return "pass"


REGISTERS = {
    "waits for all": (
        "if len(dict(work.answers)) > len(self.peers):\n"
        "            yield from super().on_answer(request, work)",
        "This side has a majority of the nodes, and refused",
    ),
    "answers with the copy": (
        "if work.kept is None:\n"
        "            yield from super().on_answer(request, work)\n"
        "        else:\n"
        "            yield from self.answer(request, work.kept)",
        "A client is given numbers",
    ),
    "loops": ("while True:\n            pass", "A node never waits"),
    "yields nonsense": ("yield 7", "says what was returned"),
    "raises": ("return 1 / 0", "names the line"),
    "ends its process": ("import os\n        os._exit(1)", "process of the node"),
    "exits": ("raise SystemExit", "process of the node"),
    "writes a file": ("open('told', 'w')", "by its effects alone"),
    "brings a store": (
        "from distlab.agree import Quorum",
        "own stores and checks are locked",
    ),
    "opens the check": (
        "from distlab.grading.agreement import never_wrong",
        "own stores and checks are locked",
    ),
    "remembers in a global": (
        "global LAST\n        LAST = work.call.value\n"
        "        yield from super().on_answer(request, work)",
        "have no memory in common",
    ),
    "prints without end": (
        "while True:\n            print('and on' * 100)",
        "A node never waits",
    ),
    "asks again and again": (
        "yield from self.have_kept(request, newest([work.answers[0][1]]))",
        "without end",
    ),
}


@pytest.mark.parametrize("name", REGISTERS)
def test_a_wrong_register_meets_the_hint_that_fits(name):
    body, hint = REGISTERS[name]
    source = "LAST = None\n\nclass Wrong(Refusing):\n"
    source += f"    def on_answer(self, request, work):\n        {body}\n"
    make = learner(source)["Wrong"]
    cases = ["nothing is broken", "splits of three"]
    assert hint in hint_of(NeverWrong, make, cases)


def test_a_search_shows_the_schedule_of_a_read_that_is_not_kept():
    source = (
        "class Wrong(Refusing):\n"
        "    def on_answer(self, request, work):\n"
        "        enough = len(dict(work.answers)) > (len(self.peers) + 1) // 2\n"
        "        if enough and work.call.op == 'read':\n"
        "            copies = dict(work.answers).values()\n"
        "            yield from self.answer(request, newest(copies).value)\n"
        "        else:\n"
        "            yield from super().on_answer(request, work)\n"
    )
    said = hint_of(NeverWrong, learner(source)["Wrong"], ["searched"])
    assert "1. client 0 asks node 0: write x 1" in said
    assert "a majority has to have what it is about to tell" in said


ANSWERING = {
    "is silent": ("on_client(self, request, call)", "pass", "not answered at all"),
    "tells all it heard": (
        "on_message(self, sender, message)",
        "super().on_message(sender, message)\n"
        "        key = f'heard {len(self.copies)}'\n"
        "        self.copies[key] = Copy((1, self.me), 'x' * 20)",
        "grows and grows",
    ),
    "answers every message": (
        "on_message(self, sender, message)",
        "super().on_message(sender, message)\n"
        "        return [Send(sender, self.copies)]",
        "without end",
    ),
    "looks at the clock": (
        "on_client(self, request, call)",
        "import time\n"
        "        copy = self.copies.get(call.key, Copy())\n"
        "        if call.op == 'write':\n"
        "            copy = Copy((time.monotonic_ns(), 0), call.value)\n"
        "            self.copies[call.key] = copy\n"
        "        yield Reply(request, copy.value)",
        "a node has no clock",
    ),
    "draws by itself": (
        "on_client(self, request, call)",
        "import random\n"
        "        yield from super().on_client(request, call)\n"
        "        self.copies['drawn'] = Copy((1, self.me), random.getrandbits(60))",
        "Chance comes from self.random alone",
    ),
}


@pytest.mark.parametrize("name", ANSWERING)
def test_a_wrong_store_that_answers_meets_the_hint_that_fits(name):
    method, body, hint = ANSWERING[name]
    source = f"class Wrong(Answering):\n    def {method}:\n        {body}\n"
    cases = ["at once", "much later"]
    assert hint in hint_of(AlwaysAnswers, learner(source)["Wrong"], cases)


CARTS = {
    "lists twice": (
        "on_client(self, request, call)",
        "if call.op == 'read':\n"
        "            there = [t for t in self.adds if t not in self.removed]\n"
        "            return [Reply(request, [self.adds[t] for t in there])]\n"
        "        return super().on_client(request, call)",
        "each once",
    ),
    "forgets what was removed": (
        "on_timer(self, name)",
        "yield from self.on_start({})\n"
        "        yield from [Send(peer, (self.adds, set())) for peer in self.peers]",
        "came back",
    ),
    "says nothing": ("on_timer(self, name)", "pass", "different carts for ever"),
}


@pytest.mark.parametrize("name", CARTS)
def test_a_wrong_cart_meets_the_hint_that_fits(name):
    method, body, hint = CARTS[name]
    source = f"class Wrong(Cart):\n    def {method}:\n        {body}\n"
    assert hint in hint_of(
        HealedCart, learner(source)["Wrong"], ["one node", "a split"]
    )


def test_who_draws_from_its_own_chance_does_the_same_once_more():
    source = (
        "class Draws(Answering):\n"
        "    def on_timer(self, name):\n"
        "        yield SetTimer('gossip', GOSSIP_S * self.random.uniform(0.5, 1))\n"
        "        for peer in self.random.sample(self.peers, len(self.peers)):\n"
        "            yield Send(peer, self.copies)\n"
    )
    made = learner(source)["Draws"]
    assert hint_of(AlwaysAnswers, made, ["after a split", "losses"]) == "pass"


def test_nodes_on_trial_share_nothing_and_leave_nothing_behind():
    class Counts(Node):
        heard = []  # noqa: RUF012, the mistake

        def on_client(self, request, call):
            self.heard.append(self.me)
            yield Reply(request, (os.getpid(), list(self.heard)))

    clients = [Client(node, [Call("read")]) for node in range(3)]
    with Trial(Counts, 3) as trial:
        run = simulate(trial.live, 3, clients)
        assert trial.shared() == "Counts.heard"
    pids = {one.result[0] for one in run.history}
    assert len(pids) == 3 and os.getpid() not in pids
    assert [one.result[1] for one in run.history] == [[0], [1], [2]]
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_trial_gives_the_run_that_the_nodes_themselves_give():
    space = learner()
    clients = [
        Client(n, [Call("write", "x", n), Call("read", "x")] * 4) for n in range(3)
    ]
    how = {"faults": Split(0.01, [0, 1], [2], until_s=0.3), "seed": 5}
    here = simulate(space["Refusing"], 3, clients, **how)
    with Trial(space["Refusing"], 3) as trial:
        there = simulate(trial.live, 3, clients, **how)
    assert here.history == there.history
    assert [e[:7] for e in here.trace.events] == [e[:7] for e in there.trace.events]
