"""Right answers to step 3 of exercise 11 that come to their gradients in other ways."""

import heapq
import threading
from itertools import chain

import pytest
import torch
from right_gradients import Hooks, Overlap

from distlab.grading import OverlappedGradients


class KeepsTheGraph(Overlap):
    def backward(self, loss):
        loss.backward(retain_graph=True)


class InAThread(Overlap):
    def backward(self, loss):
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()


class BackwardTwice(Overlap):
    """Goes back once to look at a gradient, and once more to use them all."""

    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.missing, len(weighed))
        *before, last = weighed or [None]
        for forward, weight in before:
            loss = forward() * weight
            torch.autograd.grad(loss, self.buckets[0][0], retain_graph=True)
            loss.backward()
            self.missing = {p: left - 1 for p, left in self.missing.items()}
        if last:
            with Hooks(self.missing, self.arrived):
                (last[0]() * last[1]).backward()


class AllForwardsFirst(Overlap):
    def go_back(self, weighed):
        losses = [forward() * weight for forward, weight in weighed]
        super().go_back([(losses.pop, 1) for _ in weighed])


class OneBackwardForAll(Overlap):
    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.missing, 1)
        with Hooks(self.missing, self.arrived):
            if weighed:
                sum(forward() * weight for forward, weight in weighed).backward()


class HooksOnTensors(Overlap):
    """Has hooks that are called before backward adds to p.grad, and adds itself."""

    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.missing, len(weighed))

        def hook(p, gradient):
            self.add(p, gradient)
            return torch.zeros_like(gradient)

        handles = [
            p.register_hook(lambda gradient, p=p: hook(p, gradient))
            for p in self.missing
        ]
        for forward, weight in weighed:
            (forward() * weight).backward()
        for handle in handles:
            handle.remove()


class OneGradientAtATime(Overlap):
    """Has no hooks: asks for the gradient of one parameter after the other."""

    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.missing, len(weighed))
        for forward, weight in weighed:
            loss = forward() * weight
            for p in chain(*self.buckets):
                (gradient,) = torch.autograd.grad(
                    loss, p, retain_graph=True, allow_unused=True
                )
                if gradient is not None:
                    self.add(p, gradient)


class OneNodeAtATime(Overlap):
    """Is backward itself: calls each node of the graph for what arrives at it."""

    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.missing, len(weighed))
        for forward, weight in weighed:
            loss = forward() * weight
            self.walk(loss.grad_fn, torch.ones_like(loss))

    def walk(self, first, slope):
        waiting, slopes = [(0, 0, first)], {first: [slope]}
        for number, node in enumerate(in_turn(waiting), 1):
            arrived = slopes.pop(node)
            if hasattr(node, "variable"):
                p = node.variable
                self.add(p, sum(arrived).sum_to_size(p.shape))
                continue
            given = getattr(node, "apply", node)(sum(arrived))
            given = given if isinstance(given, tuple) else (given,)
            pairs = zip(node.next_functions, given, strict=False)
            for place, ((following, _), slope) in enumerate(pairs):
                if following is None or slope is None:
                    continue
                if following not in slopes:
                    turn = following._sequence_nr(), number * 100 + place
                    heapq.heappush(waiting, (-turn[0], turn[1], following))
                slopes.setdefault(following, []).append(slope)


def in_turn(waiting):
    while waiting:
        yield heapq.heappop(waiting)[-1]


WAYS = [
    Overlap,
    KeepsTheGraph,
    InAThread,
    BackwardTwice,
    AllForwardsFirst,
    OneBackwardForAll,
    HooksOnTensors,
    OneGradientAtATime,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks, model", [(3, "experts"), (2, "tied")])
def test_another_way_to_gradients_is_right(way, ranks, model):
    verdict = OverlappedGradients(way(), ranks, model).judge()
    assert verdict.outcome == "pass", verdict


def test_whoever_goes_from_node_to_node_by_hand_has_run_backward():
    verdict = OverlappedGradients(OneNodeAtATime(), 2, "layers").judge()
    assert verdict.outcome == "pass", verdict
