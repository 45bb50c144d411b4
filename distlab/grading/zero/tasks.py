"""What the checks of exercise 12 train, and one process that trains it too.

Every rank has data of its own in every step, and every layer another start, so that
nothing that belongs somewhere else looks right by accident. `trained` also makes the
usual mistakes on purpose: what a learner's parameters are equal to, if they are not
right, says what went wrong.

All this is in the check. Ranks are told numbers, and know neither how fast an optimizer
goes nor what a layer does.
"""

from collections.abc import Callable

import torch

from distlab.grading.salt import salted

__all__ = ["MISTAKES", "FlatTask", "Maker", "StackTask", "same", "trained"]

MISTAKES = {
    "summed": {"times": "n"},
    "averaged twice": {"times": "1/n"},
    "own gradient": {"own": True},
    "kept": {"kept": True},
    "remade": {"remade": True},
    "last pass": {"last": True},
    "mean of passes": {"times": "1/passes"},
    "no step": {"times": "0"},
}


class _Plain:
    """SGD: no state."""

    def __init__(self, tensors, haste):
        self.tensors, self.state, self._haste = tensors, {}, haste

    @torch.no_grad()
    def step(self):
        for tensor in self.tensors:
            if tensor.grad is not None:
                self._step(tensor, tensor.grad, self.state.setdefault(tensor, {}))

    def zero_grad(self, set_to_none=True):
        for tensor in self.tensors:
            tensor.grad = None

    def _step(self, tensor, gradient, state):
        tensor -= 0.1 * self._haste * gradient


class _Momentum(_Plain):
    """SGD with momentum: one number of state for each parameter."""

    def _step(self, tensor, gradient, state):
        state["speed"] = 0.9 * state.get("speed", torch.zeros_like(tensor)) + gradient
        tensor -= 0.1 * self._haste * state["speed"]


class _Adam(_Plain):
    """Adam: two numbers of state for each parameter."""

    def _step(self, tensor, gradient, state):
        count = state["count"] = state.get("count", 0) + 1
        zeros = torch.zeros_like(tensor)
        state["mean"] = 0.9 * state.get("mean", zeros) + 0.1 * gradient
        state["square"] = 0.999 * state.get("square", zeros) + 0.001 * gradient**2
        mean, square = (
            state["mean"] / (1 - 0.9**count),
            state["square"] / (1 - 0.999**count),
        )
        tensor -= 0.05 * self._haste * mean / (square.sqrt() + 1e-8)


_OPTIMIZERS = {"SGD": _Plain, "momentum": _Momentum, "Adam": _Adam}


class Maker:
    """Makes optimizers of that name, and keeps them.

    They are as simple as can be: importing torch's own takes a second.
    """

    def __init__(self, name: str):
        self.name, self.made = name, []
        self._haste = salted("haste", name).uniform(0.8, 1.2)

    @property
    def rate(self) -> float:
        """By what SGD multiplies a gradient."""
        return 0.1 * self._haste

    def __call__(self, tensors):
        """Return an optimizer of these tensors."""
        self.made.append(_OPTIMIZERS[self.name](tensors, self._haste))
        return self.made[-1]

    @property
    def handed(self) -> list[torch.Tensor]:
        """Every tensor that some optimizer got."""
        return [tensor for each in self.made for tensor in each.tensors]

    @property
    def state(self) -> list[torch.Tensor]:
        """Every tensor of every optimizer's state."""
        states = [s for each in self.made for s in each.state.values()]
        return [t for s in states for t in s.values() if torch.is_tensor(t)]


class _Task:
    """A training of so many steps, each of so many passes, on so many ranks."""

    def __init__(self, world_size, steps, passes, seed):
        self.world_size, self.steps, self.passes = world_size, steps, passes
        self.seed = f"{world_size} {seed}"

    def _random(self, what, shape):
        seed = salted("zero", what, self.seed).getrandbits(60)
        draw = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=draw, dtype=torch.float64)


class FlatTask(_Task):
    """One flat tensor, and on each rank and in each step a slope of its own."""

    def __init__(self, world_size: int, numbers: int, steps: int):
        super().__init__(world_size, steps, 1, numbers)
        self.numbers = numbers

    def start(self) -> list[torch.Tensor]:
        """Return the parameters of the start, in a list of one."""
        return [self._random("start", self.numbers)]

    def gradients(self, rank, step, turn, flats) -> list[torch.Tensor]:
        """Return this rank's gradient, which depends on the parameters."""
        here = f"{rank} {step}"
        steepness = 0.2 + self._random(f"steep {here}", self.numbers).abs()
        return [steepness * (flats[0] - self._random(f"goal {here}", self.numbers))]


class StackTask(_Task):
    """Layers of a few lengths, one after another, and data for each rank and pass."""

    batch = 2

    def __init__(self, world_size, width, count, *, steps=2, passes=1):
        super().__init__(world_size, steps, passes, f"{width} {count}")
        self.width, self.count = width, count
        draw = salted("strengths", self.seed)
        self._strengths = [draw.uniform(0.4, 0.6) for _ in range(count)]

    @property
    def lengths(self) -> list[int]:
        """How many parameters each layer has."""
        return [self.width * (self.width + 1) + i % 2 for i in range(self.count)]

    def start(self) -> list[torch.Tensor]:
        """Return each layer's parameters of the start."""
        return [
            self._random(f"layer {i}", length) / self.width**0.5
            for i, length in enumerate(self.lengths)
        ]

    @property
    def x_bytes(self) -> int:
        """How many bytes an input of a layer has."""
        return self.batch * self.width * 8

    def layer(self, i: int, full, x):
        """Return what layer i makes of x; odd ones have a gain besides."""
        w = self.width
        weight, bias = full[: w * w].view(w, w), full[w * w : w * w + w]
        gain = full[-1] if i % 2 else 1.0
        return x + self._strengths[i] * gain * torch.tanh(x @ weight + bias)

    def data(self, rank, step, turn) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what goes in on this rank, and what should come out."""
        here, shape = f"{rank} {step} {turn}", (self.batch, self.width)
        return self._random(f"in {here}", shape), self._random(f"out {here}", shape)

    def outputs(self, rank, step, turn, flats) -> list[torch.Tensor]:
        """Return the input of every layer, and the output of the last."""
        xs = [self.data(rank, step, turn)[0]]
        for i, flat in enumerate(flats):
            xs.append(self.layer(i, flat, xs[-1]))
        return xs

    def slope(self, rank, step, turn, output) -> torch.Tensor:
        """Return the gradient of this rank's mean squared distance to its goal."""
        return (output - self.data(rank, step, turn)[1]) / self.batch

    def gradients(self, rank, step, turn, flats) -> list[torch.Tensor]:
        """Return this rank's gradient of each layer."""
        flats = [flat.detach().requires_grad_() for flat in flats]
        with torch.enable_grad():
            output = self.outputs(rank, step, turn, flats)[-1]
            slope = self.slope(rank, step, turn, output.detach())
            return list(torch.autograd.grad((output * slope).sum(), flats))


def trained(
    task: _Task, make: Callable, *, times="1", own=False, kept=False, remade=False,
    last=False,
) -> list[list[torch.Tensor]]:  # fmt: skip
    """Train in one process; return the parameters at the start and after each step.

    The rest are mistakes. times: by what the mean gradient is multiplied. own: whether
    each part is stepped by the gradient of the rank that owns it. kept: whether
    gradients are never dropped. remade: whether each step has a new optimizer. last:
    whether only the last pass of each step counts.
    """
    n = task.world_size
    numbers = {"n": n, "1/n": 1 / n, "1": 1, "1/passes": 1 / task.passes, "0": 0}
    flats = task.start()
    optimizer, history = make(flats), [[flat.clone() for flat in flats]]
    for step in range(task.steps):
        if remade:
            optimizer = make(flats)
        if not kept:
            optimizer.zero_grad()
        for turn in range(task.passes):
            ranks = [task.gradients(rank, step, turn, flats) for rank in range(n)]
            for flat, *each in zip(flats, *ranks, strict=True):
                mean = _owners(each) if own else sum(each) / n * numbers[times]
                before = None if last and turn else flat.grad
                flat.grad = mean if before is None else before + mean
        optimizer.step()
        history.append([flat.clone() for flat in flats])
    return history


def _owners(gradients):
    """Return each part from the rank that owns it."""
    n, length = len(gradients), len(gradients[0])
    part = -(-length // n)
    return torch.cat([g[r * part : (r + 1) * part] for r, g in enumerate(gradients)])


def same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return number by number whether two tensors are equal but for rounding."""
    return (a - b).abs() <= 1e-9 * b.abs().clamp(min=1)
