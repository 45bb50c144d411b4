"""Exercise 15: hints that no variant of it meets, and its twin beside the library."""

import pytest
import torch

from distlab.checks import async_training as checks
from distlab.checks.kit.grading import judge
from distlab.train.asynchronous import Asynchronous


class NoBound:
    """A server on which all go on at once."""

    def __init__(self, values, rate, bound, workers):
        self.values, self.rate, self.version, self.ages = values, rate, 0, []

    def push(self, worker, version, gradient):
        self.ages.append(self.version - version)
        self.values -= self.rate * gradient
        self.version += 1
        return [worker]

    def leave(self, worker):
        """Forget to return a list."""


def serve(comm, server, updates):
    """Tell each worker -1 with its first gradient after the last update."""
    message = torch.zeros(len(server.values) + 1, dtype=torch.float64)
    left, ready = set(range(1, comm.world_size)), range(1, comm.world_size)
    while left:
        over = server.version >= updates
        for worker in ready:
            message[:-1], message[-1] = server.values, -1 if over else server.version
            comm.send(message, worker)
            left -= {worker} if over else set()
        if left:
            worker = comm.recv_any(message)
            version, gradient = int(message[-1]), message[:-1]
            ready = [worker] if over else server.push(worker, version, gradient)


LATE = "a dead worker's gradient comes late"
FOUND = [
    (checks.correct, NoBound, (3, 1), "returned", "at most `bound` above"),
    (checks.robust, NoBound, (LATE, 3, 1), "NoneType", "return a list of workers"),
    (
        checks.efficient,
        (NoBound, serve),
        (3, 1, 20, "none leaves"),
        "to worker",
        "Answer those whom push and leave return",
    ),
]


@pytest.mark.parametrize("check, answer, case, found, hint", FOUND)
def test_what_is_wrong_with_a_server_is_told(check, answer, case, found, hint):
    verdict = judge(check, answer, case)
    assert verdict.outcome == "fail" and found in verdict.found
    assert hint in " ".join(verdict.hints)


def test_without_a_reason_to_wait_a_loop_without_a_bound_is_right():
    case = 3, 10**6, 20, "none leaves"
    assert judge(checks.efficient, (NoBound, serve), case).outcome == "pass"


@pytest.mark.parametrize("bound", [0, 1, 4])
def test_the_twin_agrees_with_the_library(bound):
    def sgd(parameters):
        return torch.optim.SGD(parameters, checks.RATE)

    values, workers = [1.0, 2.0, 3.0], [11, 5, 8, 30]
    twin = checks.Twin(values, bound, workers)
    rule = Asynchronous(torch.tensor(values, dtype=torch.float64), sgd, bound=bound)
    rule.begin(workers)
    draw = torch.Generator().manual_seed(bound)
    for count in range(200):
        free = sorted(set(twin.clocks) - twin.held)
        worker = free[int(torch.randint(len(free), (), generator=draw))]
        call = ("leave", worker) if count in (90, 120) else ("push", worker)
        gradient = torch.randint(-9, 9, (3,), generator=draw).double()
        state = twin.after(*call, twin.given[worker], gradient.tolist())
        if call[0] == "leave":
            theirs = rule.leave(worker)
        else:
            theirs = rule.push(worker, 0, gradient)
        assert sorted(theirs) == state["returned"]
        assert rule.values.tolist() == state["values"]
