"""`StackWitness`: what the checks of ZeRO 3 hear from each rank, and what they answer.

    "start"                        ──▶      each layer's parameters
    "ready", memory in use         ──▶
    "forward"                      ──▶      x
      "layer", i, full, x, memory  ──▶      y
    "output", y, memory            ──▶      the gradient of the loss
      "slope", i, full, x, of y    ──▶      the gradients of full and x
    "passed", memory               ──▶
    "rest", memory                 ──▶

What memory is in use only the rank can tell. Everything else is compared here.
"""

from typing import ClassVar

import torch

from distlab.grading.zero.tasks import MISTAKES, Maker, StackTask, same, trained
from distlab.grading.zero.witness import RankWitness, Witness, demand, numbers_of

__all__ = ["StackWitness"]

_MOST_LOOKS = 10_000
_MOST_SHOWN, _MOST_LAYERS = 200, 100


class _Rank(RankWitness):
    """A rank's training, as far as it has come.

    place: how many passes it has ended. awaited: what its probe says next. fault: what
    was first found wrong. looks: when, and how much memory was in use.
    """

    def __init__(self, name):
        super().__init__(name)
        self.place, self.awaited, self.phase = 0, "ready", "start"
        self.step = self.turn = 0
        self.inputs = []
        self.fault, self.looks = None, []

    def result(self):
        return super().result() | {"fault": self.fault, "looks": self.looks}


class StackWitness(Witness):
    """What is known of a training of a stack of layers."""

    def __init__(self, task: StackTask, name: str):
        super().__init__([_Rank(name) for _ in range(task.world_size)])
        self._task, self._name = task, name
        self._right = trained(task, Maker(name))
        self._passes = [(s, t) for s in range(task.steps) for t in range(task.passes)]
        self._passes.append((task.steps, 0))

    def _start(self, rank, step):
        task = self._task
        return [flat.tolist() for flat in task.start()], task.width, task.x_bytes

    def _ready(self, rank, step, look):
        self._arrive(rank, "ready", "forward")
        self._look(rank, "start", None, look)

    def _forward(self, rank, step):
        """A pass begins: return its x."""
        own, task = self.ranks[rank], self._task
        self._arrive(rank, "forward", "output")
        own.step, own.turn = self._passes[own.place]
        own.phase = "forward"
        own.began.append(step)
        own.inputs = task.outputs(rank, own.step, own.turn, self._right[own.step])
        return own.inputs[0].tolist()

    def _layer(self, rank, step, i, full, x, shape, look):
        """A layer is called: return what it makes of x."""
        own, task = self.ranks[rank], self._task
        demand(type(i) is int and 0 <= i < task.count, "no such layer")
        full, x = numbers_of(full, [task.lengths[i]]), numbers_of(x, shape)
        self._look(rank, own.phase, i, look)
        if own.inputs:
            self._compare(rank, "full", i, full, self._right[own.step][i])
            self._compare(rank, "input", i, x, own.inputs[i])
        return task.layer(i, full, x).tolist()

    def _slope(self, rank, step, i, full, x, shape, gradient):
        """Return the gradients of a layer's parameters and its x; that of y is told."""
        demand(type(i) is int and 0 <= i < self._task.count, "no such layer")
        full = numbers_of(full, [self._task.lengths[i]]).requires_grad_()
        x = numbers_of(x, shape).requires_grad_()
        with torch.enable_grad():
            y = self._task.layer(i, full, x)
            down = (y * numbers_of(gradient, list(y.shape))).sum()
        found = torch.autograd.grad(down, (full, x))
        return [each.tolist() for each in found]

    def _hooked(self, rank, step, i, look):
        self._look(rank, "backward", i, look)

    def _output(self, rank, step, numbers, shape, shown, look):
        """Forward has returned: return the gradient of the loss, None at the end."""
        own, task = self.ranks[rank], self._task
        last = own.step == task.steps
        self._arrive(rank, "output", "done" if last else "passed")
        self._look(rank, "between", None, look)
        own.began.append(step)
        output, right = own.inputs[-1], own.inputs[-1]
        if numbers is None or shape != list(right.shape):
            demand(isinstance(shown, str), "it shows no text")
            blame = {"expected": "the last layer's", "got": shown[:_MOST_SHOWN]}
            self._blame(rank, "output", 0, None, **blame)
        else:
            output = numbers_of(numbers, shape)
            self._compare(rank, "output", task.count, output, right)
        own.phase, own.ended = "backward", last
        if not last:
            return task.slope(rank, own.step, own.turn, output).tolist()
        return None

    def _passed(self, rank, step, look):
        own = self.ranks[rank]
        own.place += 1
        rests = self._passes[own.place][0] > own.step
        self._arrive(rank, "passed", "rest" if rests else "forward")
        self._look(rank, "between", None, look)

    def _rest(self, rank, step, look):
        self._arrive(rank, "rest", "forward")
        self._look(rank, "rest", None, look)

    def _arrive(self, rank, kind, then):
        own = self.ranks[rank]
        demand(own.awaited == kind, f"{kind} is not what comes next")
        own.awaited = then

    def _look(self, rank, phase, layer, look):
        """Note how much memory a rank has in use, as it says."""
        own = self.ranks[rank]
        demand(len(own.looks) < _MOST_LOOKS, "it looks too often")
        kept = {"step": own.step, "turn": own.turn, "phase": phase, "layer": layer}
        kept |= {key: int(look[key]) for key in ("own", "extra", "large", "inputs")}
        kept |= {
            key: [int(i) for i in look[key][:_MOST_LAYERS]]
            for key in ("whole", "first")
        }
        kept |= {key: bool(look[key]) for key in ("grads", "views")}
        if phase == "forward" and look["graph"]:
            kept["graph"] = True
        own.looks.append(kept)

    def _compare(self, rank, what, layer, got, expected):
        own = self.ranks[rank]
        if own.fault is not None:
            return
        if got.shape != expected.shape:
            shapes = {"expected": list(expected.shape), "got": list(got.shape)}
            self._blame(rank, what, layer, None, **shapes)
            return
        places = (~same(got, expected)).flatten().nonzero().flatten()
        if not len(places):
            return
        place = int(places[0])
        numbers = float(expected.flatten()[place]), float(got.flatten()[place])
        self._blame(rank, what, layer, place, *numbers)
        own.fault["differ"] = len(places)
        if what == "full":
            own.fault["like"] = self._like(rank, layer, got, expected)

    def _blame(self, rank, what, layer, place, expected, got):
        own = self.ranks[rank]
        if own.fault is None:
            own.fault = {
                "what": what, "layer": layer, "place": place, "like": "",
                "expected": expected, "got": got, "differ": 0, "phase": own.phase,
                "step": own.step, "turn": own.turn,
            }  # fmt: skip

    def _like(self, rank, layer, got, expected):
        """Return what wrong parameters are equal to: a mistake's name, or ""."""
        step = self.ranks[rank].step
        for name, mistake in MISTAKES.items():
            there = trained(self._task, Maker(self._name), **mistake)
            if bool(same(got, there[step][layer]).all()):
                return name
        right = same(got, expected)
        part = -(-len(got) // self._task.world_size)
        if bool(same(got.sort().values, expected.sort().values).all()):
            return "order"
        if bool((got[~right] == 0).all()):
            kept = [i // part for i in right.nonzero().flatten().tolist()]
            return "own part" if set(kept) == {rank} else "zeros"
        before = self._right[max(0, step - 1)][layer]
        if bool(same(got, torch.where(right, expected, before)).all()):
            return "stale"
        return ""

    _KINDS: ClassVar[dict] = Witness._KINDS | {
        "start": _start,
        "ready": _ready,
        "forward": _forward,
        "layer": _layer,
        "slope": _slope,
        "hooked": _hooked,
        "output": _output,
        "passed": _passed,
        "rest": _rest,
    }
