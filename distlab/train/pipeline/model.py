"""`PipelinedModel`: a stage of a real model, trained by any schedule.

pipe = PipelinedModel(comm, [layers of this stage], one_f_one_b(p, m), loss)
losses = pipe.step(inputs, targets)      # then the optimizer of this stage

`WeightsLater` makes linear layers whose weight gradients are computed later:

    backward:  gradient of the output ──▶ gradient of the input, at once
                  └── stored with the layer's input ──▶ `add_up`: of the weight

Other parameters, such as a bias or a norm, get their gradients in backward.

Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 2.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from distlab.errors import InvalidArgument
from distlab.train.memory import SavedForBackward
from distlab.train.optimizer_steps import clip_over
from distlab.train.pipeline.engine import check_stages, play
from distlab.train.pipeline.schedule import Schedule

__all__ = ["PipelinedModel", "WeightsLater", "clip_gradients"]


class WeightsLater(TorchFunctionMode):
    """A mode in which `functional.linear` delays the gradients of weights.

    Code compiled by `torch.compile`, and the attention of `nn.MultiheadAttention`, are
    not changed: all their gradients are computed in backward.
    """

    def __init__(self):
        super().__init__()
        self._aside = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call a function of torch, or `_Linear` for a layer with a weight to train."""
        kwargs = kwargs or {}
        if function is functional.linear and not torch.compiler.is_compiling():
            x, weight, bias = _named(*args, **kwargs)
            if isinstance(weight, nn.Parameter) and weight.requires_grad:
                return _Linear.apply(x, weight, bias, self._aside)
        return function(*args, **kwargs)

    @property
    def nbytes(self) -> int:
        """The bytes of the stored inputs and gradients."""
        return sum(x.nbytes + gradient.nbytes for _, x, gradient in self._aside)

    def add_up(self) -> None:
        """Compute the delayed weight gradients, and add them to the weights' `grad`."""
        for weight, x, gradient in self._aside:
            rows = _rows(gradient)
            found = (rows.T @ _rows(x).to(rows.dtype)).to(weight.dtype)
            weight.grad = found if weight.grad is None else weight.grad + found
        self._aside.clear()


def _named(input, weight, bias=None):  # as functional.linear names them
    return input, weight, bias


def _rows(tensor):
    return tensor.reshape(-1, tensor.shape[-1])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, aside):
        ctx.save_for_backward(x)  # the weight itself: a recomputed one has no `grad`
        ctx.weight, ctx.aside = weight, aside
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        (x,), weight = ctx.saved_tensors, ctx.weight
        ctx.aside.append((weight, x.detach(), gradient))
        needs_x, _, needs_bias, _ = ctx.needs_input_grad
        of_x = gradient @ weight.to(gradient.dtype) if needs_x else None
        of_bias = _rows(gradient).sum(0) if needs_bias else None
        return of_x, None, of_bias, None


class PipelinedModel:
    """This rank's chunks of a model; after `step` its gradients are the whole batch's.

    chunks: one module for each chunk of a stage in the schedule.
    loss: (output, target) of a microbatch -> its mean loss, on the last part.
    recompute: keep only each chunk's input, and run it again before its backward pass.
    tied: on the first and the last rank the parameter that is one in the whole model,
        such as an embedding that also makes the logits; its gradients are summed. In a
        V both ends are on the first rank: leave it out, and use one parameter in both.
    measure: count `held_bytes`, the bytes kept for backward after each work.

    Raises: InvalidArgument if the schedule's stages are not as many as the ranks, or
    its chunks as many as the modules, if the two tied parameters differ, or for `tied`
    in a V.
    """

    def __init__(
        self,
        comm,
        chunks: Sequence[nn.Module],
        schedule: Schedule,
        loss: Callable,
        *,
        recompute: bool = False,
        tied: nn.Parameter | None = None,
        measure: bool = False,
    ):
        check_stages(comm, schedule)
        if len(chunks) != schedule.chunks:
            raise InvalidArgument(
                f"the schedule gives each stage {schedule.chunks} chunks of the model, "
                f"and there are {len(chunks)} modules."
            )
        self.comm, self.chunks, self.schedule = comm, nn.ModuleList(chunks), schedule
        self._loss, self._recompute, self._shapes = loss, recompute, None
        if schedule.v_shaped and tied is not None:
            raise InvalidArgument(
                "tied is for a model whose first and last part are on two ranks. In a "
                "V both are on rank 0: use one parameter in its chunks, without tied."
            )
        self._tied, self._measure = tied if comm.world_size > 1 else None, measure
        mine = None if self._tied is None else tied.detach()
        if mine is not None and not torch.equal(self._other_end(mine), mine):
            raise InvalidArgument(
                "the tied parameters of the first and the last rank differ. Start both "
                "from the same values: the same seed, or a copy of one."
            )

    def step(self, inputs, targets, *, seconds: Callable | None = None) -> torch.Tensor:
        """Run all microbatches forward and backward; return their losses.

        inputs, targets: a batch; its first dimension is cut into equal microbatches.
        Only the rank of the model's first part reads inputs, and only that of the last
        part, the first rank in a V, targets. Gradients add up in `.grad`, as those of
        the mean loss of the batch.
        Returns: the losses [microbatches] on the rank of the last part, else none.

        Raises: InvalidArgument if the batch does not divide.
        """
        microbatches = self.schedule.microbatches
        self._inputs = _cut(inputs, microbatches, "inputs")
        self._targets = _cut(targets, microbatches, "targets")
        if self._shapes is None:
            self._shapes = self._learn_shapes()
        self._kept, self._later, self._bytes = {}, {}, {}
        self._losses, self.held_bytes = [], []
        play(self.comm, self.schedule, self, seconds=seconds)
        if self._tied is not None and self._tied.requires_grad:
            self._tied.grad += self._other_end(self._tied.grad)
        return torch.stack(self._losses) if self._losses else torch.empty(0)

    # ---- the interface that `play` calls ---------------------------------------------

    def do(self, work, arrived):
        """Do one work: F keeps its input and output, B and W use them."""
        do = {"F": self._forward, "B": self._backward, "W": self._weights}[work.kind]
        made = do(work, arrived)
        self.held_bytes.append(sum(self._bytes.values()))
        return made

    def room(self, part, kind):
        """Return a buffer for the output of a part, or the gradient of its input."""
        shape, dtype = self._shapes[part if kind == "F" else part - 1]
        return torch.empty(shape, dtype=dtype, device=self.comm.device)

    # ---- forward and backward --------------------------------------------------------

    def _part(self, work):
        return self.schedule.part(self.comm.rank, work.chunk)

    def _forward(self, work, arrived):
        part, key = self._part(work), (work.microbatch, work.chunk)
        x = self._inputs[work.microbatch] if part == 0 else arrived.requires_grad_()
        counted = SavedForBackward(self.chunks.parameters())
        with counted if self._measure else nullcontext():
            y = self._run(x, key)
            if part == self.schedule.parts - 1:
                loss = self._loss(y, self._targets[work.microbatch])
                self._losses.append(loss.detach())
                y = loss / self.schedule.microbatches
        self._kept[key] = x, y
        self._bytes[key] = counted.nbytes + x.nbytes * self._recompute
        return y.detach()

    def _run(self, x, key):
        """Run a chunk, again before its backward pass if that is to be recomputed."""
        chunk, later = self.chunks[key[1]], nullcontext()
        if self.schedule.splits_backward:
            later = self._later[key] = WeightsLater()

        def run(x):
            with later:
                return chunk(x)

        return checkpoint(run, x, use_reentrant=False) if self._recompute else run(x)

    def _backward(self, work, gradient):
        """Return the gradient of the input; weights that wait for W are left out."""
        key = work.microbatch, work.chunk
        x, y = self._kept.pop(key)
        if y.requires_grad:  # not where a first stage has nothing to train
            y.backward(gradient)
        self._bytes[key] = self._later[key].nbytes if key in self._later else 0
        return None if self._part(work) == 0 else x.grad

    def _weights(self, work, _):
        key = work.microbatch, work.chunk
        self._later.pop(key).add_up()
        self._bytes[key] = 0

    def _other_end(self, tensor):
        """Exchange a tensor between the first and the last rank; return the other's."""
        other, arrived = self.comm.world_size - 1 - self.comm.rank, tensor.clone()
        return self.comm.sendrecv(tensor, arrived, dst=other, src=other)

    def _learn_shapes(self):
        """Return part -> (shape, dtype) of its output, from one microbatch."""
        rank, place = self.comm.rank, self.schedule.place
        shapes, training = {}, self.chunks.training
        self.chunks.eval()  # so that batch norm and dropout change no state
        for chunk, module in enumerate(self.chunks):
            part = self.schedule.part(rank, chunk)
            x = self._inputs[0]
            if part:
                before = part - 1
                if before not in shapes:
                    shapes[before] = self.comm.recv_object(place(before)[0])
                shape, dtype = shapes[before]
                x = torch.zeros(shape, dtype=dtype, device=self.comm.device)
            with torch.no_grad():
                y = self._tried(module, x)
            shapes[part] = tuple(y.shape), y.dtype
            following, _ = place(part + 1)
            if part + 1 < self.schedule.parts and following != rank:
                self.comm.send_object(shapes[part], following)
        self.chunks.train(training)
        return shapes

    def _tried(self, module, x):
        try:
            return module(x)
        except RuntimeError as error:
            shape = " x ".join(map(str, x.shape))
            raise InvalidArgument(
                f"stage {self.comm.rank} cannot take what the stage before gives, "
                f"{shape}: {error}"
            ) from None


def clip_gradients(comm, parameters, most: float, *, tied=None) -> float:
    """Scale gradients so that the norm over all stages is at most `most`; return it.

    Every rank calls it with its own parameters. tied: as in `PipelinedModel`; it counts
    once, on the first rank.
    """
    uncounted = [tied] if tied is not None and comm.rank else []
    return clip_over(parameters, most, [comm], uncounted)


def _cut(batch, microbatches, name):
    if not len(batch) or len(batch) % microbatches:
        raise InvalidArgument(
            f"{name}: {len(batch)} samples do not make {microbatches} equal "
            "microbatches."
        )
    return batch.chunk(microbatches)
