"""Training on torchft: a group dies, others go on, a new one takes over their state."""

import json
import select
import subprocess
import sys
from contextlib import ExitStack

import pytest
import torch

from distlab import EngineMissing
from distlab.engines import torchft

GROUPS = 4  # the last one starts when the first is dead


def gradient_of(values, group, step):
    torch.manual_seed(100 * step + group)
    x, values = torch.randn(8, 4), values.clone().requires_grad_()
    wrong = x @ values - group * x.sum(1)  # each pulls elsewhere, for ever
    return torch.autograd.grad((wrong**2).mean(), values)[0]


def train(address, group):
    """Train until one group is told to stop, which all learn in the same step."""
    values, stopped = torch.full([4], float(group)), False
    state = {"values": values, "momentum": values * 0, "steps": [values.tolist()]}
    with torchft.manager(address, lambda: state, state.update, least=2) as manager:
        while not stopped:
            manager.start_quorum()
            gradient = gradient_of(state["values"], group, manager.current_step())
            weights = torch.eye(GROUPS + 1)[group]
            weights[GROUPS] = bool(select.select([sys.stdin], [], [], 0)[0])
            for tensor in (gradient, weights):
                manager.allreduce(tensor).wait()
            if manager.should_commit():
                *shares, stopped = weights.tolist()
                state["momentum"] = 0.9 * state["momentum"] + gradient
                state["values"] = state["values"] - 0.01 * state["momentum"]
                state["steps"] = [*state["steps"], shares]
                print([sum(map(bool, s)) for s in state["steps"][-5:]], flush=True)
        print(json.dumps(state, default=torch.Tensor.tolist), flush=True)
        sys.stdin.read()  # none leaves before all have ended


def start(stack, address, group):
    command, pipe = [sys.executable, __file__, address, str(group)], subprocess.PIPE
    how = {"stdin": pipe, "stdout": pipe, "text": True, "bufsize": 1}
    process = stack.enter_context(subprocess.Popen(command, **how))
    stack.callback(process.kill)
    return process


def wait_for(process, members=None):
    """Return the first line that tells of five steps of so many, or the last line."""
    lines = map(json.loads, process.stdout)
    return next(it for it in lines if it == [members] * 5 or isinstance(it, dict))


@pytest.mark.skipif(not torchft.is_installed(), reason="needs torchft")
def test_a_group_is_killed_and_a_new_one_takes_over_the_state_of_those_that_went_on():
    with ExitStack() as stack:
        address = stack.enter_context(torchft.lighthouse(2))
        groups = [start(stack, address, group) for group in range(GROUPS)]
        for each in groups[:3]:
            each.stdin.write("start\n")
        wait_for(groups[1], members=3)
        groups[0].kill()
        wait_for(groups[1], members=2)
        groups[3].stdin.write("start\n")
        wait_for(groups[1], members=3)
        groups[1].stdin.write("stop\n")
        ends = [wait_for(each) for each in groups[1:]]
        for each in groups:
            each.communicate()
        assert [each.returncode for each in groups] == [-9, 0, 0, 0]
    assert ends == [ends[0]] * 3
    first, *weights = ends[0]["steps"]
    members = [tuple(g for g, w in enumerate(each) if w) for each in weights]
    described = [(0, 1, 2), (1, 2), (1, 2, 3)]  # the new group, too, tells of the first
    members = members[members.index(described[0]) :]
    assert list(dict.fromkeys(m for m in members if m in described)) == described
    values, momentum = torch.tensor(first), torch.zeros(4)
    for step, shares in enumerate(weights):  # the same steps in one process
        each = [gradient_of(values, group, step) for group in range(GROUPS)]
        momentum = 0.9 * momentum + torch.tensor(shares) @ torch.stack(each)
        values = values - 0.01 * momentum
    torch.testing.assert_close(values, torch.tensor(ends[0]["values"]))


def test_a_missing_torchft_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr(torchft, "find_spec", lambda name: None)
    with (
        pytest.raises(EngineMissing, match=r"install .distlab.torchft"),
        torchft.lighthouse(),
    ):
        pass


if __name__ == "__main__":
    sys.stdin.readline()
    train(sys.argv[1], int(sys.argv[2]))
