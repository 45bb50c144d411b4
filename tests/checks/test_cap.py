"""Nodes in processes of their own, and what their checks say of mistakes."""

import json
import os
from pathlib import Path

import pytest

from distlab.checks import cap
from distlab.checks.kit import Wrong, clients_of, on_nodes
from distlab.checks.kit.grading import judge
from distlab.faults import Split
from distlab.network import Node, Reply, simulate

NOTEBOOK = Path(__file__).parents[2] / "solutions" / "02_cap" / "02_cap.ipynb"
CELLS = ["imports", "copies", "coordinator", "replica", "refusing", "answering", "cart"]
CLIENTS = clients_of(
    "0 0 write x 0, 0.1 1 write x 1, 0.1 2 read x, 0.5 2 read x", [7, 8]
)


def learner(source=""):
    """Return what a notebook has: the given cells, the answers, and some more code."""
    cells = {
        c["id"]: "".join(c["source"]) for c in json.loads(NOTEBOOK.read_text())["cells"]
    }
    space = {"__name__": "__main__"}
    exec("\n\n".join([*(cells[name] for name in CELLS), source]), space)
    return space


def test_processes_give_the_run_that_the_nodes_themselves_give():
    make, how = learner()["Refusing"], {"faults": Split(0.05, [0, 1], [2], until_s=0.3)}
    here = simulate(make, 3, CLIENTS, **how)
    with on_nodes(make, 3) as live:
        there = live.simulate(3, CLIENTS, **how)
    assert here.history == there.history
    assert [e[:7] for e in here.trace.events] == [e[:7] for e in there.trace.events]


def test_nodes_share_no_memory_and_what_a_class_keeps_is_found_by_a_second_run():
    class Counts(Node):
        heard = []  # noqa: RUF012, the mistake

        def on_client(self, request, call):
            self.heard.append(self.me)
            yield Reply(request, (os.getpid(), list(self.heard)))

    with on_nodes(Counts, 3) as live:
        run = live.simulate(3, CLIENTS[:3])
        with pytest.raises(Wrong, match=r"Counts.heard belongs to the class"):
            live.simulate(3, CLIENTS[:3], twice=True)
    assert {one.result[1][0] for one in run.history} == {0, 1, 2}
    assert all(len(one.result[1]) == 1 for one in run.history)
    assert os.getpid() not in {one.result[0] for one in run.history}


FAILURES = {
    "while True: pass": "A node never waits",
    "yield 7": "says what was returned",
    "return 1 / 0": "names the line",
    "import os; os._exit(1)": "process of the node has ended",
    "from distlab.agree import Quorum; Quorum(0, ())": "the protocol itself",
    "yield from self.have_kept(request, Copy())": "without end",
    "import time; yield from self.answer(request, time.time())": "a node has no clock",
}


@pytest.mark.parametrize("line", FAILURES)
def test_a_node_that_fails_meets_the_hint_that_fits(line):
    source = "class Wrong(Refusing):\n    def on_answer(self, request, work):\n"
    make = learner(f"{source}        {line}\n")["Wrong"]
    verdict = judge(cap.never_wrong, make, ("nothing is broken",))
    assert verdict.outcome == "fail" and FAILURES[line] in verdict.hints[0], verdict


def test_a_majority_that_refuses_is_shown_in_the_table():
    source = "class Strict(Refusing):\n    def on_answer(self, request, work):\n"
    source += "        if len(dict(work.answers)) > len(self.peers):\n"
    source += "            yield from super().on_answer(request, work)\n"
    make = learner(source)["Strict"]
    verdict = judge(cap.never_wrong, make, ("partitions of three",))
    assert "[0, 1], partitioned     answered" in verdict.found
    assert "How many are a majority" in verdict.hints[0] and verdict.drawn()
