"""What the checks of exercise 12 have a rank do: train, and look while it trains.

the learner's class ──calls──▶ a layer     ─▶ tells what it was given, and all memory in
                                              use; the check answers what comes out
                    ──calls──▶ `Maker`    ─▶ tells what it is to step; the check steps

The rank has its own numbers only. The rest it is told as far as it has come.
"""

import torch

from distlab.grading.calling import called
from distlab.grading.probes import lock, shown
from distlab.grading.zero.live_memory import LiveTensors, WeakStorage
from distlab.train import fsdp, shards, zero
from distlab.train.memory import storage_bytes

__all__ = [
    "Layers",
    "Maker",
    "Optimizer",
    "lock_the_lesson",
    "telling",
    "train",
    "train_flat",
    "train_stack",
]


def lock_the_lesson() -> None:
    """Make what lesson 12 shows unusable in this rank, also under another name."""
    lock([zero, shards, fsdp], _the_lessons)


def _the_lessons(*args, **options):
    raise NotImplementedError(
        "this exercise asks for your own; distlab.train's is locked here"
    )


class Maker:
    """The `make_optimizer` that a learner's class is given.

    tell: called with what the check is to hear. kind: what it makes. handed: every
    tensor that some optimizer got.
    """

    def __init__(self, tell, kind=None):
        self._tell, self.handed = tell, []
        self._kind = kind or Optimizer

    def __call__(self, tensors):
        """Return an optimizer of these tensors."""
        if isinstance(tensors, torch.Tensor):
            raise TypeError("make_optimizer takes a list of tensors, and got a tensor")
        tensors = list(tensors)
        if not all(tensor.is_leaf for tensor in tensors):
            raise ValueError("can't optimize a non-leaf Tensor")
        sizes = [[_dtype(tensor), tensor.numel()] for tensor in tensors]
        self.handed += tensors
        return self._kind(tensors, self._tell, self._tell("made", sizes))


class Optimizer:
    """Has the check step its tensors, with the state that the check keeps for them."""

    def __init__(self, tensors, tell, number):
        self.tensors, self.state = tensors, {}
        self.param_groups = [{"params": tensors}]
        self._tell, self._number = tell, number

    @torch.no_grad()
    def step(self):
        """Step the tensors that have a gradient."""
        values = [_numbers(tensor) for tensor in self.tensors]
        gradients = [_numbers(tensor.grad) for tensor in self.tensors]
        stepped = self._tell("stepped", self._number, values, gradients)
        for tensor, numbers in zip(self.tensors, stepped, strict=True):
            if numbers is not None:
                tensor.copy_(_tensor(numbers).view_as(tensor))

    def zero_grad(self, set_to_none=True):
        """Drop the gradients."""
        for tensor in self.tensors:
            tensor.grad = None


def _dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _numbers(tensor):
    return None if tensor is None else tensor.detach().flatten().tolist()


def _tensor(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def train_flat(comm, function) -> None:
    """Train one flat tensor by the learner's ZeRO 1; tell what is there each step.

    It tells, too, how many bytes the optimizer's tensors keep in memory, except for
    those of `flat` itself.
    """
    lock_the_lesson()
    tell = telling(comm)
    maker, flat = Maker(tell), _tensor(tell("start"))
    trainer = called(function, comm, flat, maker)
    tell("kept", storage_bytes([flat, *maker.handed]) - storage_bytes([flat]))
    while (gradient := tell("flat", _numbers(flat))) is not None:
        trainer.step(_tensor(gradient))


def telling(comm):
    """Return what tells the check something, and returns its answer."""
    return lambda *said: comm.ask_at_once(said)


def train_stack(comm, function, steps: int, passes: int) -> None:
    """Train a stack of layers by the learner's ZeRO 3; tell what is seen."""
    lock_the_lesson()
    with LiveTensors() as live:
        train(Layers(telling(comm), live), comm, function, steps, passes)


def train(layers: "Layers", comm, function, steps: int, passes: int) -> None:
    """Train these layers by the learner's ZeRO 3."""
    given = layers.start()
    functions = list(layers.functions)
    trainer = called(function, comm, functions, given, layers.maker)
    del given
    layers.tell("ready", layers.look())
    for step in range(steps + 1):
        for _ in range(passes if step < steps else 1):
            layers.forward(trainer)
            if step < steps:
                layers.backward(trainer)
        if step < steps:
            trainer.step()
            layers.tell("rest", layers.look())


class Layers:
    """The layers of a task, each of which looks about when it is called."""

    _optimizer = Optimizer

    def __init__(self, tell, live):
        self._tell, self._live = tell, live
        self.maker = Maker(self.tell, self._optimizer)
        self._phase, self._slope = "start", None
        self._fulls, self._first_flats = {}, []

    def tell(self, *said):
        """Tell the check, unseen by what counts memory; return what it answers."""
        with self._live.paused():
            return self._tell(*said)

    def start(self) -> list[torch.Tensor]:
        """Return the flat tensors for the learner, and hold none of them."""
        with self._live.paused():
            given, self._width, self._x_bytes = self.tell("start")
            flats = list(map(self._flat, given))
        self.lengths = [len(flat) for flat in flats]
        self.functions = [self._function(i) for i in range(len(flats))]
        self._first_flats = [WeakStorage(flat.untyped_storage()) for flat in flats]
        return flats

    def _flat(self, told):
        """Return a layer's parameters, from what the check has told of them."""
        return _tensor(told)

    def forward(self, trainer) -> None:
        """Have the learner's class do a forward pass, and tell what comes out."""
        self._phase = "forward"
        with self._live.paused():
            x = _tensor(self.tell("forward"))
        output = trainer.forward(x)
        del x
        told = None, None, shown(output)
        if isinstance(output, torch.Tensor):
            with self._live.paused():
                told = _numbers(output), list(output.shape), told[-1]
        self._slope = self.tell("output", *told, self.look())

    def backward(self, trainer) -> None:
        """Have the learner's class do a backward pass from the loss of the last."""
        self._phase = "backward"
        with self._live.paused():
            slope = _tensor(self._slope)
        trainer.backward(slope)
        self.tell("passed", self.look())

    def look(self, graph=False) -> dict:
        """Return how much memory is in use, and which layers are whole in it.

        graph: whether what a layer returns will have a graph of autograd.
        """
        sizes = self._live.sizes()
        parts = self.maker.handed
        own = [*parts, *(grads := [p.grad for p in parts if p.grad is not None])]
        self._fulls = {key: pair for key, pair in self._fulls.items() if pair[0].nbytes}
        unit = min(self.lengths) * 8
        return {
            "own": sum(t.nbytes for t in own),
            "extra": sum(sizes.values()) - sum(t.nbytes for t in own),
            "whole": sorted({i for weak, i in self._fulls.values()}),
            "large": sum(s >= unit for k, s in sizes.items() if k not in self._fulls),
            "first": [i for i, weak in enumerate(self._first_flats) if weak.nbytes],
            "inputs": sum(s == self._x_bytes for s in sizes.values()),
            "grads": bool(grads),
            "views": any(g.untyped_storage().nbytes() > g.nbytes for g in grads),
            "graph": graph,
        }

    def _function(self, i):
        def layer(full, x):
            self._refuse_unfit(i, full, x)
            storage = full.untyped_storage()
            self._fulls[storage._cdata] = WeakStorage(storage), i
            del storage
            graph = torch.is_grad_enabled() and (full.requires_grad or x.requires_grad)
            y = _Layer.apply(full, x, self, i, self.look(graph))
            if self._phase == "forward" and y.requires_grad:
                y.register_hook(lambda gradient: self.tell("hooked", i, self.look()))
            return y

        return layer

    def _refuse_unfit(self, i, full, x):
        """Raise for what a layer cannot work on, as torch would."""
        if torch._C._functorch.is_functorch_wrapped_tensor(full):
            raise TypeError(
                "torch.func cannot differentiate the check's layers; torch.autograd can"
            )
        length = self.lengths[i]
        if len(full) != length:
            only = "only " * (len(full) < length)
            raise ValueError(
                f"layer {i} has {length} parameters, and was given {only}{len(full)}"
            )
        with self._live.paused(), torch.no_grad():
            x @ full[: self._width**2].view(self._width, self._width)

    def ask(self, kind, i, full, x, *more):
        """Tell what a layer has; return what the check makes of it."""
        with self._live.paused():
            told = _numbers(self.seen(i, full)), _numbers(x), list(x.shape)
            return self.tell(kind, i, *told, *more)

    def seen(self, i, full):
        """Return the parameters on which what layer i does depends."""
        return full

    def gradient(self, i, numbers):
        """Return the gradient of layer i's parameters, from that of those seen."""
        return _tensor(numbers)


class _Layer(torch.autograd.Function):
    """One layer, of which only the check knows what it does."""

    @staticmethod
    def forward(ctx, full, x, layers, i, look):
        ctx.save_for_backward(full, x)
        ctx.place = layers, i
        return _tensor(layers.ask("layer", i, full, x, look))

    @staticmethod
    def backward(ctx, gradient):
        layers, i = ctx.place
        of_full, of_x = layers.ask("slope", i, *ctx.saved_tensors, _numbers(gradient))
        return layers.gradient(i, of_full), _tensor(of_x), None, None, None
