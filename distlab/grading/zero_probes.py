"""What the checks of exercise 12 have a rank do: train, and look while it trains.

the learner's class ──calls──▶ a layer of `_Layers` ─▶ looks at what it was given,
                                                       and at all memory in use
                    ──calls──▶ `Maker`              ─▶ notes what it is to step
"""

import torch

from distlab.grading.live_memory import LiveTensors, WeakStorage
from distlab.grading.probes import lock, shown
from distlab.grading.zero_tasks import (
    MISTAKES,
    FlatTask,
    Maker,
    StackTask,
    same,
    trained,
)
from distlab.train import fsdp, shards, zero
from distlab.train.memory import storage_bytes

__all__ = ["lock_the_lesson", "train_flat", "train_stack"]


def lock_the_lesson() -> None:
    """Make what lesson 12 shows unusable in this rank, also under another name."""
    lock([zero, shards, fsdp], _the_lessons)


def _the_lessons(*args, **options):
    raise NotImplementedError(
        "this exercise asks for your own; distlab.train's is locked here"
    )


def train_flat(comm, function, numbers: int, steps: int, name: str) -> dict:
    """Train one flat tensor by the learner's ZeRO 1; return what was there each step.

    begins: the rank's count of Comm calls before each step. stepped: the same at each
    optimizer step that changed something. kept: the bytes that the optimizer's tensors
    keep in memory, except for those of `flat` itself.
    """
    lock_the_lesson()
    task, maker = FlatTask(comm.world_size, numbers, steps), Maker(name)
    (flat,) = task.start()
    stepped = []

    def make(tensors):
        return _noted(maker(tensors), lambda: stepped.append(comm.recorder.step))

    trainer = function(comm, flat, make)
    kept = storage_bytes([flat, *maker.handed]) - storage_bytes([flat])
    flats, begins = [flat.tolist()], []
    for step in range(steps):
        (gradient,) = task.gradients(comm.rank, step, 0, [flat])
        begins.append(comm.recorder.step)
        trainer.step(gradient)
        flats.append(flat.tolist())
    return {
        "flats": flats,
        "begins": begins,
        "stepped": stepped,
        "kept": kept,
        "handed": [tensor.numel() for tensor in maker.handed],
        "made": len(maker.made),
        "state": storage_bytes(maker.state),
    }


def _noted(optimizer, note):
    """Return the optimizer; it calls `note` when a step of it has changed something."""
    step = optimizer.step

    def noted():
        before = [tensor.clone() for tensor in optimizer.tensors]
        step()
        pairs = zip(before, optimizer.tensors, strict=True)
        if not all(torch.equal(*pair) for pair in pairs):
            note()

    optimizer.step = noted
    return optimizer


def train_stack(comm, function, sizes: tuple, name: str) -> dict:
    """Train a stack of layers by the learner's ZeRO 3; return what was seen.

    sizes: width, count, steps and passes. fault: the first thing that was not as it
    should be on this rank, or None. looks: memory at each look.
    """
    lock_the_lesson()
    width, count, steps, passes = sizes
    task = StackTask(comm.world_size, width, count, steps=steps, passes=passes)
    maker = Maker(name)
    with LiveTensors() as live:
        with live.paused():
            layers = _Layers(comm.rank, task, live, maker)
        trainer = function(comm, list(layers.functions), layers.given(), maker)
        layers.look("start")
        begins = []
        for step in range(steps + 1):
            for turn in range(passes if step < steps else 1):
                begins.append(comm.recorder.step)
                output = layers.forward(trainer, step, turn)
                begins.append(comm.recorder.step)
                if step < steps:
                    layers.backward(trainer, output)
            if step < steps:
                trainer.step()
                layers.look("rest")
    return {
        "fault": layers.fault,
        "looks": layers.looks,
        "begins": begins,
        "handed": [tensor.numel() for tensor in maker.handed],
        "made": len(maker.made),
        "state": storage_bytes(maker.state),
    }


class _Layers:
    """The layers of a task, each of which looks about when it is called.

    fault: what was first found wrong. looks: when, and how much memory was in use.
    """

    def __init__(self, rank, task, live, maker):
        self.rank, self.task, self.live, self.maker = rank, task, live, maker
        self.right = trained(task, Maker(maker.name))
        self.functions = [self._function(i) for i in range(task.count)]
        self.fault, self.looks = None, []
        self.step = self.turn = 0
        self.phase = "start"
        self._fulls, self._inputs, self._first_flats = {}, [], []

    def given(self) -> list[torch.Tensor]:
        """Return the flat tensors for the learner, and hold none of them."""
        flats = self.task.start()
        self._first_flats = [WeakStorage(flat.untyped_storage()) for flat in flats]
        return flats

    def forward(self, trainer, step, turn):
        """Have the learner's class do a forward pass, and compare what comes out."""
        self.step, self.turn, self.phase = step, turn, "forward"
        with self.live.paused():
            inputs = self.task.outputs(self.rank, step, turn, self.right[step])
            self._inputs, given = inputs, inputs[0].clone()
        output = trainer.forward(given)
        self.look("between")
        if not isinstance(output, torch.Tensor) or output.shape != given.shape:
            self._blame(
                "output", 0, None, expected="the last layer's", got=shown(output)
            )
            return inputs[-1].clone()
        self._compare("output", self.task.count, output, inputs[-1])
        return output

    def backward(self, trainer, output):
        """Have the learner's class do a backward pass from a loss."""
        self.phase = "backward"
        with self.live.paused():
            slope = self.task.slope(self.rank, self.step, self.turn, output.detach())
        trainer.backward(slope)
        self.look("between")

    def look(self, phase, layer=None) -> None:
        """Note how much memory is in use, and which layers are whole in it."""
        sizes = self.live.sizes()
        parts = self.maker.handed
        own = [
            *parts,
            *(grads := [p.grad for p in parts if p.grad is not None]),
            *self.maker.state,
        ]
        self._fulls = {key: pair for key, pair in self._fulls.items() if pair[0].nbytes}
        unit = min(self.task.lengths) * 8
        whole = sorted({i for weak, i in self._fulls.values()})
        self.looks.append({
            "step": self.step, "turn": self.turn, "phase": phase, "layer": layer,
            "own": sum(t.nbytes for t in own),
            "extra": sum(sizes.values()) - sum(t.nbytes for t in own),
            "whole": whole,
            "large": sum(s >= unit for k, s in sizes.items() if k not in self._fulls),
            "first": [i for i, weak in enumerate(self._first_flats) if weak.nbytes],
            "inputs": sum(s == self.task.x_bytes for s in sizes.values()),
            "grads": bool(grads),
            "views": any(g.untyped_storage().nbytes() > g.nbytes for g in grads),
        })  # fmt: skip

    def _function(self, i):
        def layer(full, x):
            self._given(i, full, x)
            y = self.task.layer(i, full, x)
            if self.phase == "forward" and y.requires_grad:
                self.looks[-1]["graph"] = True
                y.register_hook(lambda gradient: self.look("backward", i))
            return y

        return layer

    def _given(self, i, full, x):
        length = self.task.lengths[i]
        if len(full) != length:
            only = "only " * (len(full) < length)
            raise ValueError(
                f"layer {i} has {length} parameters, and was given {only}{len(full)}"
            )
        storage = full.untyped_storage()
        self._fulls[storage._cdata] = WeakStorage(storage), i
        del storage
        self.look(self.phase, i)
        self._compare("full", i, full, self.right[self.step][i])
        self._compare("input", i, x, self._inputs[i])

    def _compare(self, what, layer, got, expected):
        with self.live.paused():
            got = got.detach()
            if self.fault is not None or (
                got.shape == expected.shape and bool(same(got, expected).all())
            ):
                return
            if got.shape != expected.shape:
                return self._blame(
                    what, layer, None, list(expected.shape), list(got.shape)
                )
            places = (~same(got, expected)).flatten().nonzero().flatten()
            place = int(places[0])
            numbers = float(expected.flatten()[place]), float(got.flatten()[place])
            self._blame(what, layer, place, *numbers)
            self.fault["differ"] = len(places)
            if what == "full":
                self.fault["like"] = self._like(layer, got, expected)

    def _blame(self, what, layer, place, expected, got):
        if self.fault is None:
            self.fault = {
                "what": what, "layer": layer, "place": place, "like": "",
                "expected": expected, "got": got, "differ": 0, "phase": self.phase,
                "step": self.step, "turn": self.turn,
            }  # fmt: skip

    def _like(self, layer, got, expected):
        """Return what wrong parameters are equal to: a mistake's name, or ""."""
        for name, mistake in MISTAKES.items():
            there = trained(self.task, Maker(self.maker.name), **mistake)
            if bool(same(got, there[self.step][layer]).all()):
                return name
        right = same(got, expected)
        part = -(-len(got) // self.task.world_size)
        if bool(same(got.sort().values, expected.sort().values).all()):
            return "order"
        if bool((got[~right] == 0).all()):
            kept = [i // part for i in right.nonzero().flatten().tolist()]
            return "own part" if set(kept) == {self.rank} else "zeros"
        before = self.right[max(0, self.step - 1)][layer]
        if bool(same(got, torch.where(right, expected, before)).all()):
            return "stale"
        return ""
