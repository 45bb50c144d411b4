"""Training on torchft: a group dies, others go on, a new one takes over their state."""

import os
import signal

import pytest
import torch

from distlab import EngineFailed, EngineMissing
from distlab.engines import torchft

GROUPS = 3
needs_torchft = pytest.mark.skipif(not torchft.is_installed(), reason="needs torchft")


def gradient_of(values, group, step):
    torch.manual_seed(100 * step + group)
    x, values = torch.randn(8, 4), values.clone().requires_grad_()
    wrong = x @ values - group * x.sum(1)  # each pulls elsewhere, for ever
    return torch.autograd.grad((wrong**2).mean(), values)[0]


def members(state):
    return [tuple(g for g, w in enumerate(shares) if w) for shares in state["steps"]]


def is_over(state):
    """Return True if all were there, then one was not, and all are there again."""
    there, whole = members(state), (0, 1, 2)
    return there[-1:] == [whole] and (1, 2) in there[there.index(whole) :]


def train(address, group, life):
    values = torch.full([4], float(group))
    state = {"values": values, "momentum": values * 0, "steps": []}
    with torchft.manager(address, lambda: state, state.update, least=2) as manager:
        while not is_over(state):
            manager.start_quorum()
            gradient = gradient_of(state["values"], group, manager.current_step())
            weights = torch.eye(GROUPS)[group]
            for tensor in (gradient, weights):
                manager.allreduce(tensor).wait()
            if manager.should_commit():
                state.setdefault("first", state["values"].tolist())
                state["momentum"] = 0.9 * state["momentum"] + gradient
                state["values"] = state["values"] - 0.01 * state["momentum"]
                state["steps"] = [*state["steps"], weights.tolist()]
                if not (group or life) and members(state)[-3:] == [(0, 1, 2)] * 3:
                    os.kill(os.getpid(), signal.SIGKILL)
        return state, life


@needs_torchft
def test_a_group_is_killed_and_a_new_one_takes_over_the_state_of_those_that_went_on():
    returned = torchft.run_groups(train, GROUPS, suspect_after_s=0.5)
    assert [life for _, life in returned] == [1, 0, 0]
    ends = [state for state, _ in returned]
    for end in ends[1:]:  # also the new one tells of the steps before it was there
        torch.testing.assert_close(end, ends[0], rtol=0, atol=0)
    values, momentum = torch.tensor(ends[0]["first"]), torch.zeros(4)
    for step, shares in enumerate(ends[0]["steps"]):  # the same steps in one process
        each = [gradient_of(values, group, step) for group in range(GROUPS)]
        momentum = 0.9 * momentum + torch.tensor(shares) @ torch.stack(each)
        values = values - 0.01 * momentum
    torch.testing.assert_close(values, ends[0]["values"])


def fails(address, group, life):
    raise ValueError(f"group {group} in life {life}")


@needs_torchft
def test_a_group_that_raises_ends_all_with_its_traceback():
    with pytest.raises(EngineFailed, match=r"(?s)group \d raised.*ValueError: group"):
        torchft.run_groups(fails, 2)


def dies(address, group, life):
    os.kill(os.getpid(), signal.SIGKILL)


@needs_torchft
def test_a_group_that_is_killed_with_no_restart_left_ends_all():
    with pytest.raises(EngineFailed, match="group 0 ended once more"):
        torchft.run_groups(dies, 1)


def test_a_missing_torchft_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr(torchft, "find_spec", lambda name: None)
    with pytest.raises(EngineMissing, match=r"install .distlab.torchft"):
        torchft.run_groups(fails)
