"""`PipelinedModel`: a stage of a real model, trained by any schedule.

pipe = PipelinedModel(comm, [layers of this stage], one_f_one_b(p, m), loss)
losses = pipe.step(inputs, targets)      # then the optimizer of this stage
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from distlab.collectives import ring_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.pipeline.engine import check_stages, play
from distlab.train.pipeline.schedule import Schedule

__all__ = ["PipelinedModel", "clip_gradients"]


class PipelinedModel:
    """This rank's chunks of a model; after `step` its gradients are the whole batch's.

    chunks: one module for each chunk that the schedule gives a stage.
    loss: (output, target) of a microbatch -> its mean loss, on the last part.
    recompute: keep only each chunk's input, and run it again before its backward pass.

    Raises: InvalidArgument if there is not a rank for each stage of the schedule, or a
    module for each chunk.
    """

    def __init__(
        self,
        comm,
        chunks: Sequence[nn.Module],
        schedule: Schedule,
        loss: Callable,
        *,
        recompute: bool = False,
    ):
        check_stages(comm, schedule)
        if len(chunks) != schedule.chunks:
            raise InvalidArgument(
                f"the schedule gives each stage {schedule.chunks} chunks of the model, "
                f"and there are {len(chunks)} modules."
            )
        self.comm, self.chunks, self.schedule = comm, nn.ModuleList(chunks), schedule
        self._loss, self._recompute, self._shapes = loss, recompute, None

    def step(self, inputs, targets, *, seconds: Callable | None = None) -> list[float]:
        """Run all microbatches forward and backward; return their losses.

        inputs, targets: a batch; its first dimension is cut into equal microbatches.
        Only the first stage reads inputs, and only the last one targets. Gradients add
        up in `.grad`, as those of the mean loss of the batch.
        Returns: the losses on the last stage, an empty list on others.

        Raises: InvalidArgument if the batch does not divide.
        """
        microbatches = self.schedule.microbatches
        self._inputs = _cut(inputs, microbatches, "inputs")
        self._targets = _cut(targets, microbatches, "targets")
        if self._shapes is None:
            self._shapes = self._learn_shapes()
        self._kept, self._put_off, self.losses = {}, {}, []
        play(self.comm, self.schedule, self, seconds=seconds)
        return self.losses

    # ---- what `play` asks for --------------------------------------------------------

    def do(self, work, arrived):
        """Do one work: F keeps its input and output, B and W use them."""
        return {"F": self._forward, "B": self._backward, "W": self._weights}[work.kind](
            work, arrived
        )

    def room(self, part, kind):
        """Return a tensor for the output of a part, or the gradient of its input."""
        shape, dtype = self._shapes[part if kind == "F" else part - 1]
        return torch.empty(shape, dtype=dtype, device=self.comm.device)

    # ---- forward and backward --------------------------------------------------------

    def _part(self, work):
        return self.schedule.part(self.comm.rank, work)

    def _forward(self, work, arrived):
        chunk, part = self.chunks[work.chunk], self._part(work)
        x = self._inputs[work.microbatch] if part == 0 else arrived.requires_grad_()
        y = checkpoint(chunk, x, use_reentrant=False) if self._recompute else chunk(x)
        if part == self.schedule.parts - 1:
            loss = self._loss(y, self._targets[work.microbatch])
            self.losses.append(loss.item())
            y = loss / self.schedule.microbatches
        self._kept[work.microbatch, work.chunk] = x, y
        return y.detach()

    def _backward(self, work, gradient):
        """Return the gradient of the input; unless W does it, add up the weights'."""
        key = work.microbatch, work.chunk
        x, y = self._kept.pop(key)
        first = self._part(work) == 0
        if not self.schedule.splits_backward:
            y.backward(gradient)
            return None if first else x.grad
        self._put_off[key] = y, gradient
        if first:
            return None
        return torch.autograd.grad(y, x, gradient, retain_graph=True)[0]

    def _weights(self, work, _):
        """Add up the weights' gradients: through the graph of B once more."""
        y, gradient = self._put_off.pop((work.microbatch, work.chunk))
        trained = [p for p in self.chunks[work.chunk].parameters() if p.requires_grad]
        if trained:
            found = torch.autograd.grad(y, trained, gradient, allow_unused=True)
            for p, grad in zip(trained, found, strict=True):
                if grad is not None:
                    p.grad = grad if p.grad is None else p.grad + grad

    def _learn_shapes(self):
        """Return the shape and type that each part gives, from one microbatch."""
        parts, p = self.schedule.parts, self.comm.world_size
        shapes, training = {}, self.chunks.training
        self.chunks.eval()  # so that batch norm and dropout leave no trace
        for chunk, module in enumerate(self.chunks):
            part = chunk * p + self.comm.rank
            x = self._inputs[0]
            if part:
                before = part - 1
                if before not in shapes:
                    shapes[before] = self.comm.recv_object(before % p)
                shape, dtype = shapes[before]
                x = torch.zeros(shape, dtype=dtype, device=self.comm.device)
            with torch.no_grad():
                y = self._tried(module, x)
            shapes[part] = tuple(y.shape), y.dtype
            if part + 1 < parts and (part + 1) % p != self.comm.rank:
                self.comm.send_object(shapes[part], (part + 1) % p)
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


def clip_gradients(comm, parameters, most: float) -> float:
    """Scale gradients so that the norm over all stages is at most `most`; return it.

    Every rank calls it with its own parameters.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    squares = [gradient.double().square().sum() for gradient in gradients]
    total = sum(squares, torch.zeros(1, dtype=torch.float64, device=comm.device))
    ring_all_reduce(comm, total)
    norm = total.sqrt().item()
    for gradient in gradients:
        gradient.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


def _cut(batch, microbatches, name):
    if not len(batch) or len(batch) % microbatches:
        raise InvalidArgument(
            f"{name}: {len(batch)} samples do not make {microbatches} equal "
            "microbatches."
        )
    return batch.chunk(microbatches)
